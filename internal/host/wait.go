package host

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
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

// Waiting is how a call is waited for.
type Waiting struct {
	Limit time.Duration // without a deadline where it is 0

	// Between is asked while the call waits for approval, until ctx ends, which is when
	// there is news of the call. It reports whether it is to be asked again. It may be nil.
	Between func(ctx context.Context) (again bool, err error)
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
	n, err := c.host.news(look, id)
	if err != nil {
		return plugin.Result{}, err
	}
	defer n.close()
	var tried CallRow // as it was when it was resumed here last
	looked := time.Now()
	for {
		if time.Since(looked) >= lookAgain { // the node that runs it may have died
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
		case row.State == CallPending && !row.WakeAt.After(c.g.Store.Now()): // its time is over, and no host may be there to say so
			if _, err := c.host.parts.Approvals.Expire(look); err != nil {
				return standing(row), err
			}
			if tried.State == row.State { // it stays as it is: that it ends is another's to record
				n.wait(waiting, lookAgain)
			}
			tried = *row
			continue
		case due(row, c.g.Store.Now()):
			again := tried.State == row.State && tried.Attempt == row.Attempt && tried.UpdatedAt.Equal(row.UpdatedAt)
			tried = *row
			// Whatever comes of it, the row tells; but not what keeps it from being tried.
			if err := c.resume(ctx, row, w.Resumes); plugin.CodeOf(err) == plugin.CodeInternal && ctx.Err() == nil {
				if now, _ := c.host.parts.Ledger.Call(ctx, row.Tenant, id); now == nil || !now.State.Ended() {
					return standing(row), err
				}
			}
			if ctx.Err() == nil && again { // it did not go on
				n.wait(waiting, lookAgain)
			}
			continue
		}
		if row.State == CallRunning { // as the store says: this process may not be at work on it
			if err := c.host.parts.Kernel.Advance(look, row.Tenant, id); err != nil {
				left()
				return standing(row), Unfinished{err}
			}
		}
		if row.State != CallPending {
			left()
		}
		if w.Between == nil {
			n.wait(waiting, untilDue(row, c.g.Store.Now()))
			continue
		}
		again, err := n.during(waiting, untilDue(row, c.g.Store.Now()), w.Between)
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

// due reports whether a call may be resumed or reconciled at a time.
func due(row *CallRow, now time.Time) bool {
	return row.State == CallQueued && !row.WakeAt.After(now) ||
		row.State == CallInProgress && !row.WakeAt.IsZero() && !row.WakeAt.After(now)
}

// untilDue is how long it is until a call may be resumed, reconciled or expires.
func untilDue(row *CallRow, now time.Time) time.Duration {
	if row.WakeAt.IsZero() {
		return lookAgain
	}
	return max(row.WakeAt.Sub(now), time.Millisecond)
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
	res := plugin.Result{
		CallID: row.ID, Operation: row.Operation, Version: row.Version, Status: plugin.InProgress, SchemaVersion: plugin.SchemaVersion, Labels: ledger.Labels(row),
	}
	if row.State == CallPending {
		res.Status = plugin.PendingApproval
	}
	return res
}
