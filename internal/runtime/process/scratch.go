package process

import (
	"io/fs"
	"os"
	"syscall"
)

// scratchFiles reads files of a directory that a plugin writes to. No name leads outside the
// directory, and no open blocks: a FIFO without a writer would block its reader for
// ever.
type scratchFiles struct{ root *os.Root }

var _ fs.StatFS = scratchFiles{}

// Open opens a file for reading.
func (s scratchFiles) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err // not a nil file in an interface
	}
	return file, nil
}

// Stat says what a name is, links followed.
func (s scratchFiles) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return s.root.Stat(name)
}
