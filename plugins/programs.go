package plugins

import (
	"bytes"
	"crypto/sha256"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/carried"
)

// A tree is the embedded files with programs among them. Embedding forgets modes; these
// are executable, as a package is installed with the modes that it comes with.
type tree struct {
	fs.ReadDirFS
	programs func() map[string]*carried.Program // by their paths, each alone in a directory bin
}

// withPrograms returns the files with those programs that the host was built with.
func withPrograms(files fs.ReadDirFS, packed fs.FS) tree {
	return tree{files, sync.OnceValue(func() map[string]*carried.Program {
		found := map[string]*carried.Program{}
		for place, name := range places {
			if program, err := carried.Find(packed, name); err == nil {
				found[place] = program
			}
		}
		return found
	})}
}

// Open opens a file. A program is unpacked when it is read.
func (t tree) Open(name string) (fs.File, error) {
	if p := t.programs()[name]; p != nil {
		return &program{info: programInfo(name, p), of: p}, nil
	}
	if entries := t.beside(name); entries != nil && path.Base(name) == "bin" {
		return &directory{info{name: "bin", mode: fs.ModeDir | 0o555}, entries}, nil
	}
	file, err := t.ReadDirFS.Open(name)
	if err != nil || t.beside(name) == nil {
		return file, err
	}
	entries, err := t.ReadDir(name)
	_ = file.Close()
	return &directory{info{name: path.Base(name), mode: fs.ModeDir | 0o555}, entries}, err
}

// ReadDir lists a directory.
func (t tree) ReadDir(name string) ([]fs.DirEntry, error) {
	more := t.beside(name)
	if more != nil && path.Base(name) == "bin" {
		return more, nil
	}
	entries, err := t.ReadDirFS.ReadDir(name)
	if err != nil || more == nil {
		return entries, err
	}
	entries = append(entries, more...)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// beside returns what programs add to a directory: itself to bin, and bin to the package.
func (t tree) beside(dir string) []fs.DirEntry {
	for place, p := range t.programs() {
		switch dir {
		case path.Dir(place):
			return []fs.DirEntry{programInfo(place, p)}
		case path.Dir(path.Dir(place)):
			return []fs.DirEntry{info{name: "bin", mode: fs.ModeDir | 0o555}}
		}
	}
	return nil
}

// A program is an open one.
type program struct {
	info
	of   *carried.Program
	code *bytes.Reader // nil until it is read
}

func (p *program) Stat() (fs.FileInfo, error) { return p.info, nil }
func (p *program) Close() error               { return nil }

func (p *program) Read(b []byte) (int, error) {
	if p.code == nil {
		code, err := p.of.Code()
		if err != nil {
			return 0, err
		}
		p.code = bytes.NewReader(code)
	}
	return p.code.Read(b)
}

// SHA256 returns the digest of the program, which need not be unpacked for that.
func (p *program) SHA256() [sha256.Size]byte { return p.of.Digest }

// A directory is an open one.
type directory struct {
	info
	left []fs.DirEntry
}

func (d *directory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *directory) Close() error               { return nil }
func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

// ReadDir implements [fs.ReadDirFile].
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.left) == 0 {
		return nil, io.EOF
	}
	if n <= 0 || n > len(d.left) {
		n = len(d.left)
	}
	entries := d.left[:n]
	d.left = d.left[n:]
	return entries, nil
}

// An info describes a file or a directory, and is its entry in the one above.
type info struct {
	name string
	size int64
	mode fs.FileMode
}

func programInfo(place string, p *carried.Program) info {
	return info{path.Base(place), p.Size, 0o555}
}

func (i info) Name() string               { return i.name }
func (i info) Size() int64                { return i.size }
func (i info) Mode() fs.FileMode          { return i.mode }
func (i info) Type() fs.FileMode          { return i.mode.Type() }
func (i info) ModTime() time.Time         { return time.Time{} }
func (i info) IsDir() bool                { return i.mode.IsDir() }
func (i info) Sys() any                   { return nil }
func (i info) Info() (fs.FileInfo, error) { return i, nil }
