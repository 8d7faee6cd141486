package process

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/waitfor"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// take gives the worker one more call. The group's lock is held.
func (w *worker) take(call *waitfor.Call) {
	w.busy++
	if call != nil {
		w.holders = append(w.holders, call)
	}
}

// drop takes the call from those that hold the worker.
func (w *worker) drop(call *waitfor.Call) {
	if i := slices.Index(w.holders, call); call != nil && i >= 0 {
		w.holders = slices.Delete(w.holders, i, i+1)
	}
}

// enqueue lets a call wait: a nested one before those that hold nothing, which
// others wait for. The lock is held.
func (g *group) enqueue(own *waiter) {
	at := len(g.waiting)
	if own.call.Nested() {
		at = slices.IndexFunc(g.waiting, func(w *waiter) bool { return !w.call.Nested() })
		if at < 0 {
			at = len(g.waiting)
		}
	}
	g.waiting = slices.Insert(g.waiting, at, own)
}

// Holders implements [waitfor.Resource]: the group is free where a worker has
// room or another may be started, and else held by the calls at work.
func (g *group) Holders() (calls []*waitfor.Call, free bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.starting > 0 || g.freest() != nil || !g.full && g.live() < g.limit {
		return nil, true
	}
	for _, w := range g.workers {
		if w.retired {
			continue
		}
		if w.busy > len(w.holders) { // calls that were given up end by themselves
			return nil, true
		}
		calls = append(calls, w.holders...)
	}
	return calls, false
}

// spare starts a worker beyond the limit for a call that would wait for itself,
// where processes of the scope are alike, and reports whether it did. The
// runner's limit of all processes holds.
func (g *group) spare(own *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || !slices.Contains(g.waiting, own) {
		return true // it has its answer
	}
	if g.key.scope.Kind != plugin.IsolationTenant && g.key.scope.Kind != plugin.IsolationCall {
		return false
	}
	if time.Until(g.retryAt) > 0 {
		return false
	}
	g.starting++
	g.runner.work.Go(func() { g.startOne(0) })
	return true
}

// refuse takes a call out of those that wait, with this answer; one that has its
// answer keeps it.
func (g *group) refuse(own *waiter, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, own); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		own.ready <- grant{err: why}
	}
}

// unblock looks after the nested calls that wait once the group has fewer workers
// than before: where none of them could be served they get an extra one, or are
// refused. err is why none can be started, nil where that was not tried.
func (g *group) unblock(err error) {
	if waitfor.Live(g) {
		return
	}
	g.mu.Lock()
	waiting := slices.Clone(g.waiting)
	g.mu.Unlock()
	for _, w := range waiting {
		switch {
		case !w.call.Nested():
		case err != nil:
			g.refuse(w, err)
		case g.spare(w):
			return
		default:
			g.refuse(w, g.cyclic(w.call))
		}
	}
}

// cyclic says why a call cannot have a process.
func (g *group) cyclic(call *waitfor.Call) error {
	holders, _ := g.Holders()
	if slices.ContainsFunc(holders, call.Within) {
		return &unsent{plugin.Errorf(plugin.CodeLimitExceeded,
			"%s: the call would wait for itself: isolation %s gives it one process, and a call that this one is nested in holds that; let the plugin take more calls at a time, or call no operation from inside itself",
			g.name(), g.key.scope.Kind)}
	}
	return &unsent{&plugin.Error{Code: plugin.CodeOverloaded, Retryable: true, RetryAfter: time.Second,
		Message: g.name() + ": every process is held by a call that waits, through others, for the one that asks; try again once those have ended"}}
}

// An unsent error is one of a request that never reached the plugin; an
// interrupted one came after the plugin had it. Whether a call may have had an
// effect follows from this, and not from the code.
type (
	unsent      struct{ err error }
	interrupted struct{ err error }
)

// Sent reports whether the plugin may have seen the request.
func (*unsent) Sent() bool      { return false }
func (*interrupted) Sent() bool { return true }

// unreached is err of a call that no plugin had.
func unreached(err error) error {
	var said interface{ Sent() bool }
	if errors.As(err, &said) {
		return err
	}
	return &unsent{err}
}

// unanswered is err of a call that the plugin may have had, and did not answer.
func unanswered(err error) error {
	if err == nil {
		return nil
	}
	var said interface{ Sent() bool }
	if errors.As(err, &said) {
		return err
	}
	return &interrupted{err}
}

func (e *unsent) Error() string      { return e.err.Error() }
func (e *unsent) Unwrap() error      { return e.err }
func (e *interrupted) Error() string { return e.err.Error() }
func (e *interrupted) Unwrap() error { return e.err }

// A reservation is a process that a call has before it runs.
type reservation struct {
	mu     sync.Mutex
	group  *group  // of protocol 2
	worker *worker // taken until it is used or given back
	slot   bool    // of protocol 1: room for one more process
}

type reservationKey struct{}

// Reserve waits for a process that may serve the call. A Run with a context that
// with returns has it; release gives back what no Run has used. A call that asks
// for a process before it is claimed can be refused without burning its key.
func (r *Runner) Reserve(ctx context.Context, target *plugin.Target, call *plugin.Call) (with func(context.Context) context.Context, release func(), err error) {
	own := &reservation{}
	if target.Manifest.Runner.Protocol == protocol.Version1 {
		if err := r.reserve(); err != nil {
			return nil, nil, &unsent{err}
		}
		own.slot = true
	} else if own.group, own.worker, err = r.acquire(ctx, target, call); err != nil {
		return nil, nil, err
	}
	holder := waitfor.From(ctx)
	with = func(ctx context.Context) context.Context { return context.WithValue(ctx, reservationKey{}, own) }
	return with, func() {
		if own.takeSlot() {
			r.unreserve()
		}
		if w := own.take(own.group); w != nil {
			own.group.release(w, holder, &notSent{errUnused})
		}
	}, nil
}

var errUnused = errors.New("the process was not needed")

func reserved(ctx context.Context) *reservation {
	own, _ := ctx.Value(reservationKey{}).(*reservation)
	return own
}

// take returns the worker, once, if it is of that group.
func (v *reservation) take(g *group) *worker {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.group != g {
		return nil
	}
	w := v.worker
	v.worker = nil
	return w
}

func (v *reservation) takeSlot() bool {
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	had := v.slot
	v.slot = false
	return had
}

// acquire returns a process that may serve the call, with its group.
func (r *Runner) acquire(ctx context.Context, target *plugin.Target, call *plugin.Call) (*group, *worker, error) {
	for {
		g, err := r.group(ctx, target, call)
		if err != nil {
			return nil, nil, unreached(err)
		}
		if w := reserved(ctx).take(g); w != nil {
			return g, w, nil
		}
		w, err := g.acquire(ctx)
		switch {
		case err == errStale:
		case err != nil:
			return nil, nil, unreached(of(target, err))
		default:
			return g, w, nil
		}
	}
}
