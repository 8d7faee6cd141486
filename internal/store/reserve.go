package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
)

// ErrFull means that a write found no room on the disk. Nothing of it was
// written, and the store goes on: the next write may find room.
var ErrFull = errors.New("the disk of the database is full")

// settling marks the context of a write that the reserve is for.
type settling struct{}

// Settling returns a context whose writes may use up the reserve: they record
// what has happened already, and are not a reason for anything to happen.
func Settling(ctx context.Context) context.Context {
	return context.WithValue(ctx, settling{}, true)
}

// IsSettling reports whether ctx is of [Settling].
func IsSettling(ctx context.Context) bool { return ctx.Value(settling{}) != nil }

// ReserveSize is how much room a reserve keeps: more than the largest answer
// takes in the write-ahead log.
const ReserveSize = 12 << 20

// ReserveFile is the name of the reserve in its directory.
const ReserveFile = "reserve"

// A Reserve keeps room on the disk for the record of what is under way. While
// the disk is full its file is given up, so that calls that have had effects can
// be settled; no new effect begins before the file is whole again. All hosts of
// a data directory share the file.
type Reserve struct {
	path string
	size int64
	mu   sync.Mutex // one at a time makes it whole
}

// NewReserve returns the reserve in dir; its file is made by [Reserve.Ensure].
func NewReserve(dir string, size int64) *Reserve {
	return &Reserve{path: dir + string(os.PathSeparator) + ReserveFile, size: size}
}

// Ensure returns nil once the reserve is whole, and makes it so where there is
// room. Its error is [ErrFull] where there is none.
func (r *Reserve) Ensure() error {
	if r.whole() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.whole() {
		return nil
	}
	f, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return full(err)
	}
	defer f.Close()
	// The last bit of room is not taken: the write-ahead log needs some as well.
	var disk syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &disk); err == nil {
		if free, needed := int64(disk.Bavail)*int64(disk.Bsize), r.size+r.size/4; free < needed {
			return fmt.Errorf("%w: %d KiB are free and %d KiB are needed", ErrFull, free>>10, needed>>10)
		}
	}
	err = allocate(f, r.size)
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		err = fill(f, r.size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return full(errors.Join(err, f.Truncate(0)))
	}
	return nil
}

// whole reports whether the file has its room on the disk.
func (r *Reserve) whole() bool {
	info, err := os.Stat(r.path)
	if err != nil || info.Size() < r.size {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Blocks*512 >= r.size
}

// Release gives the room of the reserve to others, and reports whether there
// was any.
func (r *Reserve) Release() bool {
	info, err := os.Stat(r.path)
	if err != nil || info.Size() == 0 {
		return false
	}
	return os.Truncate(r.path, 0) == nil
}

// fill writes what cannot be allocated.
func fill(f *os.File, size int64) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = 0xA5 // a file system may keep zeros as a hole
	}
	for n := int64(0); n < size; n += int64(len(block)) {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// full returns err as ErrFull where it says that there is no room.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	return err
}
