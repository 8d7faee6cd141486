//go:build unix

package protocol

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// nonblocking reports whether a write returns rather than waits.
func nonblocking(raw syscall.RawConn) (yes bool) {
	_ = raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		yes = err == nil && flags&unix.O_NONBLOCK != 0
	})
	return yes
}
