package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"testing"
)

// unzip reads a zip as strictly as a reader can: from the front, entry by entry, and holds what it
// finds against the directory at the end.
func unzip(t *testing.T, content []byte) []file {
	t.Helper()
	in, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	if in.Comment != "" {
		t.Errorf("it has the comment %q", in.Comment)
	}
	var all []file
	at := 0
	for _, f := range in.File {
		local := content[at:]
		word := func(i int) int { return int(binary.LittleEndian.Uint16(local[i:])) }
		long := func(i int) int { return int(binary.LittleEndian.Uint32(local[i:])) }
		name, extra := word(26), word(28)
		if long(0) != 0x04034b50 || word(6) != 0 || extra != 0 || string(local[30:30+name]) != f.Name {
			t.Fatalf("at %d there is no plain entry for %s", at, f.Name)
		}
		if word(4) != zipVersion || word(8) != int(zip.Deflate) || long(14) != int(f.CRC32) || long(18) != int(f.CompressedSize64) || long(22) != int(f.UncompressedSize64) {
			t.Errorf("%s is another in its own header: %+v", f.Name, f.FileHeader)
		}
		if !f.Modified.Equal(changed) || len(f.Extra) > 0 || f.Comment != "" || f.Flags != 0 {
			t.Errorf("%+v", f.FileHeader)
		}
		to, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(to)
		if err != nil || crc32.ChecksumIEEE(plain) != f.CRC32 {
			t.Errorf("%s: %v", f.Name, err)
		}
		all = append(all, file{f.Name, f.Mode(), plain})
		at += 30 + name + int(f.CompressedSize64)
	}
	// Where the entries end the directory begins, and at its end the file ends.
	end := content[len(content)-22:]
	if binary.LittleEndian.Uint32(end) != 0x06054b50 || int(binary.LittleEndian.Uint32(end[16:])) != at || at+int(binary.LittleEndian.Uint32(end[12:]))+22 != len(content) {
		t.Errorf("there are bytes that belong to no entry: %x", end)
	}
	if names := namesOf(all); !slices.IsSorted(names) {
		t.Errorf("out of order: %v", names)
	}
	return all
}

// The order in which entries come makes no difference, nor does when they are packed.
func TestArchivesFollowFromTheirEntries(t *testing.T) {
	entries := []file{{"b/run", 0o755, bytes.Repeat([]byte("program "), 1000)}, {"a.txt", 0o644, []byte("text")}, {"empty", 0o644, nil}}
	other := slices.Clone(entries)
	slices.Reverse(other)
	for name, pack := range map[string]func([]file) ([]byte, error){"tar.gz": tarball, "zip": zipped} {
		first, err := pack(entries)
		if err != nil {
			t.Fatal(err)
		}
		second, err := pack(other)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("%s: other bytes", name)
		}
		read := untar
		if name == "zip" {
			read = unzip
		}
		got := read(t, first)
		if !slices.Equal(namesOf(got), []string{"a.txt", "b/run", "empty"}) || got[1].mode != 0o755 || got[0].mode != 0o644 || !bytes.Equal(got[1].content, entries[0].content) {
			t.Errorf("%s: %v", name, namesOf(got))
		}
	}
}
