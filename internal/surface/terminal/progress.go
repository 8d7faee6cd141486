package terminal

import (
	"sync"
	"time"
)

// Longest is how long work may take before a person hears of it.
const Longest = 2 * time.Second

// A Progress shows what is being done, how much of it is done and for how long, as the
// status of a screen. Work that takes less than [Longest] shows nothing.
type Progress struct {
	screen *Screen
	begun  time.Time

	mu           sync.Mutex // guards the two below
	what, amount string

	quit, done chan struct{}
}

// Begin begins to show work. The caller ends it with End.
func (s *Screen) Begin(what string) *Progress {
	p := &Progress{screen: s, begun: time.Now(), what: what, quit: make(chan struct{}), done: make(chan struct{})}
	if !s.rewrites {
		close(p.done)
		return p
	}
	go func() {
		defer close(p.done)
		for next := time.NewTimer(Longest); ; next.Reset(time.Second) {
			select {
			case <-p.quit:
				next.Stop()
				return
			case <-next.C:
				p.show()
			}
		}
	}()
	return p
}

// Set says what is being done now and, unless amount is empty, how much of it is done.
func (p *Progress) Set(what, amount string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.what, p.amount = what, amount
}

// show rewrites the status.
func (p *Progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.what == "" { // nothing has begun yet
		return
	}
	text := p.what
	if p.amount != "" {
		text += ", " + p.amount
	}
	p.screen.Status(text + ", " + Short(time.Since(p.begun)))
}

// End takes the status away.
func (p *Progress) End() {
	close(p.quit)
	<-p.done
	p.screen.Status("")
}
