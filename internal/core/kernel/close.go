package kernel

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/base/waitfor"
	"github.com/mortise-dev/mortise/plugin"
)

// drainTime is how long [Kernel.Close] waits for calls that were cancelled to be
// recorded.
const drainTime = 30 * time.Second

// An admission counts the calls in flight, from their acceptance to their entry.
// A host closes in this order: it stops admitting calls and cancels those in
// flight, its parts end, the last calls write their entries, and then the ledger
// is closed.
type admission struct {
	closing atomic.Bool // the host begins to close; set with mu held

	mu       sync.Mutex     // guards the rest
	newest   *admitted      // of the calls in flight
	calls    map[string]int // in flight, by their id
	admitted int            // before the host began to close
	inFlight int            // these, and those that are refused since
	closed   bool           // no other call is recorded any more
	changed  chan struct{}  // closed when there are fewer; nil where nothing waits
}

func newAdmission() *admission { return &admission{calls: map[string]int{}} }

// An admitted is one call in flight, in a list of all of them. It has a context that ends
// when the host closes.
type admitted struct {
	admission    *admission
	id           string
	waiting      *waitfor.Call
	cancel       context.CancelCauseFunc
	counts       int // 1 for a call that came before the host began to close
	newer, older *admitted
}

// What calls hear while the host closes, and afterwards.
var (
	errClosing = &plugin.Error{Code: plugin.CodeUnavailable, Message: "the host is closing: it takes no new calls, and stops those at work; call again once it is back", Retryable: true}
	errClosed  = &plugin.Error{Code: plugin.CodeUnavailable, Message: "the host is closed: the call was not made, and there is no entry of it", Retryable: true}
)

// enter admits a call, with a context that ends when the host closes. [admitted.leave] must
// follow once its entry is written; a nil one has nothing to leave.
func (a *admission) enter(ctx context.Context, id string) (inside context.Context, in *admitted, err error) {
	in = &admitted{admission: a, id: id}
	inside, in.cancel = context.WithCancelCause(ctx)
	if !a.add(in) {
		in.cancel(nil)
		return ctx, nil, errClosed
	}
	inside, in.waiting = waitfor.Enter(inside, id)
	return inside, in, nil
}

// add takes a call into the list, unless no call is recorded any more.
func (a *admission) add(in *admitted) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return false
	case a.closing.Load():
		in.cancel(errClosing)
	default:
		in.counts = 1
	}
	a.admitted += in.counts
	a.inFlight++
	a.calls[in.id]++
	if in.older = a.newest; in.older != nil {
		in.older.newer = in
	}
	a.newest = in
	return true
}

// leave says that the entry of the call is written.
func (in *admitted) leave() {
	if in == nil {
		return
	}
	in.waiting.Leave()
	in.cancel(nil)
	a := in.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	if in.older != nil {
		in.older.newer = in.newer
	}
	if in.newer != nil {
		in.newer.older = in.older
	} else {
		a.newest = in.older
	}
	a.admitted -= in.counts
	a.inFlight--
	if a.calls[in.id]--; a.calls[in.id] == 0 {
		delete(a.calls, in.id)
	}
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// end cancels the calls in flight, and those to come.
func (a *admission) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closing.Swap(true) {
		return
	}
	for in := a.newest; in != nil; in = in.older {
		go in.cancel(errClosing) // it calls what waits for the context
	}
}

// atWork returns how many calls are in flight.
func (a *admission) atWork() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inFlight
}

// has reports whether a call is in flight.
func (a *admission) has(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[id] > 0
}

// open refuses a call once the host has begun to close.
func (a *admission) open() error {
	if a.closing.Load() {
		return errClosing
	}
	return nil
}

// Stop ends the admission of calls and cancels those in flight. Calls that come
// later are refused, and recorded as such until [Kernel.Close] has returned.
func (k *Kernel) Stop() { k.admission.end() }

// Close stops the kernel and returns once every call has its entry. The ledger
// stays open until then. It may be called again.
func (k *Kernel) Close() error {
	k.Stop()
	a := k.admission
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	for {
		a.mu.Lock()
		// Those that are refused meanwhile keep the host from closing no longer
		// than it takes to record them.
		a.closed = a.closed || a.admitted == 0
		if a.inFlight == 0 {
			a.mu.Unlock()
			return k.recordAll()
		}
		if a.changed == nil {
			a.changed = make(chan struct{})
		}
		changed := a.changed
		a.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C:
			a.mu.Lock()
			defer a.mu.Unlock()
			a.closed = true
			return fmt.Errorf("%d calls did not end within %s", a.inFlight, drainTime)
		}
	}
}
