package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// unrecorded returns the answer of a call whose end could not be recorded: a
// result that is not on record is no result. A call that recovery may run again is in
// progress. One that may have had an effect, and is not run again, has an unknown outcome
// and never failed: a caller that reads "failed" makes the call again.
func (a *attempt) unrecorded(ctx context.Context, failure *plugin.Error, cause error) (plugin.Result, error) {
	a.k.Log.Error("a call could not be recorded", "call_id", a.call.ID, "operation", a.record.Operation, "cause", cause.Error())
	res := plugin.Result{
		CallID: a.call.ID, Operation: a.record.Operation, Version: a.record.Version, Status: plugin.InProgress, SchemaVersion: plugin.SchemaVersion, Labels: a.labels(),
	}
	if a.prior != nil && a.target != nil && len(a.target.Operation.Effects) > 0 {
		if res.CallID = a.prior.CallID; !a.prior.State.Ended() {
			return res, nil
		}
		e := plugin.Errorf(plugin.CodeUnavailable, "the key %s was used by call %s, whose answer is withheld while nothing can be recorded (%s); ask again", a.call.Key, a.prior.CallID, reason(cause))
		e.Retryable, e.Err = true, cause
		res.Status = plugin.Unknown
		return res, e
	}
	if errors.Is(cause, ledger.ErrLeaseLost) { // who took the call over knows how it stands
		if now, err := a.k.status(ctx, a.call.Tenant, a.call.ID, nil); now.Status != "" {
			return now, err
		}
	}
	if a.mayResume() {
		return res, nil
	}
	if a.mayHaveActed() {
		res.Status = plugin.Unknown
		e := plugin.Errorf(plugin.CodeOutcomeUnknown,
			"call %s may or may not have had its effect, and is not repeated: how it ended could not be recorded (%s); once the host can write again, 'mortise calls show %[1]s' has what is known", a.call.ID, reason(cause))
		e.Err = cause
		return res, e
	}
	if errors.Is(cause, ledger.ErrFull) {
		return plugin.Result{}, noRoom(cause)
	}
	if failure != nil && failure.Code == plugin.CodeUnavailable {
		return plugin.Result{}, failure // why it was refused is why it could not be recorded
	}
	e := plugin.Errorf(plugin.CodeInternal, "call %s could not be recorded, so its result is withheld; it had no effect", a.call.ID)
	e.Err = cause
	return plugin.Result{}, e
}

// mayResume reports whether the call may go on although this attempt could not record how it
// ended: its claim is on the disk or may be, and recovery runs it again.
func (a *attempt) mayResume() bool {
	switch {
	case a.row != nil: // it is queued as before
		return true
	case a.lease == nil:
		return a.goesOn
	case a.journal == nil:
		return a.lease.MayResume()
	}
	return a.journal.MayResume()
}

// mayHaveActed reports whether this attempt of the call, or one before it, can
// have had an effect.
func (a *attempt) mayHaveActed() bool {
	if a.target == nil || len(a.target.Operation.Effects) == 0 {
		return false
	}
	if a.phase == phaseUncertain {
		return true
	}
	if a.row != nil { // it goes on, and did not get to run this time
		return a.row.Attempt > 0
	}
	switch {
	case a.lease == nil:
		return false
	case a.lease.Attempt() > 1 || a.journal == nil && a.ran():
		return true
	case !a.lease.Journalled() && a.ran():
		return true
	}
	if a.journal == nil {
		return false
	}
	open, _ := a.journal.Unanswered()
	return open > 0 || a.journal.Done() > 0
}

// reason says for people why nothing can be written.
func reason(cause error) string {
	if errors.Is(cause, ledger.ErrFull) {
		return ledger.ErrFull.Error()
	}
	if errors.Is(cause, ledger.ErrFailed) {
		return ledger.ErrFailed.Error()
	}
	if errors.Is(cause, ledger.ErrLeaseLost) {
		return "another host took this one for dead and settled the call"
	}
	return "the host's log has the cause"
}

// noRoom returns err as callers hear it where the disk is full: nothing was
// done, and the same call may work later.
func noRoom(err error) error {
	if !errors.Is(err, ledger.ErrFull) || plugin.CodeOf(err) == plugin.CodeUnavailable {
		return err
	}
	e := plugin.Errorf(plugin.CodeUnavailable, "%s: nothing was done; free some room, and make the call again", err.Error())
	e.Retryable, e.Err = true, err
	return e
}

// maxUnrecorded is how many ends of calls are kept that could not be recorded. The calls
// of others are settled by their journals, in [Kernel.orphans].
const maxUnrecorded = 256

// unrecorded are the ends of calls that could not be recorded yet. Their callers got the
// status unknown.
type unrecorded struct {
	recording sync.Mutex // held while ends are recorded that are not in the list meanwhile
	mu        sync.Mutex
	ends      []end
	soon      bool // they are tried again in a moment
}

// An end is how one attempt of a call ended.
type end struct {
	lease   ledger.Lease
	outcome ledger.Outcome
	record  plugin.CallRecord
	at      time.Time
}

// add keeps an end, and reports whether there was room for it.
func (o *unrecorded) add(e end) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.ends) == maxUnrecorded {
		return false
	}
	o.ends = append(o.ends, e)
	return true
}

// recordEvery is how long after a store refused the end of a call it is tried again.
const recordEvery = time.Second

// recordSoon records those ends as soon as the store takes them, also
// in a host that sweeps nothing.
func (k *Kernel) recordSoon() {
	k.unrecorded.mu.Lock()
	defer k.unrecorded.mu.Unlock()
	if k.unrecorded.soon || len(k.unrecorded.ends) == 0 {
		return
	}
	k.unrecorded.soon = true
	time.AfterFunc(recordEvery, func() {
		k.unrecorded.mu.Lock()
		k.unrecorded.soon = false
		k.unrecorded.mu.Unlock()
		k.recordAgain(context.Background())
		k.recordSoon()
	})
}

// recordAgain records what could not be recorded before. What fails again is kept, but
// for what is no longer this host's to settle.
func (k *Kernel) recordAgain(ctx context.Context) {
	k.unrecorded.recording.Lock()
	defer k.unrecorded.recording.Unlock()
	k.unrecorded.mu.Lock()
	ends := k.unrecorded.ends
	k.unrecorded.ends = nil
	k.unrecorded.mu.Unlock()
	for i, e := range ends {
		err := k.Ledger.Settle(ctx, e.lease, e.outcome, &e.record, e.at)
		switch {
		case err == nil:
			k.ended.notify(e.lease.Call())
		case errors.Is(err, ledger.ErrLeaseLost), errors.Is(err, ledger.ErrFailed), errors.Is(err, ledger.ErrStoreClosed):
		default:
			k.unrecorded.mu.Lock()
			k.unrecorded.ends = append(slices.Clone(ends[i:]), k.unrecorded.ends...)
			k.unrecorded.mu.Unlock()
			return
		}
	}
}

// has reports whether the end of a call is among them.
func (o *unrecorded) has(id string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(o.ends, func(e end) bool { return e.lease.Call() == id })
}

// orphans settles the calls that the store has this process run, and that it is not
// at work on, nor has the end of: an end that was one too many to
// keep, a claim that was made though the store could not say so. They are settled as after the death of
// the process, by their journals.
func (k *Kernel) orphans(ctx context.Context) error {
	rows, err := k.Ledger.Running(ctx)
	if err != nil {
		return err
	}
	for i := range rows {
		if err := k.settleOrphan(ctx, &rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// settleOrphan is orphans for one call of this process.
func (k *Kernel) settleOrphan(ctx context.Context, row *ledger.CallRow) error {
	k.unrecorded.recording.Lock() // or an end that is being recorded would be taken for none
	defer k.unrecorded.recording.Unlock()
	// A call that ended since the row was read stands otherwise by now.
	if k.admission.has(row.ID) || k.unrecorded.has(row.ID) {
		return nil
	}
	won, err := k.Ledger.Abandoned(ctx, *row, k.Now())
	if err == nil && won {
		k.Log.Warn("a call was settled by its journal: this host was not at work on it, and it stood as running", "call_id", row.ID, "operation", row.Operation)
		k.notify(ctx, row.Tenant, row.ID)
	}
	return err
}

// recordAll is recordAgain until nothing is left, for as long as a store may refuse that
// will recover. The rest is for the next host, which finds the calls running under a node
// that has ended.
func (k *Kernel) recordAll() error {
	for n := range 5 {
		k.recordAgain(context.Background())
		k.unrecorded.mu.Lock()
		left := len(k.unrecorded.ends)
		k.unrecorded.mu.Unlock()
		switch {
		case left == 0:
			return nil
		case n == 4:
			return fmt.Errorf("how %d calls ended could not be recorded", left)
		}
		time.Sleep(time.Second)
	}
	return nil
}
