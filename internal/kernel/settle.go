package kernel

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/approval"
	"github.com/mortise-dev/mortise/internal/fault"
	"github.com/mortise-dev/mortise/internal/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// How long after an attempt the next is made, and after a question the next is
// asked.
const (
	retryAfter = time.Second
	askAfter   = 5 * time.Second
)

// settle ends the attempt of a claimed call.
func (r *request) settle(ctx context.Context, res *plugin.Result, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	o := ledger.Outcome{State: r.fate(res, failure), Result: res, Err: failure}
	r.record.Status = ledger.Status(o.State)
	rec := r.record
	switch o.State {
	case store.CallUnknown, store.CallInProgress:
		if r.target.Operation.Reconcile {
			o.WakeAt = now.Add(askAfter)
		}
	case store.CallQueued:
		o.WakeAt = now.Add(retryAfter)
	case store.CallFailed:
		o.Result = nil
		if n := r.journal.Done(); n > 0 {
			failure.Message += fmt.Sprintf("; %d effects of it have happened and are in its journal", n)
			rec.Error = &plugin.ErrorRecord{Code: failure.Code, PluginCode: failure.PluginCode, Message: failure.Message}
		}
	}
	if o.State == store.CallInProgress {
		o.Result = nil
	}
	if err := r.k.Ledger.Settle(ctx, *r.lease, o, &rec, now); err != nil {
		return false, err
	}
	fault.At("settled")
	r.k.ended.tell(r.call.ID)
	if r.resumed {
		r.k.tell(ctx, r.call.Tenant, r.call.ID) // whoever made it is not here to hear of it
	}
	fault.At("told")
	return o.State == store.CallQueued, nil
}

// fate is what becomes of a call after an attempt.
func (r *request) fate(res *plugin.Result, failure *plugin.Error) store.CallState {
	switch {
	case failure == nil && res.Status == plugin.InProgress:
		return store.CallInProgress
	case failure == nil:
		return store.CallSucceeded
	case len(r.target.Operation.Effects) == 0 || r.journal == nil:
		return store.CallFailed
	}
	open, repeatable := r.journal.Unanswered()
	again := r.lease.Attempt() < ledger.MaxAttempts && failure.Code != plugin.CodeCancelled
	switch {
	case r.journal.Diverged(), open > repeatable:
		return store.CallUnknown
	case !r.ran && open+r.journal.Done() == 0:
		return store.CallFailed // this attempt did nothing, and no earlier one
	case !r.ran || open > 0:
		if again {
			return store.CallQueued
		}
		return store.CallUnknown
	case !r.lease.Journalled() && r.unseen(failure):
		return store.CallUnknown
	}
	return store.CallFailed
}

// unseen reports whether nobody can tell if effects happened that are not in
// the journal: the plugin had the call and did not say how it ended. Such
// effects are not seen while plugins are not caged, so the dispatch itself
// counts as one.
func (r *request) unseen(failure *plugin.Error) bool {
	if r.asked != nil && r.asked.Unsettled() {
		return true
	}
	switch failure.Code {
	case plugin.CodeTimeout, plugin.CodeCrashed, plugin.CodeCancelled, plugin.CodeMalformedResponse, plugin.CodeLimitExceeded, plugin.CodeInternal,
		plugin.CodeInvalidOutput, plugin.CodeOutputTooLarge:
		return true
	}
	return false
}

// refuse ends a queued call that may not go on. What only does not work at the
// moment leaves it queued.
func (r *request) refuse(ctx context.Context, failure *plugin.Error, now time.Time) (goesOn bool, err error) {
	if failure == nil || passing(failure.Code) {
		return false, nil
	}
	var also func(tx store.Tx) error
	if r.given != nil && r.void != "" && r.given.State == store.ApprovalApproved {
		also = func(tx store.Tx) error { return approval.Void(tx, *r.given, r.void, now) }
	}
	won, err := r.k.Ledger.Refused(ctx, *r.row, &r.record, failure, now, also)
	if won {
		r.k.tell(ctx, r.call.Tenant, r.call.ID)
	}
	return false, err
}

// passing reports whether a refusal is of this moment only.
func passing(code plugin.Code) bool {
	switch code {
	case plugin.CodeCancelled, plugin.CodeTimeout, plugin.CodeUnavailable, plugin.CodeOverloaded, plugin.CodeRateLimited, plugin.CodeInternal:
		return true
	}
	return false
}
