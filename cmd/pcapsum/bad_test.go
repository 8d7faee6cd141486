package main

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWhatIsNoCapture is refused with a code and a reason.
func TestWhatIsNoCapture(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"an empty file":           {nil, "it is empty"},
		"three bytes":             {[]byte{0xa1, 0xb2, 0xc3}, "it has 3 bytes"},
		"text":                    {[]byte("Jan  1 00:00:00 gw kernel: hello\n"), "neither pcap nor pcapng"},
		"a pcap header cut off":   {[]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0}, "only 8 are there"},
		"pcap of version 7":       {append([]byte{0xd4, 0xc3, 0xb2, 0xa1, 7, 0}, make([]byte, 18)...), "version 7.0"},
		"modified pcap":           {append([]byte{0x34, 0xcd, 0xb2, 0xa1, 2, 0, 4, 0}, make([]byte, 16)...), "editcap"},
		"a pcapng header cut off": {[]byte{10, 13, 13, 10, 28, 0, 0, 0, 0x4d}, "cut off"},
		"pcapng of no order":      {append([]byte{10, 13, 13, 10, 28, 0, 0, 0}, make([]byte, 20)...), "byte order"},
		"gzip of nothing":         {[]byte{0x1f, 0x8b, 8}, "cannot be decompressed"},
	} {
		_, err := run(options{path: file(t, c.data), limit: 5, flows: 10})
		var f *failure
		if !errors.As(err, &f) || f.Code != codeUnreadable || !strings.Contains(f.Message, c.want) && !strings.Contains(f.Message, "ends in the middle") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var f *failure
	if _, err := run(options{path: filepath.Join(t.TempDir(), "none"), limit: 5, flows: 10}); !errors.As(err, &f) || f.Code != codeNotFound {
		t.Errorf("no file: %v", err)
	}
	if _, err := run(options{path: t.TempDir(), limit: 5, flows: 10}); !errors.As(err, &f) || f.Code != codeUnreadable {
		t.Errorf("a directory: %v", err)
	}
}

// TestLengthsThatLie end the reading where they stand.
func TestLengthsThatLie(t *testing.T) {
	t.Parallel()
	for _, s := range []shape{shapes[0], shapes[6], shapes[7]} {
		path, want := write(t, s, 9, 50<<10)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		n := len(want.starts) / 3
		at := int(want.starts[n])
		places := map[string]int{"captured length": at + 8}
		if s.ng {
			places = map[string]int{"block length": at + 4, "interface": at + 8, "captured length": at + 20, "length at the end": int(want.starts[n+1]) - 4}
		}
		for place, offset := range places {
			for _, lie := range []uint32{0, 1, 2, 5, 8, 13, 0x7fffffff, 0x80000000, 0xfffffff0, 0xffffffff} {
				if lie < 3 && place != "block length" {
					continue // it may be so
				}
				lying := slices.Clone(whole)
				s.order.PutUint32(lying[offset:], lie)
				start := time.Now()
				r, err := run(options{path: file(t, lying), limit: 5, flows: maxFlows})
				elapsed(t, start, time.Minute)
				if err != nil {
					t.Errorf("%s, %s %#x: %v", s.name, place, lie, err)
				} else if place == "captured length" && lie < 100 {
					if r.Packets < int64(n) { // a shorter packet; pcap loses its way after it
						t.Errorf("%s, %s %#x: %d packets, at least %d stand before it", s.name, place, lie, r.Packets, n)
					}
				} else if !r.Truncated || r.Packets != int64(n) || *r.TruncatedAt != int64(at) || len(r.Notes) == 0 {
					t.Errorf("%s, %s %#x: %d packets of %d before it, truncated %v at %v of %d", s.name, place, lie, r.Packets, n, r.Truncated, r.TruncatedAt, at)
				}
			}
		}
	}
}

// TestAMillionInterfacesAreTooMany refuses to keep them.
func TestAMillionInterfacesAreTooMany(t *testing.T) {
	t.Parallel()
	var b []byte
	block := func(kind uint32, body ...byte) {
		b = binary.LittleEndian.AppendUint32(b, kind)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)+12))
		b = append(b, body...)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(body)+12))
	}
	block(blockSection, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255)
	for range 1_000_000 {
		block(blockInterface, 1, 0, 0, 0, 0, 0, 0, 0)
	}
	r, err := run(options{path: file(t, b), limit: 5, flows: 10})
	if err != nil || !r.Truncated || !strings.Contains(*r.Truncation, "more than 65536 interfaces") || len(r.Capture.Interfaces) != maxNamed {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestMutationsDoNoHarm changes small captures at random: each is read, or
// refused, quickly and in little memory.
func TestMutationsDoNoHarm(t *testing.T) {
	var seeds [][]byte
	for i, s := range shapes {
		path, _ := write(t, s, uint64(i), 6<<10)
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, raw)
	}
	r := rand.New(rand.NewPCG(11, 1))
	path := filepath.Join(t.TempDir(), "capture")
	read, refused := 0, 0
	start := time.Now()
	for range 10_000 {
		data := mutate(r, seeds)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		report, err := run(options{path: path, limit: 20, flows: 1000})
		elapsed(t, began, time.Minute)
		var f *failure
		switch {
		case err == nil && report.BytesCaptured <= int64(len(data)):
			read++
		case errors.As(err, &f) && (f.Code == codeUnreadable):
			refused++
		default:
			t.Fatalf("%v, %+v", err, report)
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if read < 5000 || refused < 20 {
		t.Errorf("%d were read and %d refused: the mutations test too little", read, refused)
	}
	withinMemory(t, int64(memory.Sys))
	t.Logf("%d read, %d refused, %v, %d MiB", read, refused, time.Since(start).Round(time.Millisecond), memory.Sys>>20)
}

// mutate returns one of the captures with some damage.
func mutate(r *rand.Rand, seeds [][]byte) []byte {
	data := slices.Clone(seeds[r.IntN(len(seeds))])
	for range 1 + r.IntN(8) {
		at := r.IntN(len(data))
		switch r.IntN(6) {
		case 0:
			data[at] ^= 1 << r.IntN(8)
		case 1:
			data[at] = []byte{0, 1, 0x7f, 0x80, 0xff}[r.IntN(5)]
		case 2: // the header of the file
			data[r.IntN(min(64, len(data)))] = byte(r.Uint32())
		case 3:
			if at+4 <= len(data) {
				binary.LittleEndian.PutUint32(data[at:], []uint32{0, 1, 0xffffffff, 0x80000000, r.Uint32()}[r.IntN(5)])
			}
		case 4: // a piece is lost
			data = slices.Delete(data, at, min(len(data), at+r.IntN(40)))
		case 5: // a piece comes twice
			data = slices.Insert(data, at, slices.Clone(data[at:min(len(data), at+r.IntN(40))])...)
		}
		if len(data) == 0 {
			return []byte{0}
		}
	}
	return data
}

// FuzzCapture reads anything.
func FuzzCapture(f *testing.F) {
	for i, s := range shapes {
		path, _ := write(f, s, uint64(i), 700)
		raw, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := run(options{path: file(t, data), limit: 5, flows: 100})
		var known *failure
		if err != nil && !errors.As(err, &known) {
			t.Fatal(err)
		}
		if err == nil && r.Packets < int64(len(r.Conversations)) {
			t.Fatalf("%d packets make %d conversations", r.Packets, len(r.Conversations))
		}
	})
}
