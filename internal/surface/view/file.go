package view

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// An Unwritable says that a file cannot be written where a person wants it.
type Unwritable struct{ error }

// WriteFile writes a file that has its name only once all of it is there. A new
// file has the mode that the person's umask leaves, another one keeps its own; a
// link still leads to it.
func WriteFile(path string, r io.Reader) (err error) {
	if leads, err := filepath.EvalSymlinks(path); err == nil {
		path = leads
	}
	was, statErr := os.Stat(path)
	if statErr == nil && !was.Mode().IsRegular() {
		return Unwritable{fmt.Errorf("%s is no regular file; -o names the file to write", path)}
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), ".mortise-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return Unwritable{err}
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if statErr == nil {
		if stat, is := was.Sys().(*syscall.Stat_t); is {
			_ = f.Chown(int(stat.Uid), int(stat.Gid)) // which the administrator may do
		}
		err = f.Chmod(was.Mode().Perm())
	}
	if err == nil {
		_, err = io.Copy(f, r)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
