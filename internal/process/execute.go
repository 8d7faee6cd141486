package process

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// execute runs one call. held reports that the plugin is still at work on it
// when execute returns, because the caller's time was up: onLate tells when
// that has ended.
func (s *session) execute(ctx context.Context, target *plugin.Target, call *plugin.Call, services plugin.Services) (res plugin.Result, held bool, err error) {
	x := &exchange{answer: answers.Get().(chan answer), token: s.token(), ctx: ctx, call: call, services: services}
	if call.Observe != nil {
		x.events = make(chan plugin.Event, maxEvents)
	}
	input := protocol.Line(call.Input)
	left := int64(0)
	if deadline, ok := ctx.Deadline(); ok {
		left = max(time.Until(deadline).Milliseconds(), 1)
	}
	b, alone, err := s.begin(x)
	if err != nil {
		return res, false, err
	}
	s.out.commit(protocol.AppendExecute(b, x.id, x.token, target.Name(), input, call, left), alone)
	for {
		select {
		case event := <-x.events:
			call.Observe(event)
		case a := <-x.answer:
			x.drain(a.failure != nil)
			if a.failure != nil {
				s.ended(x)
			}
			if !a.held { // else another answer may still come
				answers.Put(x.answer)
			}
			res, err = s.settle(a)
			return res, a.held, err
		case <-ctx.Done():
			return res, s.giveUp(x, context.Cause(ctx)), plugin.AsError(context.Cause(ctx))
		}
	}
}

// ended lets stderr no longer speak of x.
func (s *session) ended(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing == x {
		s.failing = nil
	}
}

// drain passes on the events that came before the answer. The two pipes keep
// no common order: of a call that failed, a moment is given to what the plugin
// wrote to stderr about it.
func (x *exchange) drain(failed bool) {
	var moment <-chan time.Time
	if failed && x.events != nil {
		moment = time.After(stderrGrace)
	}
	for {
		select {
		case event := <-x.events:
			x.call.Observe(event)
			continue
		default:
		}
		if moment == nil {
			return
		}
		select {
		case event := <-x.events:
			x.call.Observe(event)
		case <-moment:
			moment = nil
		}
	}
}

// stderrGrace is that moment.
const stderrGrace = 20 * time.Millisecond

// answers are channels for the answers of calls, all empty.
var answers = sync.Pool{New: func() any { return make(chan answer, 1) }}

// settle turns an answer into a result. An answer that is no result ends the session.
func (s *session) settle(a answer) (plugin.Result, error) {
	switch {
	case a.err != nil:
		return plugin.Result{}, a.err
	case a.failure != nil:
		return plugin.Result{}, a.failure
	}
	res, failure, err := protocol.ParseResult(a.result)
	if err != nil {
		err := s.malformed("execute: %v", err)
		s.fail(err)
		return plugin.Result{}, err
	}
	if failure != nil {
		return res, failure
	}
	return res, nil
}

// giveUp tells the plugin to stop the work on x, and reports whether it still
// owes an answer.
func (s *session) giveUp(x *exchange, cause error) (held bool) {
	s.mu.Lock()
	delete(s.tokens, x.token) // its services die with the attempt
	_, held = s.pending[x.id]
	x.late = held
	s.mu.Unlock()
	if !held {
		return false
	}
	reason := "cancelled"
	if plugin.CodeOf(cause) == plugin.CodeTimeout {
		reason = "timeout"
	}
	s.notify(protocol.MethodCancel, protocol.Cancel{Call: x.token, Reason: reason})
	return true
}
