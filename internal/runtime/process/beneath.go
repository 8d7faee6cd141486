package process

import (
	"io/fs"
	"os"
	"syscall"
)

// beneath reads files of a directory that a plugin writes to. No name leads outside the
// directory, and no open blocks: a FIFO without a writer would block its reader for
// ever.
type beneath struct{ root *os.Root }

var _ fs.StatFS = beneath{}

// Open opens a file for reading.
func (b beneath) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := b.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err // not a nil file in an interface
	}
	return file, nil
}

// Stat says what a name is, links followed.
func (b beneath) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return b.root.Stat(name)
}
