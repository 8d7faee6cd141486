//go:build !linux

package process

// unread reports whether the host has read lines of stderr that it has not yet passed on.
// What is still in the pipe is not counted: only Linux is asked for that.
func (c *child) unread() bool { return !c.tail.idle.Load() }
