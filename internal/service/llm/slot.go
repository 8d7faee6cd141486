package llm

import (
	"context"
	"time"
)

// A slot is the right to one of the queries that are under way at a time, over all
// tenants. A query that waits to be asked again has none meanwhile.
type slot struct {
	d    *Dispatcher
	held bool
}

// take waits for a slot.
func (s *slot) take(ctx context.Context) *Error {
	select {
	case s.d.slots <- struct{}{}:
		s.held = true
		return nil
	case <-ctx.Done():
		return gone(ctx)
	}
}

// release gives the slot back, if there is one.
func (s *slot) release() {
	if s.held {
		s.held = false
		<-s.d.slots
	}
}

// pause waits without the slot, and then for one again.
func (s *slot) pause(ctx context.Context, long time.Duration) *Error {
	s.release()
	if s.d.opts.Wait(ctx, long) != nil {
		return gone(ctx)
	}
	return s.take(ctx)
}
