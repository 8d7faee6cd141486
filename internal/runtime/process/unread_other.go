//go:build !linux

package process

// unread reports nothing where the system is not asked.
func (c *child) unread() bool { return false }
