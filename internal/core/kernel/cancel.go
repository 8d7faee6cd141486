package kernel

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// lookForCancelled is how often a process looks whether another wants one of
// its calls to stop.
const lookForCancelled = 500 * time.Millisecond

// Cancel asks a call to stop. One that waits ends at once, one that runs is
// told and ends by itself, one that has ended stays as it is: state is how it
// stood.
func (k *Kernel) Cancel(ctx context.Context, tenant, id, by, reason string) (state ledger.State, err error) {
	state, err = k.Ledger.Cancel(ctx, tenant, id, by, reason, k.Now(), func(tx ledger.Tx) error {
		return approval.Withdraw(ctx, tx, tenant, approval.SubjectCall, id, "the call was cancelled", k.Now())
	})
	if err != nil {
		return state, err
	}
	switch state {
	case ledger.Pending, ledger.Queued:
		k.notify(ctx, tenant, id)
	case ledger.Running:
		k.running.cancel(callID{tenant, id})
	}
	return state, nil
}

// running are the claimed calls that this process runs.
type running struct {
	mu    sync.Mutex
	calls map[callID]context.CancelCauseFunc
	watch bool // a goroutine polls for cancellations by other processes
}

// A callID names a call: ids are unique within their tenant.
type callID struct{ tenant, id string }

func newRunning() *running { return &running{calls: map[callID]context.CancelCauseFunc{}} }

var errCancelled = plugin.Errorf(plugin.CodeCancelled, "the call was cancelled")

// enter registers a running call. Its context ends when the call is cancelled
// in any process. The caller must call leave.
func (r *running) enter(ctx context.Context, k *Kernel, id callID) (inside context.Context, leave func()) {
	inside, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[id] = cancel
	if !r.watch {
		r.watch = true
		time.AfterFunc(lookForCancelled, func() { r.look(k) })
	}
	return inside, func() {
		cancel(nil)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, id)
	}
}

func (r *running) cancel(id callID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.calls[id]; cancel != nil {
		cancel(errCancelled)
	}
}

// look cancels what others want to stop, and comes back while there are calls.
func (r *running) look(k *Kernel) {
	r.mu.Lock()
	if len(r.calls) == 0 {
		r.watch = false
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), 10*lookForCancelled)
	rows, err := k.Ledger.Cancelled(ctx)
	stop()
	if err == nil {
		for _, row := range rows {
			r.cancel(callID{row.Tenant, row.ID})
		}
	}
	time.AfterFunc(lookForCancelled, func() { r.look(k) })
}
