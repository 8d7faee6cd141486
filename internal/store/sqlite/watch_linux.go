package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// again is when fn is called again after the last write: a commit is written to the journal
// before it is synced, and seen by others after that.
var again = []time.Duration{10 * time.Millisecond, 40 * time.Millisecond, 150 * time.Millisecond, 800 * time.Millisecond}

// watchFile has fn called, on a goroutine of its own, after any process wrote to a file of a
// directory, until stop is called. It reports whether the kernel tells of that.
func watchFile(path string, fn func()) (stop func(), watched bool) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil { // a user has so many, and no more
		return func() {}, false
	}
	told := os.NewFile(uintptr(fd), "inotify")
	// The directory, for the file comes and goes.
	if _, err := syscall.InotifyAddWatch(fd, filepath.Dir(path), syscall.IN_MODIFY|syscall.IN_CREATE); err != nil {
		_ = told.Close()
		return func() {}, false
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buffer := make([]byte, 16<<10)
		left := []time.Duration{}
		for {
			n, err := told.Read(buffer)
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				left = left[1:]
			case err != nil:
				return
			case !names(buffer[:n], filepath.Base(path)):
				continue
			default:
				left = again
			}
			next := time.Time{}
			if len(left) > 0 {
				next = time.Now().Add(left[0])
			}
			_ = told.SetReadDeadline(next)
			fn()
		}
	}()
	return func() { _ = told.Close(); <-ended }, true
}

// names reports whether one of some events is of a file, or events were lost.
func names(events []byte, file string) bool {
	for len(events) >= syscall.SizeofInotifyEvent {
		mask, length := binary.NativeEndian.Uint32(events[4:]), int(binary.NativeEndian.Uint32(events[12:]))
		end := min(syscall.SizeofInotifyEvent+length, len(events))
		name, _, _ := bytes.Cut(events[syscall.SizeofInotifyEvent:end], []byte{0})
		if string(name) == file || mask&syscall.IN_Q_OVERFLOW != 0 {
			return true
		}
		events = events[end:]
	}
	return false
}
