package rest

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// smallBody is how many bytes of each body are not counted. The number of requests that are
// answered at a time is bounded, so a small body finds room whatever the others hold.
const smallBody = 64 << 10

// A bodyRoom counts the bytes of bodies that are held at a time, in all and by name.
type bodyRoom struct {
	mu  sync.Mutex
	all int64
	by  map[string]int64
}

// A bodyLimit is how many bytes the requests may hold that are counted under one name.
type bodyLimit struct {
	name string
	who  string // as messages call it
	most int64
}

// take adds n bytes, or returns why there is no room for them.
func (b *bodyRoom) take(n, room int64, limits []bodyLimit) *plugin.Error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, l := range limits {
		if b.by[l.name]+n > l.most {
			message := fmt.Sprintf("the requests of %s hold at most %d bytes of bodies at a time", l.who, l.most)
			return &plugin.Error{Code: plugin.CodeRateLimited, Message: message, RetryAfter: time.Second}
		}
	}
	if b.all+n > room {
		return &plugin.Error{Code: plugin.CodeOverloaded, Message: "the host has more requests at hand than it takes", RetryAfter: time.Second}
	}
	if b.by == nil {
		b.by = map[string]int64{}
	}
	b.all += n
	for _, l := range limits {
		b.by[l.name] += n
	}
	return nil
}

// give takes n bytes away again.
func (b *bodyRoom) give(n int64, limits []bodyLimit) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= n
	for _, l := range limits {
		if b.by[l.name] -= n; b.by[l.name] == 0 {
			delete(b.by, l.name)
		}
	}
}

// A countedBody is a body whose bytes are counted as they arrive: a length that a request only
// announces takes no room.
type countedBody struct {
	io.Reader
	room   *bodyRoom
	all    int64 // bytes that there is room for
	limits []bodyLimit

	read, counted int64
}

// counted returns a body that counts towards the room of all, of its caller, and of the tenant
// of the caller. most is the length of the longest body, which always fits in a share.
func (s *server) counted(c *host.Caller, in io.Reader, most int64) *countedBody {
	limits := []bodyLimit{{countedAs(c), "a token", max(s.Room/4, most)}}
	if tenant := s.tenantOf(c); tenant != "" {
		limits = append(limits, bodyLimit{tenant, "a tenant", max(s.Room*3/8, most)})
	}
	return &countedBody{Reader: in, room: &s.bodies, all: s.Room, limits: limits}
}

// Read implements [io.Reader]. It returns a [*plugin.Error] if there is no room.
func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += int64(n)
	if more := c.read - smallBody - c.counted; more > 0 {
		if full := c.room.take(more, c.all, c.limits); full != nil {
			return n, full
		}
		c.counted += more
	}
	return n, err
}

// release gives back what the body counts, once it is not needed any more.
func (c *countedBody) release() {
	c.room.give(c.counted, c.limits)
	c.counted = 0
}
