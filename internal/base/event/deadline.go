package event

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// grace is how long a handler has to notice that its deadline has passed.
const grace = 50 * time.Millisecond

// timed calls a handler that has a deadline, in a goroutine of its own. Once the
// deadline and the grace have passed it is left to itself; Close waits for it.
func timed[T any](ctx context.Context, b *Bus, h *handler, call func(context.Context) (T, error)) (T, error) {
	var none T
	if h.late.Load() > 0 {
		return none, plugin.Errorf(plugin.CodeOverloaded, "it is still at work on an earlier event, which it should have answered within %s", h.Deadline)
	}
	if !b.begin() {
		return none, closed(b.agent)
	}
	type answer struct {
		value T
		err   error
	}
	bounded, cancel := context.WithTimeout(ctx, h.Deadline)
	defer cancel()
	done := make(chan answer, 1)
	var over atomic.Bool // a compare-and-set decides: the handler came back, or its deadline passed first
	go func() {
		defer b.end()
		a := answer{err: plugin.Errorf(plugin.CodeCrashed, "it ended its goroutine")}
		defer func() {
			if value := recover(); value != nil {
				a.err = caught(value)
			}
			if !over.CompareAndSwap(false, true) {
				h.late.Add(-1)
			}
			done <- a
		}()
		a.value, a.err = call(bounded)
	}()
	select {
	case a := <-done:
		return a.value, a.err
	case <-bounded.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done: // too late to count
	case <-timer.C:
		h.late.Add(1)
		if !over.CompareAndSwap(false, true) {
			h.late.Add(-1)
		}
	}
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	return none, plugin.Errorf(plugin.CodeTimeout, "it did not answer within its deadline of %s", h.Deadline)
}
