// Package filelock holds the locks of files by which processes of one machine take turns.
package filelock

import (
	"errors"
	"os"
	"syscall"
)

// A Lock is a file whose lock this process holds. The kernel lets go of it when
// the process ends, however it ends.
type Lock struct{ file *os.File }

// Acquire waits for the lock at path.
func Acquire(path string) (*Lock, error) { return flock(path, syscall.LOCK_EX) }

// Try returns nil without an error if another process holds the lock.
func Try(path string) (*Lock, error) {
	l, err := flock(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return l, err
}

func flock(path string, how int) (*Lock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		for {
			err = syscall.Flock(int(f.Fd()), how)
			if err != syscall.EINTR {
				break
			}
		}
		if err != nil {
			f.Close()
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		// The previous holder of the lock may have removed the file meanwhile; then this locks
		// a file that no other process will ever find.
		ours, err := f.Stat()
		if err == nil {
			var named os.FileInfo
			if named, err = os.Stat(path); err == nil && os.SameFile(ours, named) {
				return &Lock{f}, nil
			}
		}
		f.Close()
		if err != nil && !os.IsNotExist(err) {
			return nil, err
		}
	}
}

// Release lets go of the lock and leaves the file.
func (l *Lock) Release() { l.file.Close() }

// Remove removes the file and lets go of the lock, in this order.
func (l *Lock) Remove() {
	os.Remove(l.file.Name())
	l.file.Close()
}
