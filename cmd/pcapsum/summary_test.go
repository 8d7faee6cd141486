package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// summarised reads a capture as the program does, with the table of all conversations.
func summarised(t testing.TB, path string, limit int) (*report, []flowReport) {
	t.Helper()
	table := filepath.Join(t.TempDir(), "table")
	r, err := run(options{path: path, limit: limit, flows: maxFlows, table: table, tableSize: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	var flows []flowReport
	for line := range bytes.Lines(raw) {
		var f flowReport
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		flows = append(flows, f)
	}
	if len(flows) != r.Table.Written || r.Table.Omitted != 0 || int64(len(raw)) != r.Table.Bytes {
		t.Errorf("the table has %d lines and %d bytes, and is said to have %+v", len(flows), len(raw), *r.Table)
	}
	return r, flows
}

func (f flowReport) id() string {
	if f.SourcePort == nil {
		return nameOf(f.Source, f.Destination, f.Protocol, 0, 0, false)
	}
	return nameOf(f.Source, f.Destination, f.Protocol, *f.SourcePort, *f.DestinationPort, true)
}

// TestACaptureOfEveryFormatIsCounted holds the report against what the
// generator knows.
func TestACaptureOfEveryFormatIsCounted(t *testing.T) {
	t.Parallel()
	for i, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			path, want := write(t, s, uint64(i), 2<<20)
			r, flows := summarised(t, path, 1000)
			if r.Packets != want.packets || r.Bytes != want.bytes || r.BytesCaptured != want.captured {
				t.Errorf("got %d packets, %d bytes, %d captured; wrote %d, %d, %d", r.Packets, r.Bytes, r.BytesCaptured, want.packets, want.bytes, want.captured)
			}
			if *r.Time.First != stamp(want.first) || *r.Time.Last != stamp(want.last) || r.Time.Seconds != float64(want.last-want.first)/1e9 {
				t.Errorf("got the times %+v; wrote %s to %s", r.Time, stamp(want.first), stamp(want.last))
			}
			if r.Truncated || r.Quality.Malformed != 0 || r.Time.Without != 0 || r.Time.OutOfOrder != 0 {
				t.Errorf("truncated %v, %+v, %+v", r.Truncated, r.Quality, r.Time)
			}
			if s.ng && (r.Capture.Sections != 2 || len(r.Capture.Interfaces) != 6) {
				t.Errorf("got %d sections with %d interfaces; wrote 2 with 6", r.Capture.Sections, len(r.Capture.Interfaces))
			}
			if s.snaplen > 0 && s.snaplen < 90 {
				return // headers are missing
			}
			got := map[string]int64{}
			for _, f := range flows {
				got[f.id()] = f.Packets
			}
			if !reflect.DeepEqual(got, want.flows) {
				t.Errorf("%d conversations differ from the %d written: %v", len(got), len(want.flows), difference(got, want.flows))
			}
			vlans := map[uint16]int64{}
			for _, v := range r.VLANs {
				vlans[v.ID] = v.Packets
			}
			if !maps.Equal(vlans, want.vlans) || r.Quality.Fragments != want.fragments {
				t.Errorf("VLANs %v, fragments %d; wrote %v, %d", vlans, r.Quality.Fragments, want.vlans, want.fragments)
			}
			if s.snaplen == 0 && (len(r.DNS) != 11 || len(r.HTTP) != 7 || len(r.TLS) != 1 || r.TLS[0].Name != "shop.example.com") {
				t.Errorf("DNS %v, HTTP %v, TLS %v", r.DNS, r.HTTP, r.TLS)
			}
		})
	}
}

func difference(got, want map[string]int64) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] && len(lines) < 10 {
			lines = append(lines, fmt.Sprintf("%s: %d, not %d", name, got[name], want[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, there := want[name]; !there && len(lines) < 20 {
			lines = append(lines, fmt.Sprintf("%s: %d, not there", name, got[name]))
		}
	}
	return lines
}

// file writes bytes to a file.
func file(t testing.TB, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestACaptureThatEndsTooEarlyCountsUpToThere cuts captures in the middle of a
// record.
func TestACaptureThatEndsTooEarlyCountsUpToThere(t *testing.T) {
	t.Parallel()
	for i, s := range shapes {
		path, want := write(t, s, uint64(i), 100<<10)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, len(want.starts) / 2, len(want.starts) - 1} {
			for _, more := range []int64{1, 8, 17} {
				cut := whole[:want.starts[n]+more]
				r, _ := summarised(t, file(t, cut), 5)
				if !r.Truncated || r.Packets != int64(n) || *r.TruncatedAt != want.starts[n] || *r.Truncation != errCutOff.Error() {
					t.Errorf("%s: cut in packet %d at %d: %d packets, truncated %v at %v", s.name, n+1, len(cut), r.Packets, r.Truncated, r.TruncatedAt)
				}
			}
			if r, _ := summarised(t, file(t, whole[:want.starts[n]]), 5); r.Truncated || r.Packets != int64(n) {
				t.Errorf("%s: cut between packets: %d of %d, truncated %v", s.name, r.Packets, n, r.Truncated)
			}
		}
	}
}

// TestACompressedCapture reads through gzip, and notices where it breaks off.
func TestACompressedCapture(t *testing.T) {
	t.Parallel()
	path, want := write(t, shapes[0], 1, 100<<10)
	plain, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(plain)
	_ = z.Close()
	if r, _ := summarised(t, file(t, b.Bytes()), 5); r.Packets != want.packets || !r.Capture.Compressed || r.Truncated {
		t.Errorf("%d of %d packets, %+v", r.Packets, want.packets, r.Capture)
	}
	if r, _ := summarised(t, file(t, b.Bytes()[:b.Len()/2]), 5); r.Packets == 0 || r.Packets >= want.packets || !r.Truncated {
		t.Errorf("half of it: %d of %d packets, truncated %v", r.Packets, want.packets, r.Truncated)
	}
}

// one writes a capture of the given packets and summarises it.
func one(t testing.TB, link layers.LinkType, packets ...[]byte) *report {
	t.Helper()
	var b bytes.Buffer
	w := newWriter(&b, shapes[0])
	w.header(link)
	for i, p := range packets {
		w.packet(p, int64(1e18+i*1e9), 0)
	}
	if err := w.w.Flush(); err != nil {
		t.Fatal(err)
	}
	r, _ := summarised(t, file(t, b.Bytes()), 20)
	return r
}

// TestLinkTypes puts the same packet behind each link's header.
func TestLinkTypes(t *testing.T) {
	t.Parallel()
	from, to := ends(1, false)
	udp := []byte{0x13, 0x88, 0x13, 0x89, 0, 8, 0, 0}
	ip := serialize(t, &layers.IPv4{Version: 4, TTL: 1, Protocol: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}, payload(udp))
	from, to = ends(4, true)
	ip6 := serialize(t, &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolUDP, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}, payload(udp))
	behind := func(head ...byte) func([]byte) []byte {
		return func(p []byte) []byte { return append(slices.Clone(head), p...) }
	}
	sll := func(kind ...byte) func([]byte) []byte { return behind(append(make([]byte, 14), kind...)...) }
	sll2 := func(kind ...byte) func([]byte) []byte {
		return behind(append(kind, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0)...)
	}
	for _, c := range []struct {
		link layers.LinkType
		four func([]byte) []byte
		six  func([]byte) []byte
		path string
	}{
		{layers.LinkTypeRaw, behind(), behind(), "raw"},
		{layers.LinkTypeIPv4, behind(), behind(), "raw"},
		{layers.LinkTypeNull, behind(2, 0, 0, 0), behind(30, 0, 0, 0), "null"},
		{layers.LinkTypeLoop, behind(0, 0, 0, 2), behind(0, 0, 0, 24), "null"},
		{layers.LinkTypeLinuxSLL, sll(8, 0), sll(0x86, 0xdd), "sll"},
		{layers.LinkTypeLinuxSLL2, sll2(8, 0), sll2(0x86, 0xdd), "sll"},
	} {
		r := one(t, c.link, c.four(ip), c.six(ip6))
		paths := []string{}
		for _, p := range r.Protocols {
			paths = append(paths, p.Path)
		}
		slices.Sort(paths)
		want := []string{c.path, c.path + "/ip", c.path + "/ip/udp", c.path + "/ipv6", c.path + "/ipv6/udp"}
		if !slices.Equal(paths, want) || r.Counts.Conversations != 2 || r.Quality.Malformed != 0 {
			t.Errorf("link type %d: %v, %d conversations, %+v", c.link, paths, r.Counts.Conversations, r.Quality)
		}
	}
	for _, link := range []layers.LinkType{layers.LinkTypeIEEE802_11, layers.LinkTypeIEEE80211Radio, 9999} {
		if r := one(t, link, ip); r.Packets != 1 || r.Counts.Conversations != 0 || len(r.Protocols) != 1 {
			t.Errorf("link type %d: %+v", link, r)
		}
	}
}

// TestTheRestOfAPacketIsNotReadAsAHeader puts bytes into a later fragment that
// would be a header of options if they stood first.
func TestTheRestOfAPacketIsNotReadAsAHeader(t *testing.T) {
	t.Parallel()
	from, to := ends(4, true)
	p := serialize(t, &layers.IPv6{Version: 6, NextHeader: layers.IPProtocolIPv6Fragment, SrcIP: from.AsSlice(), DstIP: to.AsSlice()},
		payload([]byte{60, 0, 0, 8, 0, 0, 0, 1}), payload(bytes.Repeat([]byte{0xff}, 8)))
	r := one(t, layers.LinkTypeRaw, p)
	if f := r.Conversations[0]; r.Quality.Malformed != 0 || r.Quality.Fragments != 1 || f.Protocol != "ip_60" || f.SourcePort != nil {
		t.Errorf("%+v, %+v", r.Quality, f)
	}
}

// TestWhoBeganAConversation finds it in the first packet, or in an answer.
func TestWhoBeganAConversation(t *testing.T) {
	t.Parallel()
	from, to := ends(1, false)
	segment := func(back bool, syn, ack bool) []byte {
		a, b, src, dst := from, to, layers.TCPPort(40000), layers.TCPPort(443)
		if back {
			a, b, src, dst = b, a, dst, src
		}
		return serialize(t, &layers.IPv4{Version: 4, TTL: 1, Protocol: layers.IPProtocolTCP, SrcIP: a.AsSlice(), DstIP: b.AsSlice()},
			&layers.TCP{SrcPort: src, DstPort: dst, SYN: syn, ACK: ack})
	}
	for name, packets := range map[string][][]byte{
		"from the beginning": {segment(false, true, false), segment(true, true, true), segment(false, false, true)},
		"from the answer":    {segment(true, true, true), segment(false, false, true), segment(false, false, true)},
	} {
		f := one(t, layers.LinkTypeRaw, packets...).Conversations[0]
		if f.Source != from.String() || *f.SourcePort != 40000 || f.PacketsForward != 2 || f.PacketsBack != 1 || f.Seconds != 2 ||
			!slices.Equal(f.FlagsBack, []string{"SYN", "ACK"}) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestTimesOfEveryResolution reads the same instant from time stamps that
// count different things.
func TestTimesOfEveryResolution(t *testing.T) {
	t.Parallel()
	const second = 1_767_225_600
	for _, c := range []struct {
		resolution byte
		offset     int64
		stamp      uint64
		want       string
	}{
		{0, 0, second, "2026-01-01T00:00:00Z"},
		{6, 0, second*1e6 + 250_001, "2026-01-01T00:00:00.250001Z"},
		{9, 0, second*1e9 + 999_999_999, "2026-01-01T00:00:00.999999999Z"},
		{9, second, 999_999_999, "2026-01-01T00:00:00.999999999Z"},
		{3, -1, (second+1)*1e3 + 7, "2026-01-01T00:00:00.007Z"},
		{0x80 | 20, 0, second<<20 | 1<<19, "2026-01-01T00:00:00.5Z"},
		{0x80 | 30, 0, second<<30 | 3<<28, "2026-01-01T00:00:00.75Z"},
		{12, second, 1_500_000_000_000, "2026-01-01T00:00:01.5Z"},
		{19, second, 5_000_000_000_000_000_000, "2026-01-01T00:00:00.5Z"},
		{20, second, 10_000_000_000_000_000_000, "2026-01-01T00:00:00.1Z"},
		{0x80 | 63, second, 1 << 62, "2026-01-01T00:00:00.5Z"},
		{0x80 | 64, second, 1 << 63, "2026-01-01T00:00:00.5Z"},
		{0xff, second, 1<<64 - 1, "2026-01-01T00:00:00Z"},
		{0x7f, second, 1<<64 - 1, "2026-01-01T00:00:00Z"},
	} {
		nanos, sensible := face{resolution: c.resolution, offset: c.offset}.time(c.stamp)
		if got := stamp(nanos); got != c.want || !sensible {
			t.Errorf("resolution %#x, stamp %d: got %s, %v; want %s", c.resolution, c.stamp, got, sensible, c.want)
		}
	}
	if _, sensible := (face{resolution: 0}).time(1<<64 - 1); sensible {
		t.Error("a time at the end of all times is sensible")
	}
}

// TestConversationsBeyondTheLimitAreCountedTogether keeps a hundred.
func TestConversationsBeyondTheLimitAreCountedTogether(t *testing.T) {
	t.Parallel()
	path, want := write(t, shape{order: shapes[0].order, flows: 5000}, 3, 2<<20)
	c, err := openCapture(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	sum := newTally(100)
	sum.readAll(c)
	r := sum.report(c, 1000)
	kept := int64(0)
	for _, f := range r.Conversations {
		kept += f.Packets
	}
	if len(r.Conversations) != 100 || r.Counts.Conversations != 100 || kept+r.Counts.Unkept != r.Counts.IPPackets || r.Packets != want.packets {
		t.Errorf("%d conversations with %d packets and %d beyond, of %d", len(r.Conversations), kept, r.Counts.Unkept, r.Counts.IPPackets)
	}
	if !slices.ContainsFunc(r.Notes, func(note string) bool { return strings.Contains(note, "beyond the first 100") }) {
		t.Errorf("no note says so: %q", r.Notes)
	}
	table, err := sum.conversations.writeTable(filepath.Join(t.TempDir(), "table"), 5000)
	if err != nil || table.Written == 0 || table.Written+table.Omitted != 100 || table.Bytes > 5000 {
		t.Errorf("a table of 5,000 bytes: %+v, %v", table, err)
	}
}

// TestTheReportIsTheSameEachTime compares bytes.
func TestTheReportIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	path, _ := write(t, shapes[6], 5, 1<<20)
	var first []byte
	for range 5 {
		r, err := run(options{path: path, limit: 10, flows: maxFlows})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = raw
		}
		if !bytes.Equal(raw, first) {
			t.Fatalf("got %s\nthen %s", first, raw)
		}
	}
}

// elapsed fails a test that takes too long.
func elapsed(t *testing.T, start time.Time, most time.Duration) {
	t.Helper()
	if took := time.Since(start); took > most {
		t.Errorf("it took %v, more than %v", took, most)
	}
}

// withinMemory fails a test that took more bytes of memory than 512 MiB.
func withinMemory(t *testing.T, peak int64) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: it measures the memory of the program")
		}
		if peak > 512<<20 {
			t.Errorf("it took %d MiB of memory, want at most 512", peak>>20)
		}
	})
}
