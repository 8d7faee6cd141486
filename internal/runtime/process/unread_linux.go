package process

import "golang.org/x/sys/unix"

// unread reports whether the process wrote to stderr what the host has not read, or not yet
// passed on.
func (c *child) unread() bool {
	if !c.tail.idle.Load() {
		return true
	}
	raw, err := c.stderr.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
	return err == nil && n > 0
}
