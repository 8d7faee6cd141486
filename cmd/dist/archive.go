package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"time"
)

// A file is one entry of an archive.
type file struct {
	name    string // with slashes
	mode    fs.FileMode
	content []byte
}

// changed is when every entry was last changed: the first moment that a zip can say.
var changed = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// changedDate is the day of changed as a zip has it: day 1 of month 1 of year 0, which is 1980.
const changedDate = 1 | 1<<5

// zipVersion is that of the format which every reader knows: 2.0.
const zipVersion = 20

// sorted returns the entries by name. Two of one name are an error: programs disagree about which
// of them counts.
func sorted(all []file) ([]file, error) {
	all = slices.SortedFunc(slices.Values(all), func(a, b file) int { return cmp.Compare(a.name, b.name) })
	for i := range all[1:] {
		if all[i].name == all[i+1].name {
			return nil, fmt.Errorf("%s is there twice", all[i].name)
		}
	}
	return all, nil
}

// tarball returns a tar.gz of the entries, without owners.
func tarball(all []file) ([]byte, error) {
	all, err := sorted(all)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	small := gzip.NewWriter(&b)
	out := tar.NewWriter(small)
	for _, f := range all {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: int64(f.mode), Size: int64(len(f.content)), ModTime: changed, Format: tar.FormatUSTAR}
		if err := out.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := out.Write(f.content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(out.Close(), small.Close())
	return b.Bytes(), err
}

// zipped returns a zip of the entries. Sums and sizes stand before each one, not behind it, and there
// are no extra fields and no comment, so that strict readers and those that read from the front
// find the same as all others.
func zipped(all []file) ([]byte, error) {
	all, err := sorted(all)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := zip.NewWriter(&b)
	for _, f := range all {
		var small bytes.Buffer
		deflate, err := flate.NewWriter(&small, flate.DefaultCompression)
		if err != nil {
			return nil, err
		}
		_, err = deflate.Write(f.content)
		if err := errors.Join(err, deflate.Close()); err != nil {
			return nil, err
		}
		header := &zip.FileHeader{
			Name: f.name, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(f.content),
			CompressedSize64: uint64(small.Len()), UncompressedSize64: uint64(len(f.content)),
			CreatorVersion: zipVersion, ReaderVersion: zipVersion,
		}
		//lint:ignore SA1019 CreateRaw writes this field, and not the one that replaces it
		header.ModifiedDate = changedDate
		header.SetMode(f.mode)
		to, err := out.CreateRaw(header)
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(small.Bytes()); err != nil {
			return nil, err
		}
	}
	err = out.Close()
	return b.Bytes(), err
}
