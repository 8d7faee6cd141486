package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/plugin"
)

// An update is one transition of a call, with its entry and its answer.
type update struct {
	from   CallRow // as the row must still stand
	next   CallRow
	entry  plugin.Entry
	answer []byte // nil for none
	keep   time.Time
}

// apply makes the transition, a compare-and-set on the fence of the row, and reports
// whether the fence held.
func (u *update) apply(tx Tx) (won bool, err error) {
	if won, err = tx.UpdateCall(u.from.Fence(), u.next); err != nil || !won {
		return won, err
	}
	if u.answer != nil {
		if _, err := tx.PutBody(u.next.Tenant, u.answer, u.keep); err != nil {
			return true, err
		}
	}
	tx.Append(u.entry)
	return true, nil
}

// endEntry is the entry with which a call comes to a state.
var endEntry = map[State]plugin.EntryKind{
	Succeeded:  plugin.EntryCallSucceeded,
	Failed:     plugin.EntryCallFailed,
	Unknown:    plugin.EntryCallUnknown,
	InProgress: plugin.EntryCallProgress,
	Queued:     plugin.EntryCallQueued,
}

// settled returns the update from row to the outcome of an attempt.
func (l *Ledger) settled(row CallRow, o Outcome, rec *plugin.CallRecord, at time.Time) (*update, error) {
	var expires time.Time
	if l.opts.Keep > 0 {
		expires = at.Add(l.opts.Keep)
	}
	return newUpdate(row, "", endEntry[o.State], o, rec, at, expires)
}

// newUpdate returns the update from row to o, recorded by an entry of that kind. Where e
// is empty, the outcome says which event it is.
func newUpdate(row CallRow, e event, kind plugin.EntryKind, o Outcome, rec *plugin.CallRecord, at, expires time.Time) (*update, error) {
	var err error
	if e == "" {
		e, err = o.event()
	}
	if err == nil {
		o.State, err = transition(row.State, e)
	}
	if err != nil {
		return nil, fmt.Errorf("settling call %s: %w", row.ID, err)
	}
	u := &update{from: row, next: row, keep: expires}
	u.next.State, u.next.Lease, u.next.UpdatedAt, u.next.WakeAt = o.State, "", at, o.WakeAt
	if o.State == Queued || o.State == InProgress {
		u.next.Node = ""
	}
	if o.Free {
		u.next.Key = ownKey(row.ID)
	}
	if o.Err != nil {
		u.next.Code = string(o.Err.Code)
	} else if o.State == Succeeded {
		u.next.Code = "" // an unknown one had one
	}
	if o.State.Ended() {
		if u.answer, err = encodeAnswer(o.Result, o.Err, o.labels(&row)); err != nil {
			return nil, fmt.Errorf("settling call %s: %w", row.ID, err)
		}
		u.next.ResultHash, u.next.SchemaVersion = canon.Sum(u.answer), plugin.SchemaVersion
	}
	u.entry, err = entry(row.Tenant, kind, rec, at)
	return u, err
}

// recordOf returns what is on record of a call: its first entry knows more than
// its row.
func recordOf(ctx context.Context, r Reader, row *CallRow) (plugin.CallRecord, error) {
	rec := plugin.CallRecord{
		CallID: row.ID, Operation: row.Operation, Version: row.Version, PackageDigest: row.PackageDigest, InputHash: row.InputHash,
		Principal: row.Principal, Actor: row.Actor, Origin: plugin.Origin(row.Origin), Parent: row.Parent, Session: row.Session,
		Plan: row.Plan, Labels: row.Labels, SchemaVersion: plugin.SchemaVersion,
	}
	for e, err := range r.Entries(ctx, entryFilter{Tenant: row.Tenant, Subject: row.ID, Kind: "call.", Limit: 1}) {
		if err != nil {
			return rec, err
		}
		// One that cannot be read is for Verify to find, and no reason to leave
		// the call as it is for ever.
		var first plugin.CallRecord
		if json.Unmarshal(e.Body, &first) == nil {
			rec = first
		}
	}
	rec.Attempt = row.Attempt
	return rec, nil
}

// updateOf returns the update from row to o with what is on record of the call.
func updateOf(ctx context.Context, tx Tx, row CallRow, e event, kind plugin.EntryKind, o Outcome, at time.Time) (*update, error) {
	rec, err := recordOf(ctx, tx, &row)
	if err != nil {
		return nil, err
	}
	rec.Status = statusOf(o.State)
	rec.Error = nil
	if o.Err != nil {
		rec.Error = &plugin.ErrorRecord{Code: o.Err.Code, PluginCode: o.Err.PluginCode, Message: o.Err.Message}
	}
	if o.Result != nil && len(o.Result.Data) > 0 {
		rec.ResultHash, _ = canon.Hash(o.Result.Data)
	}
	return newUpdate(row, e, kind, o, &rec, at, time.Time{})
}

// statusOf is how a state reads outside.
func statusOf(state State) plugin.Status {
	switch state {
	case Succeeded:
		return plugin.Succeeded
	case Failed:
		return plugin.Failed
	case Unknown:
		return plugin.Unknown
	case Pending:
		return plugin.PendingApproval
	}
	return plugin.InProgress
}

// Status returns how a state of a call reads outside.
func Status(state State) plugin.Status { return statusOf(state) }

// Release lets a call that waits for approval run, in the transaction of the
// approval. A call that no longer waits stays as it is.
func Release(ctx context.Context, tx Tx, tenant, id string, at time.Time) error {
	return endWait(ctx, tx, tenant, id, eventApprove, Outcome{State: Queued, WakeAt: at}, at)
}

// Refuse fails a call that waits for approval, in the transaction that says
// why. A call that no longer waits stays as it is.
func Refuse(ctx context.Context, tx Tx, tenant, id string, why *plugin.Error, at time.Time) error {
	return endWait(ctx, tx, tenant, id, eventFail, Outcome{State: Failed, Err: why, Labels: ownWords}, at)
}

// endWait ends the wait of a call for approval.
func endWait(ctx context.Context, tx Tx, tenant, id string, e event, o Outcome, at time.Time) error {
	row, err := tx.Call(ctx, tenant, id)
	if err != nil || row == nil || row.State != Pending {
		return err
	}
	u, err := updateOf(ctx, tx, *row, e, endEntry[o.State], o, at)
	if err != nil {
		return err
	}
	_, err = u.apply(tx)
	return err
}
