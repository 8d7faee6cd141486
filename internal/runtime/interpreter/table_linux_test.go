package interpreter

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// Tables that say more than a file can hold, and files that are none, are read
// at once and for little memory.
func TestHostileTablesAreReadWithinBounds(t *testing.T) {
	dir := t.TempDir()
	head := func(edit func(*elf.Header64), rest ...any) []byte {
		h := elf.Header64{
			Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), 1},
			Type:  uint16(elf.ET_DYN), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 3, Shentsize: 64, Shnum: 1000, Shoff: 64,
		}
		edit(&h)
		var out bytes.Buffer
		_ = binary.Write(&out, binary.LittleEndian, h)
		for _, part := range rest {
			_ = binary.Write(&out, binary.LittleEndian, part)
		}
		return out.Bytes()
	}
	all := elf.Prog64{Type: uint32(elf.PT_DYNAMIC), Off: 0, Filesz: math.MaxUint64}
	for name, text := range map[string][]byte{
		"many headers": head(func(h *elf.Header64) { h.Phnum = math.MaxUint16 }), "headers nowhere": head(func(h *elf.Header64) { h.Phoff = math.MaxUint64 }),
		"long headers": head(func(h *elf.Header64) { h.Phentsize = math.MaxUint16 }), "short headers": head(func(h *elf.Header64) { h.Phentsize = 1 }),
		"a table of all": head(func(*elf.Header64) {}, all, elf.Prog64{Type: uint32(elf.PT_INTERP), Filesz: math.MaxUint64}, elf.Prog64{Type: uint32(elf.PT_LOAD), Filesz: math.MaxUint64}),
		"cut off":        head(func(*elf.Header64) {})[:40], "no class": head(func(h *elf.Header64) { h.Ident[elf.EI_CLASS] = 9 }), "no order": head(func(h *elf.Header64) { h.Ident[elf.EI_DATA] = 9 }),
		"empty": nil, "text": []byte("#!/bin/sh\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "a pipe"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"zero": "/dev/zero", "directory": dir, "gone": "nowhere", "round": "round"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	huge := filepath.Join(dir, "huge")
	if err := os.WriteFile(huge, head(func(h *elf.Header64) { h.Phoff = 1 << 39 }), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		defer close(done)
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			_, _ = readTable(path)
			_ = shebang(path)
			_, _ = follow(systemLibraries(), func(string) bool { return true }, path)
		}
	}()
	testwait.Receive(t, "the end of the readers", done)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 16 {
		t.Errorf("it took %d MiB", took)
	}
}
