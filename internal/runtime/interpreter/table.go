package interpreter

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"syscall"
)

// The bounds of the tables of a program that are read. The loader needs no more
// of real programs, and a file from a package may say anything.
const (
	maxHeaders = 256      // program headers
	maxDynamic = 16 << 10 // bytes of the dynamic table
	maxEntries = 512      // libraries and search paths that it names
	maxString  = 4 << 10  // bytes of one of those
)

// A table is what an ELF file asks its loader for.
type table struct {
	loader string
	needed []string // libraries, in order
	search []string // lists of directories: RPATH, RUNPATH
}

var errNoProgram = errors.New("it is no ELF file that can be loaded")

// readTable reads the table as the loader does: by program headers alone. Section
// headers are not looked at, so nothing is inflated, and at most a few hundred
// KiB are read, whatever the file says.
func readTable(path string) (table, error) {
	file, err := openRegular(path)
	if err != nil {
		return table{}, err
	}
	defer file.Close()
	return parseTable(file)
}

// openRegular opens a regular file and nothing else. It does not wait for a
// writer, as opening a named pipe would.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// A segment is one program header.
type segment struct {
	kind                   elf.ProgType
	offset, address, bytes uint64
}

func parseTable(file io.ReaderAt) (table, error) {
	segments, word, order, err := readSegments(file)
	if err != nil {
		return table{}, err
	}
	var t table
	var dynamic segment
	for _, s := range segments {
		switch s.kind {
		case elf.PT_INTERP:
			t.loader = readString(file, s.offset, min(s.bytes, maxString))
		case elf.PT_DYNAMIC:
			dynamic = s
		}
	}
	if dynamic.bytes == 0 {
		return t, nil
	}
	raw := readAt(file, dynamic.offset, min(dynamic.bytes, maxDynamic))
	value := func(at int) uint64 {
		if word == 4 {
			return uint64(order.Uint32(raw[at:]))
		}
		return order.Uint64(raw[at:])
	}
	var names, size uint64 // of the table of strings
	var needed, search []uint64
	for at := 0; at+2*word <= len(raw) && len(needed)+len(search) < maxEntries; at += 2 * word {
		tag, is := elf.DynTag(value(at)), value(at+word)
		switch tag {
		case elf.DT_NULL:
			at = len(raw)
		case elf.DT_STRTAB:
			names = offsetOf(segments, is)
		case elf.DT_STRSZ:
			size = is
		case elf.DT_NEEDED:
			needed = append(needed, is)
		case elf.DT_RPATH, elf.DT_RUNPATH:
			search = append(search, is)
		}
	}
	text := func(at uint64) string {
		if names == 0 || at >= size {
			return ""
		}
		return readString(file, names+at, min(size-at, maxString))
	}
	for _, at := range needed {
		t.needed = append(t.needed, text(at))
	}
	for _, at := range search {
		t.search = append(t.search, text(at))
	}
	return t, nil
}

// readSegments reads the program headers, and says how long a word is.
func readSegments(file io.ReaderAt) (segments []segment, word int, order binary.ByteOrder, err error) {
	head := readAt(file, 0, 64)
	if len(head) < 52 || !bytes.HasPrefix(head, []byte(elf.ELFMAG)) {
		return nil, 0, nil, errNoProgram
	}
	switch elf.Data(head[elf.EI_DATA]) {
	case elf.ELFDATA2LSB:
		order = binary.LittleEndian
	case elf.ELFDATA2MSB:
		order = binary.BigEndian
	default:
		return nil, 0, nil, errNoProgram
	}
	var begin uint64
	var length, count int
	switch elf.Class(head[elf.EI_CLASS]) {
	case elf.ELFCLASS32:
		word, begin = 4, uint64(order.Uint32(head[28:]))
		length, count = int(order.Uint16(head[42:])), int(order.Uint16(head[44:]))
	case elf.ELFCLASS64:
		if len(head) < 64 {
			return nil, 0, nil, errNoProgram
		}
		word, begin = 8, order.Uint64(head[32:])
		length, count = int(order.Uint16(head[54:])), int(order.Uint16(head[56:]))
	}
	if smallest := map[int]int{4: 32, 8: 56}[word]; smallest == 0 || length < smallest || length > 256 {
		return nil, 0, nil, errNoProgram
	}
	raw := readAt(file, begin, uint64(length*min(count, maxHeaders)))
	for ; len(raw) >= length; raw = raw[length:] {
		s := segment{kind: elf.ProgType(order.Uint32(raw))}
		if word == 4 {
			s.offset, s.address, s.bytes = uint64(order.Uint32(raw[4:])), uint64(order.Uint32(raw[8:])), uint64(order.Uint32(raw[16:]))
		} else {
			s.offset, s.address, s.bytes = order.Uint64(raw[8:]), order.Uint64(raw[16:]), order.Uint64(raw[32:])
		}
		segments = append(segments, s)
	}
	return segments, word, order, nil
}

// offsetOf returns where in the file an address is, 0 if it is nowhere.
func offsetOf(segments []segment, address uint64) uint64 {
	for _, s := range segments {
		if s.kind == elf.PT_LOAD && address >= s.address && address-s.address < s.bytes {
			return s.offset + (address - s.address)
		}
	}
	return 0
}

// readAt returns at most length bytes, fewer where the file ends.
func readAt(file io.ReaderAt, offset, length uint64) []byte {
	if offset > math.MaxInt64-length {
		return nil
	}
	raw := make([]byte, length)
	n, _ := file.ReadAt(raw, int64(offset))
	return raw[:n]
}

// readString returns the text up to the first zero byte, "" where there is none.
func readString(file io.ReaderAt, offset, most uint64) string {
	text, _, ended := strings.Cut(string(readAt(file, offset, most)), "\x00")
	if !ended {
		return ""
	}
	return text
}
