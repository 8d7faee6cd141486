//go:build linux && amd64

package main

import (
	"encoding/binary"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// ring are attempts through io_uring, which makes system calls that no filter of
// system calls sees.
var ring = []probe{
	{"ring.setup", func(canary.Config) result {
		_, err := newQueue(0)
		return judge(err)
	}},
	{"ring.setup_polled", func(canary.Config) result {
		_, err := newQueue(1 << 1) // a thread of the kernel takes the entries
		return judge(err)
	}},
	{"ring.enter", func(canary.Config) result {
		return call([]unix.Errno{unix.EBADF, unix.EOPNOTSUPP}, unix.SYS_IO_URING_ENTER, 0, 1, 0, 0, 0, 0)
	}},
	{"ring.register", func(canary.Config) result {
		return call([]unix.Errno{unix.EBADF, unix.EOPNOTSUPP, unix.EINVAL}, unix.SYS_IO_URING_REGISTER, 0, 0, 0, 0)
	}},
	{"ring.open_outside", func(c canary.Config) result {
		path := append([]byte(filepath.Join(c.Outside, "data/ledger.db")), 0)
		r := submit(18, -100, addressOf(&path[0]), 0, 0) // IORING_OP_OPENAT at AT_FDCWD
		runtime.KeepAlive(path)
		return r
	}},
	{"ring.socket", func(canary.Config) result {
		return submit(45, unix.AF_INET, 0, 0, unix.SOCK_STREAM) // IORING_OP_SOCKET
	}},
	{"ring.aio_setup", func(canary.Config) result {
		var context uintptr
		return call(nil, unix.SYS_IO_SETUP, 1, pointer(&context))
	}},
}

// A queue is an io_uring with room for one entry.
type queue struct {
	fd              int
	entries         []byte // one, of 64 bytes
	rings           []byte // both
	tail, slot, cqe uint32 // offsets in rings
}

// parameters is struct io_uring_params: ten numbers, of which the flags are the
// third, then the offsets within the rings of submissions and completions.
type parameters struct {
	_      [2]uint32
	flags  uint32
	_      [7]uint32
	sq, cq [10]uint32
}

func newQueue(flags uint32) (*queue, error) {
	p := parameters{flags: flags}
	fd, err := raw(unix.SYS_IO_URING_SETUP, 1, pointer(&p))
	if err != nil {
		return nil, err
	}
	q := &queue{fd: int(fd), tail: p.sq[1], slot: p.sq[6], cqe: p.cq[5]}
	if q.rings, err = unix.Mmap(q.fd, 0, 8192, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, err
	}
	q.entries, err = unix.Mmap(q.fd, 0x10000000, 64, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return q, err
}

// submit hands one operation to the kernel and judges what became of it.
func submit(operation byte, fd int32, address uintptr, length uint32, offset uint64) result {
	q, err := newQueue(0)
	if err != nil {
		return judge(err)
	}
	e := q.entries
	e[0] = operation
	binary.NativeEndian.PutUint32(e[4:], uint32(fd))
	binary.NativeEndian.PutUint64(e[8:], offset)
	binary.NativeEndian.PutUint64(e[16:], uint64(address))
	binary.NativeEndian.PutUint32(e[24:], length)
	*(*uint32)(unsafe.Pointer(&q.rings[q.slot])) = 0
	*(*uint32)(unsafe.Pointer(&q.rings[q.tail])) = 1
	if _, err := raw(unix.SYS_IO_URING_ENTER, uintptr(q.fd), 1, 1, 1); err != nil {
		return judge(err)
	}
	answer := int32(binary.NativeEndian.Uint32(q.rings[q.cqe+8:]))
	if answer < 0 {
		return judge(unix.Errno(-answer))
	}
	return allowed("descriptor %d", answer)
}
