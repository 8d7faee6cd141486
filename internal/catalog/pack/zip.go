package pack

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// A zip says everything twice: in front of each file, and in a directory at its
// end. Readers differ in whom they believe, so that one zip can be two packages.
// Here both must say the same, and every byte belongs to exactly one file.

// The parts of a zip, each with what it begins with and how long its fixed part is.
const (
	zipLocal, zipLocalSize     = "PK\x03\x04", 30
	zipCentral, zipCentralSize = "PK\x01\x02", 46
	zipEnd, zipEndSize         = "PK\x05\x06", 22
	zipEnd64                   = "PK\x06\x07" // the locator of the long form
	zipDescriptor              = "PK\x07\x08"
)

// The flags of a file that matter here.
const (
	zipEncrypted = 1<<0 | 1<<6 | 1<<13
	zipPatched   = 1 << 5
	zipStreamed  = 1 << 3 // what is known only afterwards stands behind the file
	zipUTF8      = 1 << 11
)

// A zipEntry is one file as the directory at the end has it.
type zipEntry struct {
	File
	raw            []byte // the name as written
	flags, method  uint16
	crc            uint32
	packed, size   int64
	offset, begins int64 // of what stands in front of it, and of its content
}

// readZip reads a zip and gives each file to visit, once all were looked at.
func readZip(ctx context.Context, file *os.File, size int64, visit func(File, io.Reader) error) error {
	entries, begins, err := zipDirectory(file, size)
	if err != nil {
		return err
	}
	if err := zipPlaces(file, entries, begins); err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.Name == "" {
			continue
		}
		if err := e.unpack(file, visit); err != nil {
			return err
		}
	}
	return nil
}

// zipDirectory reads the directory at the end, and returns where it begins.
func zipDirectory(file io.ReaderAt, size int64) ([]*zipEntry, int64, error) {
	tail := make([]byte, min(size, zipEndSize+1<<16))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return nil, 0, err
	}
	at := -1
	for i := range max(0, len(tail)-zipEndSize+1) {
		if !bytes.HasPrefix(tail[i:], []byte(zipEnd)) || i+zipEndSize+int(binary.LittleEndian.Uint16(tail[i+20:])) != len(tail) {
			continue
		}
		at = i
		break
	}
	if at < 0 {
		return nil, 0, refused("it is no zip, or it was cut off")
	}
	end := tail[at:]
	if bytes.Count(end, []byte(zipEnd)) > 1 {
		return nil, 0, refused("it has two ends, so that it could be read in two ways")
	}
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	count, length, begins := int(u16(end[10:])), int64(u32(end[12:])), int64(u32(end[16:]))
	switch ends := size - int64(len(tail)) + int64(at); {
	case u16(end[4:]) != 0 || u16(end[6:]) != 0 || int(u16(end[8:])) != count:
		return nil, 0, refused("it is one of several parts")
	case at >= 20 && bytes.HasPrefix(tail[at-20:], []byte(zipEnd64)), count == 1<<16-1, length == 1<<32-1, begins == 1<<32-1:
		return nil, 0, refused("it is of the long form (zip64), which no package needs")
	case begins+length != ends:
		return nil, 0, refused("its directory does not end where the zip does: it was cut off, or something was put around it")
	case length > int64(count)*(zipCentralSize+3<<16):
		return nil, 0, refused("its directory is longer than its files are many")
	}
	directory := make([]byte, length)
	if _, err := file.ReadAt(directory, begins); err != nil {
		return nil, 0, err
	}
	var entries []*zipEntry
	names, total := newIntake(), int64(0)
	for range count {
		e, rest, err := zipRecord(directory)
		if err != nil {
			return nil, 0, err
		}
		if e.Name, err = names.admit(string(e.raw), e.Dir); err != nil {
			return nil, 0, err
		}
		if err := inflated(string(e.raw), e.size, e.packed); err != nil {
			return nil, 0, err
		}
		if total += e.size; total > MaxBytes {
			return nil, 0, refused("a package is at most %d MiB large", MaxBytes>>20)
		}
		entries, directory = append(entries, e), rest
	}
	if len(directory) != 0 {
		return nil, 0, refused("its directory says that it has %d files, and has more", count)
	}
	return entries, begins, nil
}

// zipRecord reads one record of the directory.
func zipRecord(directory []byte) (e *zipEntry, rest []byte, err error) {
	if len(directory) < zipCentralSize || string(directory[:4]) != zipCentral {
		return nil, nil, refused("its directory is damaged")
	}
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	named, extra := int(u16(directory[28:])), int(u16(directory[30:]))
	whole := zipCentralSize + named + extra + int(u16(directory[32:]))
	if len(directory) < whole {
		return nil, nil, refused("its directory is damaged")
	}
	e = &zipEntry{
		raw: directory[zipCentralSize:][:named], flags: u16(directory[8:]), method: u16(directory[10:]), crc: u32(directory[16:]),
		packed: int64(u32(directory[20:])), size: int64(u32(directory[24:])), offset: int64(u32(directory[42:])),
	}
	name := string(e.raw)
	e.Dir = strings.HasSuffix(name, "/")
	mode := u32(directory[38:]) >> 16
	ascii := strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	switch kind := mode & 0o170000; {
	case !utf8.ValidString(name) || !ascii && e.flags&zipUTF8 == 0:
		return nil, nil, refused("%q: the name is not said to be UTF-8, so that it could be read in two ways", name)
	case e.flags&(zipEncrypted|zipPatched) != 0:
		return nil, nil, refused("%s is encrypted", name)
	case e.method != 0 && e.method != 8:
		return nil, nil, refused("%s is compressed in a way that is not read here (%d): use deflate", name, e.method)
	case u16(directory[34:]) != 0 || e.packed == 1<<32-1 || e.size == 1<<32-1 || e.offset == 1<<32-1:
		return nil, nil, refused("%s is of the long form (zip64), which no package needs", name)
	case zipRenames(directory[zipCentralSize+named:][:extra]):
		return nil, nil, refused("%s has a second name", name)
	case directory[5] != 3 && directory[5] != 19: // it comes of no Unix: there is no mode
	case kind != 0 && kind != 0o100000 && kind != 0o040000:
		return nil, nil, refused("%s is neither a file nor a directory", name)
	case kind == 0o040000 && !e.Dir, kind == 0o100000 && e.Dir:
		return nil, nil, refused("%s is a file by its name and a directory by its mode, or the other way round", name)
	default:
		e.Executable = mode&0o100 != 0
	}
	switch {
	case e.Dir && e.size != 0:
		return nil, nil, refused("%s is a directory with content", name)
	case e.method == 0 && e.packed != e.size:
		return nil, nil, refused("%s is stored as it is and has another length", name)
	}
	return e, directory[whole:], nil
}

// zipRenames reports whether what tools add to a record holds another name or
// other lengths.
func zipRenames(extra []byte) bool {
	for len(extra) >= 4 {
		id, length := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if id == 0x7075 || id == 0x0001 {
			return true
		}
		extra = extra[min(4+length, len(extra)):]
	}
	return false
}

// zipPlaces holds what stands in front of each file against the directory, which
// begins at end, and makes sure that the files lie side by side.
func zipPlaces(file io.ReaderAt, entries []*zipEntry, end int64) error {
	inOrder := slices.SortedFunc(slices.Values(entries), func(a, b *zipEntry) int { return cmp.Compare(a.offset, b.offset) })
	at := int64(0)
	for i, e := range inOrder {
		if e.offset != at {
			return refused("%s overlaps another file, or something stands in front of it that is none", e.raw)
		}
		if err := e.front(file); err != nil {
			return err
		}
		next := end
		if i+1 < len(inOrder) {
			next = inOrder[i+1].offset
		}
		at = e.begins + e.packed
		if e.flags&zipStreamed != 0 {
			length, err := e.behind(file, at, next)
			if err != nil {
				return err
			}
			at += length
		}
		if at > end {
			return refused("%s overlaps another file", e.raw)
		}
	}
	if at != end {
		return refused("something stands in it that is no file")
	}
	return nil
}

// front reads what stands in front of a file.
func (e *zipEntry) front(file io.ReaderAt) error {
	head := make([]byte, zipLocalSize)
	if _, err := file.ReadAt(head, e.offset); err != nil {
		return refused("%s is cut off", e.raw)
	}
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	variable := make([]byte, int(u16(head[26:]))+int(u16(head[28:])))
	if _, err := file.ReadAt(variable, e.offset+zipLocalSize); err != nil {
		return refused("%s is cut off", e.raw)
	}
	name := variable[:u16(head[26:])]
	said := u32(head[14:]) == e.crc && int64(u32(head[18:])) == e.packed && int64(u32(head[22:])) == e.size
	if e.flags&zipStreamed != 0 && !said {
		said = u32(head[14:]) == 0 && u32(head[18:]) == 0 && u32(head[22:]) == 0
	}
	if string(head[:4]) != zipLocal || u16(head[6:]) != e.flags || u16(head[8:]) != e.method || !bytes.Equal(name, e.raw) || !said || zipRenames(variable[len(name):]) {
		return refused("%s: what stands in front of it is not what its directory says", e.raw)
	}
	e.begins = e.offset + zipLocalSize + int64(len(variable))
	return nil
}

// behind reads what stands behind a file of unknown length, and returns how long
// that is.
func (e *zipEntry) behind(file io.ReaderAt, at, next int64) (int64, error) {
	length := next - at
	if length == 12 || length == 16 {
		tail := make([]byte, length)
		if _, err := file.ReadAt(tail, at); err != nil {
			return 0, refused("%s is cut off", e.raw)
		}
		signed := length == 12 || string(tail[:4]) == zipDescriptor
		u32, said := binary.LittleEndian.Uint32, tail[length-12:]
		if signed && u32(said) == e.crc && int64(u32(said[4:])) == e.packed && int64(u32(said[8:])) == e.size {
			return length, nil
		}
	}
	return 0, refused("%s: what stands behind it is not what its directory says", e.raw)
}

// unpack gives the content of a file to visit: exactly what was said of it.
func (e *zipEntry) unpack(file io.ReaderAt, visit func(File, io.Reader) error) error {
	from := bufio.NewReader(io.NewSectionReader(file, e.begins, e.packed))
	var content io.Reader = from
	if e.method == 8 {
		content = flate.NewReader(from)
	}
	counted := &counted{from: io.LimitReader(content, e.size+1), sum: crc32.NewIEEE()}
	if err := visit(e.File, counted); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, counted); err != nil { // of a directory
		return err
	}
	if _, err := from.ReadByte(); counted.n != e.size || counted.sum.Sum32() != e.crc || err != io.EOF {
		return refused("%s is damaged: its content is not what its directory says", e.raw)
	}
	return nil
}
