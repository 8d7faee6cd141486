package host

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// An Unfinished says that a call has not ended, although nothing is wrong with it.
type Unfinished struct{ Err error }

// Error implements error.
func (u Unfinished) Error() string { return u.Err.Error() }

// Unwrap returns why it is not waited for any longer.
func (u Unfinished) Unwrap() error { return u.Err }

// ErrNotFinished is why, at the end of the time that a caller waits.
var ErrNotFinished = errors.New("the call has not ended")

// How often a caller that waits polls the state of a call.
const (
	pollFirst = 20 * time.Millisecond
	pollLast  = 200 * time.Millisecond

	recoverEvery = time.Second // and whether nodes have died
)

// Waiting is how a call is waited for.
type Waiting struct {
	Limit time.Duration // without a deadline where it is 0

	// Between takes the time between two polls while the call waits for approval, and
	// reports whether it is to be asked again. It may be nil.
	Between func(ctx context.Context, pause time.Duration) (again bool, err error)
	// Left is told once Between is not called again, unless it said so itself.
	Left func()
	// Resumes is told that this process resumes the call; what it returns is called
	// after. It may be nil.
	Resumes func(row *CallRow) (done func())
}

// Wait waits until a call has ended and returns its result. It resumes a call that can
// go on, unless another process was faster; the limit does not bound that. Where the
// call has not ended the error is [Unfinished], and the result says how it stands.
func (c Calls) Wait(ctx context.Context, id string, w Waiting) (plugin.Result, error) {
	look := context.WithoutCancel(ctx) // an interrupted caller hears how the call stands
	if row, err := c.Get(look, id, "wait for"); err != nil {
		return plugin.Result{}, err
	} else if row == nil {
		return plugin.Result{}, plugin.Errorf(plugin.CodeNotFound, "there is no call %s that could be waited for", id)
	}
	waiting, stop := ctx, context.CancelFunc(func() {})
	if w.Limit > 0 {
		waiting, stop = context.WithTimeoutCause(ctx, w.Limit, ErrNotFinished)
	}
	defer stop()
	left := func() {
		if w.Between != nil && w.Left != nil {
			w.Left()
		}
		w.Between = nil
	}
	changed, leave := c.host.parts.Kernel.Changed(id)
	defer func() { leave() }()
	pauseFor := func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-waiting.Done():
		case <-changed: // in this process; what other nodes do is found by polling
			leave()
			changed, leave = c.host.parts.Kernel.Changed(id)
		}
	}
	var tried CallRow // as it was when it was resumed here last
	looked := time.Now()
	for pause := pollFirst; ; pause = min(2*pause, pollLast) {
		if time.Since(looked) > recoverEvery { // the node that runs it may have died
			if _, err := c.host.parts.Ledger.Recover(look); err != nil {
				return plugin.Result{}, err
			}
			looked = time.Now()
		}
		row, err := c.host.parts.Ledger.Call(look, c.g.Tenant, id)
		switch {
		case err != nil:
			return plugin.Result{}, err
		case row == nil:
			return plugin.Result{}, plugin.Errorf(plugin.CodeNotFound, "there is no call %s that could be waited for", id)
		case row.State.Ended():
			left()
			return c.host.parts.Kernel.Await(look, row.Tenant, id)
		case waiting.Err() != nil:
			left()
			return standing(row), Unfinished{context.Cause(waiting)}
		case row.State == CallPending && !row.WakeAt.After(time.Now()): // its time is over, and no host may be there to say so
			if _, err := c.host.parts.Approvals.Expire(look); err != nil {
				return standing(row), err
			}
			pauseFor(pollFirst)
			continue
		case due(row):
			again := tried.State == row.State && tried.Attempt == row.Attempt && tried.UpdatedAt.Equal(row.UpdatedAt)
			tried = *row
			// Whatever comes of it, the row tells; but not what keeps it from being tried.
			if err := c.resume(ctx, row, w.Resumes); plugin.CodeOf(err) == plugin.CodeInternal && ctx.Err() == nil {
				if now, _ := c.host.parts.Ledger.Call(ctx, row.Tenant, id); now == nil || !now.State.Ended() {
					return standing(row), err
				}
			}
			if ctx.Err() == nil && again { // it did not go on
				pauseFor(pause)
			}
			continue
		}
		if row.State != CallPending {
			left()
		}
		if w.Between == nil {
			pauseFor(pause)
			continue
		}
		again, err := w.Between(waiting, pause)
		if err != nil {
			return standing(row), err
		}
		if !again {
			w.Between = nil
		}
	}
}

// resume advances a call to its end, however long its caller waits.
func (c Calls) resume(ctx context.Context, row *CallRow, resumes func(*CallRow) func()) error {
	if resumes != nil {
		defer resumes(row)()
	}
	return c.host.parts.Kernel.Advance(context.WithoutCancel(ctx), row.Tenant, row.ID)
}

// due reports whether a call may be resumed or reconciled now.
func due(row *CallRow) bool {
	now := time.Now()
	return row.State == CallQueued && !row.WakeAt.After(now) ||
		row.State == CallInProgress && !row.WakeAt.IsZero() && !row.WakeAt.After(now)
}

// Pause returns after some time, or when ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// standing returns the result of a call that has not ended, as its row has it.
func standing(row *CallRow) plugin.Result {
	res := plugin.Result{CallID: row.ID, Operation: row.Operation, Version: row.Version, Status: plugin.InProgress, SchemaVersion: plugin.SchemaVersion}
	if row.State == CallPending {
		res.Status = plugin.PendingApproval
	}
	return res
}
