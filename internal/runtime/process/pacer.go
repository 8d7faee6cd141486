package process

import (
	"io"
	"time"
)

// How fast the host takes in what a plugin says unasked: events, logs, stderr.
// Who says more than paceRoom in a burst waits, so that a flood does not keep
// the host from its other plugins.
const (
	paceRoom  = 512 << 10             // bytes at once
	paceRate  = 5 << 20               // bytes a second from then on
	paceLine  = 512                   // bytes that a notification counts for beside its own
	paceText  = 64                    // likewise for a line of stderr
	paceMost  = 64 << 10              // bytes that anything counts for: large content is not for the waiting
	pacePause = 10 * time.Millisecond // for which is waited at a time
)

// A pacer is that bound for one stream. It is not safe for concurrent use.
type pacer struct {
	room  int       // bytes left
	since time.Time // when that was so
}

// take takes so many bytes, and waits where there are none left.
func (p *pacer) take(bytes int) {
	p.room -= min(bytes, paceMost)
	if p.room > 0 {
		return
	}
	p.refill()
	for p.room <= 0 {
		time.Sleep(pacePause)
		p.refill()
	}
}

// refill adds what the time that went by is good for.
func (p *pacer) refill() {
	now := time.Now()
	gone := min(now.Sub(p.since), time.Second)
	p.room = min(p.room+int(int64(gone)*paceRate/int64(time.Second)), paceRoom)
	p.since = now
}

// A pacedReader reads as its reader does, at that pace.
type pacedReader struct {
	r    io.Reader
	free func() bool // whether it is not held back now
	pacer
}

func (p *pacedReader) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.took(n)
	return n, err
}

// took is take, where it is held back.
func (p *pacedReader) took(bytes int) {
	if !p.free() {
		p.take(bytes)
	}
}
