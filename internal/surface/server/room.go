package server

import (
	"io"
	"sync/atomic"
)

// Bounds of the bytes of bodies that are read or worked on at a time.
const (
	maxBodies = 16 << 20 // of all
	smallBody = 64 << 10 // of one, that are not counted
)

// A counted body is one whose bytes beyond the first count towards those of all.
type counted struct {
	io.Reader
	all       *atomic.Int64
	read, own int64 // own is what it counts
}

// Read fails with errNoRoom where the bodies of all are too much. The one that
// fails gives back what it counts at once, so that it makes room for the others.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += int64(n)
	if more := c.read - smallBody - c.own; more > 0 {
		c.own += more
		if c.all.Add(more) > maxBodies {
			c.leave()
			return n, errNoRoom
		}
	}
	return n, err
}

// leave gives back what the body counts, once it is not needed any more.
func (c *counted) leave() {
	c.all.Add(-c.own)
	c.own = 0
}
