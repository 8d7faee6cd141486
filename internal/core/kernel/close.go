package kernel

import (
	"context"
	"fmt"
	"sync"
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
	life context.Context // of the calls; ends when the host begins to close
	end  context.CancelCauseFunc

	mu       sync.Mutex     // guards the rest
	calls    map[string]int // in flight, by their id
	admitted int            // before the host began to close
	inFlight int            // these, and those that are refused since
	closed   bool           // no other call is recorded any more
	changed  chan struct{}  // closed when there are fewer; nil where nothing waits
}

func newAdmission() *admission {
	a := &admission{calls: map[string]int{}}
	a.life, a.end = context.WithCancelCause(context.Background())
	return a
}

// What calls hear while the host closes, and afterwards.
var (
	errClosing = &plugin.Error{Code: plugin.CodeUnavailable, Message: "the host is closing: it takes no new calls, and stops those at work; call again once it is back", Retryable: true}
	errClosed  = &plugin.Error{Code: plugin.CodeUnavailable, Message: "the host is closed: the call was not made, and there is no entry of it", Retryable: true}
)

// enter admits a call, with a context that ends when the host closes. leave must
// follow once its entry is written.
func (a *admission) enter(ctx context.Context, id string) (inside context.Context, leave func(), err error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return ctx, func() {}, errClosed
	}
	admitted := 0
	if a.life.Err() == nil {
		admitted = 1
	}
	a.admitted += admitted
	a.inFlight++
	a.calls[id]++
	a.mu.Unlock()
	inside, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(a.life, func() { cancel(errClosing) })
	inside, ended := waitfor.Enter(inside, id)
	return inside, func() {
		ended()
		stop()
		cancel(nil)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.admitted -= admitted
		a.inFlight--
		if a.calls[id]--; a.calls[id] == 0 {
			delete(a.calls, id)
		}
		if a.changed != nil {
			close(a.changed)
			a.changed = nil
		}
	}, nil
}

// has reports whether a call is in flight.
func (a *admission) has(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls[id] > 0
}

// open refuses a call once the host has begun to close.
func (a *admission) open() error {
	if a.life.Err() != nil {
		return errClosing
	}
	return nil
}

// Stop ends the admission of calls and cancels those in flight. Calls that come
// later are refused, and recorded as such until [Kernel.Close] has returned.
func (k *Kernel) Stop() { k.admission.end(errClosing) }

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
