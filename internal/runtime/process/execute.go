package process

import (
	"context"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// execute runs one call. held reports that the plugin is still at work on it
// when execute returns, because the caller's time was up: onLate tells when
// that has ended.
func (c *conn) execute(ctx context.Context, target *plugin.Target, call *plugin.Call, services plugin.Services) (res plugin.Result, held bool, err error) {
	a, held, err := c.ask(ctx, protocol.AppendExecute, target, call, services)
	if err != nil {
		return res, held, err
	}
	res, err = c.settle(a)
	return res, false, err
}

// A spelling writes a request about a call: [protocol.AppendExecute] and its like.
type spelling func(b []byte, id int64, token, operation string, input []byte, call *plugin.Call, deadlineMS int64) []byte

// ask sends a request about a call and returns the result member of its answer,
// which is not read yet. held is as for execute.
func (c *conn) ask(ctx context.Context, spell spelling, target *plugin.Target, call *plugin.Call, services plugin.Services) (result jsontext.Value, held bool, err error) {
	x := &exchange{answer: answers.Get().(chan answer), token: c.token(), ctx: ctx, call: call, services: services}
	if call.Observe != nil {
		x.events = make(chan plugin.Event, maxEvents)
		defer x.leave()
	}
	input := protocol.Line(call.Input)
	left := int64(0)
	if deadline, ok := ctx.Deadline(); ok {
		left = max(time.Until(deadline).Milliseconds(), 1)
	}
	b, alone, err := c.begin(x)
	if err != nil {
		return nil, false, unreached(err)
	}
	line := spell(b, x.id, x.token, target.Name(), input, call, left)
	if n := len(line) - len(b) - 1; n > c.longest { // the plugin would end over it, and every call in it
		c.out.commit(b, false)
		c.forget(x)
		return nil, false, unreached(plugin.Errorf(plugin.CodeInputTooLarge,
			"%s: the request has %d bytes, and a line of the protocol holds at most %d; send less, or let an administrator raise limits.frame_bytes", target.Name(), n, c.longest))
	}
	c.out.commit(line, alone)
	fault.At("request")
	for {
		select {
		case event := <-x.events:
			x.pass(event)
		case a := <-x.answer:
			x.drain(a.failure != nil, c.unread)
			if a.failure != nil || x.events != nil {
				c.ended(x)
			}
			if !a.held { // else another answer may still come
				answers.Put(x.answer)
			}
			if a.failure != nil && a.err == nil {
				a.err = a.failure
			}
			if a.failure == nil {
				a.err = unanswered(a.err)
			}
			return a.result, a.held, a.err
		case <-ctx.Done():
			return nil, c.giveUp(x, context.Cause(ctx)), &interrupted{plugin.AsError(context.Cause(ctx))}
		}
	}
}

// ended lets stderr no longer speak of x.
func (c *conn) ended(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settling == x {
		c.settling = nil
	}
}

// drain passes on the events that came before the answer. The two pipes keep no common
// order, so it also waits for the lines of stderr that the plugin wrote before: while some
// of them are unread, within a bound, and for a failed call a moment in any case.
func (x *exchange) drain(failed bool, unread func() bool) {
	var moment <-chan time.Time
	grace, moments := readGrace, maxReads
	if failed {
		grace, moments = stderrGrace, maxMoments
	}
	if x.events != nil && (failed || unread()) {
		moment = time.After(grace)
	}
	for {
		select {
		case event := <-x.events:
			x.pass(event)
			continue
		default:
		}
		if moment == nil {
			return
		}
		select {
		case event := <-x.events:
			x.pass(event)
		case <-moment:
			moment = nil
			if moments--; moments > 0 && unread() {
				moment = time.After(grace)
			}
		}
	}
}

// How long a moment is, and how many there are at most: of a failed call, and of another.
const (
	stderrGrace = 20 * time.Millisecond
	maxMoments  = 25
	readGrace   = time.Millisecond
	maxReads    = 100
)

// answers are channels for the answers of calls, all empty.
var answers = sync.Pool{New: func() any { return make(chan answer, 1) }}

// settle turns an answer into a result. An answer that is no result ends the connection.
func (c *conn) settle(result jsontext.Value) (plugin.Result, error) {
	res, failure, err := protocol.ParseResult(result)
	if err != nil {
		return plugin.Result{}, c.broken(protocol.MethodExecute, err)
	}
	if failure != nil {
		return res, failure
	}
	return res, nil
}

// broken ends the connection for an answer to method that is none.
func (c *conn) broken(method string, why error) error {
	err := c.malformed("%s: %v", method, why)
	c.fail(err)
	return err
}

// giveUp tells the plugin to stop the work on x, and reports whether it still
// owes an answer.
func (c *conn) giveUp(x *exchange, cause error) (held bool) {
	c.mu.Lock()
	delete(c.tokens, x.token) // its services die with the attempt
	_, held = c.pending[x.id]
	x.late = held
	c.mu.Unlock()
	if !held {
		return false
	}
	reason := "cancelled"
	if plugin.CodeOf(cause) == plugin.CodeTimeout {
		reason = "timeout"
	}
	c.notify(protocol.MethodCancel, protocol.Cancel{Call: x.token, Reason: reason})
	return true
}
