package mortise

import (
	"context"
	"time"
)

// hostRounds is how much earlier than its own the deadline may be that the host
// tells: it tells whole milliseconds. With it added, the host's comes first.
const hostRounds = time.Millisecond

// limit sets how much time there is, in milliseconds. The deadline counts from now.
func (c *Call) limit(ms int64) {
	c.Limit = time.Duration(ms) * time.Millisecond
	if ms > 0 {
		c.deadline = time.Now().Add(c.Limit + hostRounds)
	}
}

// Deadline returns when the call's time is over, by this machine's clock; ok is
// false where the host gave no limit, as under version 1 of the protocol. The
// host keeps the time by itself: it gives the call up then, and drops a later answer.
func (c *Call) Deadline() (deadline time.Time, ok bool) { return c.deadline, !c.deadline.IsZero() }

// Done is closed when the host cancels the call, when its deadline has passed,
// and when it has ended.
func (c *Call) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done != nil {
		return c.done
	}
	c.done = make(chan struct{})
	if c.ended() != nil {
		close(c.done)
	} else if !c.deadline.IsZero() {
		c.timer = time.AfterFunc(time.Until(c.deadline), func() { c.end(context.DeadlineExceeded) })
	}
	return c.done
}

// Err returns nil until Done is closed; from then on [context.DeadlineExceeded]
// where the deadline has passed, else [context.Canceled].
func (c *Call) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended()
}

// Value returns nil: what a call knows are its fields and what [Call.About] returns.
func (c *Call) Value(any) any { return nil }

// ended returns why the context is done. As long as no channel tells of it, the
// clock decides: a call that does not ask for Done needs no timer.
func (c *Call) ended() error {
	if c.err == nil && c.done == nil && !c.deadline.IsZero() && !time.Now().Before(c.deadline) {
		c.err = context.DeadlineExceeded
	}
	return c.err
}

// end makes the context done, unless it is.
func (c *Call) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = why
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.done != nil {
		close(c.done)
	}
}

// cancel ends the context for the reason that the host gave.
func (c *Call) cancel(reason string) {
	why := context.Canceled
	if reason == "timeout" {
		why = context.DeadlineExceeded
	}
	c.end(why)
}

// gaveUp returns the error of a call whose context is done.
func (c *Call) gaveUp() *Error {
	if c.Err() == context.DeadlineExceeded {
		return ErrTimeout
	}
	return ErrCancelled
}
