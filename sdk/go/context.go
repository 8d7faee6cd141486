package mortise

import (
	"context"
	"time"
)

// overdue is how long after the deadline a call ends by itself. The host keeps
// the time, and cancels the call at the deadline: a call that ended by its own
// clock would race with that, and its answer could pass for one in time.
const overdue = time.Second

// limit sets how much time there is, in milliseconds. The deadline counts from now.
func (c *Call) limit(ms int64) {
	c.Limit = time.Duration(ms) * time.Millisecond
	if ms > 0 {
		c.deadline = time.Now().Add(c.Limit)
	}
}

// Deadline returns when the call's time is over; ok is false where the host gave
// no limit, as under version 1 of the protocol. The host drops a later answer.
func (c *Call) Deadline() (deadline time.Time, ok bool) { return c.deadline, !c.deadline.IsZero() }

// Done is closed when the host cancels the call, which it also does at the
// deadline, and when the call has ended. A second after the deadline it is closed
// even where the host has said nothing.
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
		c.timer = time.AfterFunc(time.Until(c.deadline.Add(overdue)), func() { c.end(context.DeadlineExceeded) })
	}
	return c.done
}

// Err returns nil until Done is closed; from then on [context.DeadlineExceeded]
// where the reason is the deadline, else [context.Canceled].
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
	if c.err == nil && c.done == nil && !c.deadline.IsZero() && time.Since(c.deadline) >= overdue {
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
