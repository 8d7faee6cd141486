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
func (a *attempt) settle(ctx context.Context, res *plugin.Result, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	o := ledger.Outcome{State: a.nextState(res, failure), Result: res, Err: failure, Labels: append([]string{}, res.Labels...)}
	o.Free = o.State == ledger.Failed && (a.nothing() || (a.stopped(failure) || a.starved()) && a.untouched())
	a.record.Status = ledger.Status(o.State)
	rec := a.record
	switch o.State {
	case ledger.Unknown, ledger.InProgress:
		if a.target.Operation.Reconcile {
			o.WakeAt = now.Add(askAfter)
			if isReported(a.target) {
				o.WakeAt = now.Add(a.k.ReportTime)
			}
		}
	case ledger.Queued:
		o.WakeAt = now.Add(retryAfter)
		if a.phase == phaseUnreached {
			o.WakeAt = now.Add(min(retryAfter<<min(a.lease.Attempt(), 10), maxRetryAfter))
		}
	case ledger.Failed:
		o.Result = nil
		if a.journal != nil && a.journal.Done() > 0 {
			said := failure.Message + ledger.Happened(a.journal.Done())
			rec.Error = &plugin.ErrorRecord{Code: failure.Code, PluginCode: failure.PluginCode, Message: said}
			if failure.Code != plugin.CodePluginError && failure.PluginCode == "" { // what a plugin says is passed on as it is
				failure.Message = said
			}
		}
	}
	if o.State == ledger.InProgress {
		o.Result = nil
	}
	if err := a.k.Ledger.Settle(ctx, *a.lease, o, &rec, now); err != nil {
		if !a.k.unrecorded.add(end{*a.lease, o, rec, now}) {
			a.phase = phaseUncertain
		}
		a.k.recordSoon()
		return false, err
	}
	fault.At("settled")
	a.k.ended.notify(a.call.ID)
	if a.resumed {
		a.k.notify(ctx, a.call.Tenant, a.call.ID) // its caller waits elsewhere and has to be notified
	}
	fault.At("told")
	return o.State == ledger.Queued, nil
}

// nextState is what becomes of a call after an attempt.
func (a *attempt) nextState(res *plugin.Result, failure *plugin.Error) ledger.State {
	switch {
	case failure == nil && res.Status == plugin.InProgress:
		return ledger.InProgress
	case failure == nil:
		return ledger.Succeeded
	case a.phase == phaseUnreached && a.resumed && failure.Code.Passes() && a.lease.Attempt() < maxUnbegun:
		return ledger.Queued
	case a.nothing():
		return ledger.Failed
	case len(a.target.Operation.Effects) == 0:
		return ledger.Failed
	}
	again := a.lease.Attempt() < ledger.MaxAttempts
	if a.journal == nil { // it could not be read: nothing ran, and what earlier attempts did is not known here
		if again {
			return ledger.Queued
		}
		return ledger.Unknown
	}
	open, repeatable := a.journal.Unanswered()
	switch {
	case a.journal.Diverged(), open > repeatable:
		return ledger.Unknown
	case (a.stopped(failure) || a.starved()) && a.lease.Journalled() && again && (a.resumed || open+a.journal.Done() > 0 && failure.Code != plugin.CodeCancelled):
		return ledger.Queued // a host that closes, or cannot write, gives up no more than one that is killed
	case a.starved() && (open > 0 || a.journal.Done() > 0): // it was stopped half way by the host
		return ledger.Unknown
	case !a.lease.Journalled(): // the dispatch counts as an effect, and one that is not idempotent
		if open > 0 || a.ran() && (a.unseen(failure) || a.starved()) { // what it did before it was refused a service is not known
			return ledger.Unknown
		}
		return ledger.Failed
	case open == 0 && (a.ran() || a.journal.Done() == 0):
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
func (a *attempt) stopped(failure *plugin.Error) bool {
	return a.halted || a.phase == phaseCut && failure != nil && (failure.Code == plugin.CodeUnavailable || errors.Is(failure.Err, context.Canceled))
}

// starved reports whether the host could not do what the plugin asked for, for a
// reason of the host's own: how the plugin failed then says nothing of what it
// would have done.
func (a *attempt) starved() bool {
	return a.journal != nil && a.journal.Starved() || a.usage != nil && a.usage.Starved()
}

// untouched reports whether all that a call does is in its journal, and that is
// empty.
func (a *attempt) untouched() bool { return a.lease.Journalled() && a.unwritten() }

// nothing reports whether it is known that the call had no effect: no plugin had
// it, in this attempt or one before.
func (a *attempt) nothing() bool { return a.phase == phaseUnreached && a.unwritten() }

// unwritten reports whether the journal was read and holds no effect.
func (a *attempt) unwritten() bool {
	if a.journal == nil {
		return false
	}
	open, _ := a.journal.Unanswered()
	return open == 0 && a.journal.Done() == 0
}

// unseen reports whether effects may have happened that the journal does not
// have: the plugin received the call and did not report its end. The host does
// not see such effects of a plugin outside a sandbox, so the dispatch itself
// counts as one.
func (a *attempt) unseen(failure *plugin.Error) bool {
	if a.phase == phaseCut || a.usage != nil && a.usage.Unsettled() {
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
func (a *attempt) refuse(ctx context.Context, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	if failure == nil || passing(failure.Code) {
		return false, nil
	}
	void := a.void
	if void == "" {
		void = "the call was refused: " + failure.Message
	}
	won, err := a.k.Ledger.Refused(ctx, *a.row, &a.record, failure, now, func(tx ledger.Tx) error {
		return approval.Withdraw(ctx, tx, a.row.Tenant, approval.SubjectCall, a.row.ID, void, now)
	})
	if won {
		a.k.notify(ctx, a.call.Tenant, a.call.ID)
	}
	return false, err
}

// passing reports whether a refusal of a queued call is of this moment only: its
// code passes, or it was not the call that was cancelled, but the waiting for it.
func passing(code plugin.Code) bool { return code.Passes() || code == plugin.CodeCancelled }
