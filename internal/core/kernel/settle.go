package kernel

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// How long after an attempt the next is made, and after a question the next is
// asked.
const (
	retryAfter    = time.Second
	maxRetryAfter = time.Minute // where no plugin had the call; it doubles from attempt to attempt
	askAfter      = 5 * time.Second
)

// maxUnbegun is the maximum of attempts for a queued call that has not reached
// a plugin: with backoff, about a quarter of an hour.
const maxUnbegun = 20

// settle ends the attempt of a claimed call.
func (r *request) settle(ctx context.Context, res *plugin.Result, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	o := ledger.Outcome{State: r.fate(res, failure), Result: res, Err: failure}
	o.Free = o.State == ledger.Failed && (r.nothing() || (r.stopped(failure) || r.starved()) && r.untouched())
	r.record.Status = ledger.Status(o.State)
	rec := r.record
	switch o.State {
	case ledger.Unknown, ledger.InProgress:
		if r.target.Operation.Reconcile {
			o.WakeAt = now.Add(askAfter)
		}
	case ledger.Queued:
		o.WakeAt = now.Add(retryAfter)
		if r.unbegun {
			o.WakeAt = now.Add(min(retryAfter<<min(r.lease.Attempt(), 10), maxRetryAfter))
		}
	case ledger.Failed:
		o.Result = nil
		if r.journal != nil && r.journal.Done() > 0 {
			said := failure.Message + ledger.Happened(r.journal.Done())
			rec.Error = &plugin.ErrorRecord{Code: failure.Code, PluginCode: failure.PluginCode, Message: said}
			if failure.Code != plugin.CodePluginError && failure.PluginCode == "" { // what a plugin says is passed on as it is
				failure.Message = said
			}
		}
	}
	if o.State == ledger.InProgress {
		o.Result = nil
	}
	if err := r.k.Ledger.Settle(ctx, *r.lease, o, &rec, now); err != nil {
		r.doubt = !r.k.owed.add(end{*r.lease, o, rec, now})
		r.k.paySoon()
		return false, err
	}
	fault.At("settled")
	r.k.ended.tell(r.call.ID)
	if r.resumed {
		r.k.tell(ctx, r.call.Tenant, r.call.ID) // the caller is in another request and has to be notified
	}
	fault.At("told")
	return o.State == ledger.Queued, nil
}

// fate is what becomes of a call after an attempt.
func (r *request) fate(res *plugin.Result, failure *plugin.Error) ledger.State {
	switch {
	case failure == nil && res.Status == plugin.InProgress:
		return ledger.InProgress
	case failure == nil:
		return ledger.Succeeded
	case r.unbegun && r.resumed && failure.Code.Passes() && r.lease.Attempt() < maxUnbegun:
		return ledger.Queued
	case r.nothing():
		return ledger.Failed
	case len(r.target.Operation.Effects) == 0:
		return ledger.Failed
	}
	again := r.lease.Attempt() < ledger.MaxAttempts
	if r.journal == nil { // it could not be read: nothing ran, and what earlier attempts did is not known here
		if again {
			return ledger.Queued
		}
		return ledger.Unknown
	}
	open, repeatable := r.journal.Unanswered()
	switch {
	case r.journal.Diverged(), open > repeatable:
		return ledger.Unknown
	case (r.stopped(failure) || r.starved()) && r.lease.Journalled() && again && (r.resumed || open+r.journal.Done() > 0 && failure.Code != plugin.CodeCancelled):
		return ledger.Queued // a host that closes, or cannot write, gives up no more than one that is killed
	case r.starved() && (open > 0 || r.journal.Done() > 0): // it was stopped half way by the host
		return ledger.Unknown
	case !r.lease.Journalled(): // the dispatch counts as an effect, and one that is not idempotent
		if open > 0 || r.ran && (r.unseen(failure) || r.starved()) { // what it did before it was refused a service is not known
			return ledger.Unknown
		}
		return ledger.Failed
	case open == 0 && (r.ran || r.journal.Done() == 0):
		return ledger.Failed // the journal has all that happened
	case again && failure.Code != plugin.CodeCancelled:
		return ledger.Queued
	case open == 0:
		return ledger.Failed
	}
	return ledger.Unknown
}

// stopped reports whether the call ended for what is no reason of its own: its host
// closed, and refused what the plugin asked for then, or its caller hung up.
func (r *request) stopped(failure *plugin.Error) bool {
	return r.halted || r.cut && failure != nil && (failure.Code == plugin.CodeUnavailable || errors.Is(failure.Err, context.Canceled))
}

// starved reports whether the host could not do what the plugin asked for, for a
// reason of the host's own: how the plugin failed then says nothing of what it
// would have done.
func (r *request) starved() bool {
	return r.journal != nil && r.journal.Starved() || r.asked != nil && r.asked.Starved()
}

// untouched reports whether all that a call does is in its journal, and that is
// empty.
func (r *request) untouched() bool { return r.lease.Journalled() && r.unwritten() }

// nothing reports whether it is known that the call had no effect: no plugin had
// it, in this attempt or one before.
func (r *request) nothing() bool { return r.unbegun && r.unwritten() }

// unwritten reports whether the journal was read and holds no effect.
func (r *request) unwritten() bool {
	if r.journal == nil {
		return false
	}
	open, _ := r.journal.Unanswered()
	return open == 0 && r.journal.Done() == 0
}

// unseen reports whether effects may have happened that the journal does not
// have: the plugin received the call and did not report its end. The host does
// not see such effects of a plugin outside a sandbox, so the dispatch itself
// counts as one.
func (r *request) unseen(failure *plugin.Error) bool {
	if r.cut || r.asked != nil && r.asked.Unsettled() {
		return true
	}
	switch failure.Code {
	case plugin.CodeTimeout, plugin.CodeCrashed, plugin.CodeCancelled, plugin.CodeMalformedResponse, plugin.CodeLimitExceeded, plugin.CodeInternal,
		plugin.CodeInvalidOutput, plugin.CodeOutputTooLarge:
		return true
	}
	return false
}

// refuse ends a queued call that may not go on, and what was approved for it. What only does not work at the
// moment leaves it queued.
func (r *request) refuse(ctx context.Context, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	if failure == nil || passing(failure.Code) {
		return false, nil
	}
	void := r.void
	if void == "" {
		void = "the call was refused: " + failure.Message
	}
	won, err := r.k.Ledger.Refused(ctx, *r.row, &r.record, failure, now, func(tx ledger.Tx) error {
		return approval.Withdraw(ctx, tx, r.row.Tenant, approval.SubjectCall, r.row.ID, void, now)
	})
	if won {
		r.k.tell(ctx, r.call.Tenant, r.call.ID)
	}
	return false, err
}

// passing reports whether a refusal of a queued call is of this moment only: its
// code passes, or it was not the call that was cancelled, but the waiting for it.
func passing(code plugin.Code) bool { return code.Passes() || code == plugin.CodeCancelled }
