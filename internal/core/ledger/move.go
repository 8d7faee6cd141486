package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A move is one transition of a call, with its entry and its answer.
type move struct {
	from   store.CallRow // as the row must still stand
	next   store.CallRow
	entry  plugin.Entry
	answer []byte // nil for none
	keep   time.Time
}

// do makes the move and reports whether the row still stood as it must.
func (m *move) do(tx store.Tx) (won bool, err error) {
	if won, err = tx.UpdateCall(m.from.Fence(), m.next); err != nil || !won {
		return won, err
	}
	if m.answer != nil {
		if _, err := tx.PutBody(m.next.Tenant, m.answer, m.keep); err != nil {
			return true, err
		}
	}
	tx.Append(m.entry)
	return true, nil
}

// endEntry is the entry with which a call comes to a state.
var endEntry = map[store.CallState]plugin.EntryKind{
	store.CallSucceeded:  plugin.EntryCallSucceeded,
	store.CallFailed:     plugin.EntryCallFailed,
	store.CallUnknown:    plugin.EntryCallUnknown,
	store.CallInProgress: plugin.EntryCallProgress,
	store.CallQueued:     plugin.EntryCallQueued,
}

// settled returns the move from row to an outcome.
func (l *Ledger) settled(row store.CallRow, o Outcome, rec *plugin.CallRecord, at time.Time) (*move, error) {
	var expires time.Time
	if l.opts.Keep > 0 {
		expires = at.Add(l.opts.Keep)
	}
	return outcome(row, endEntry[o.State], o, rec, at, expires)
}

// outcome returns the move from row to o, told by an entry of that kind.
func outcome(row store.CallRow, kind plugin.EntryKind, o Outcome, rec *plugin.CallRecord, at, expires time.Time) (*move, error) {
	if kind == "" {
		return nil, fmt.Errorf("settling call %s: %q is not how a call ends", row.ID, o.State)
	}
	m := &move{from: row, next: row, keep: expires}
	m.next.State, m.next.Lease, m.next.UpdatedAt, m.next.WakeAt = o.State, "", at, o.WakeAt
	if o.State == store.CallQueued || o.State == store.CallInProgress {
		m.next.Node = ""
	}
	if o.Free {
		m.next.Key = ownKey(row.ID)
	}
	if o.Err != nil {
		m.next.Code = string(o.Err.Code)
	} else if o.State == store.CallSucceeded {
		m.next.Code = "" // an unknown one had one
	}
	var err error
	if o.State.Ended() {
		if m.answer, err = encodeAnswer(o.Result, o.Err); err != nil {
			return nil, fmt.Errorf("settling call %s: %w", row.ID, err)
		}
		m.next.ResultHash, m.next.SchemaVersion = canon.Sum(m.answer), plugin.SchemaVersion
	}
	m.entry, err = entry(row.Tenant, kind, rec, at)
	return m, err
}

// recordOf returns what is on record of a call: its first entry knows more than
// its row.
func recordOf(ctx context.Context, r store.Reader, row *store.CallRow) (plugin.CallRecord, error) {
	rec := plugin.CallRecord{
		CallID: row.ID, Operation: row.Operation, Version: row.Version, PackageDigest: row.PackageDigest, InputHash: row.InputHash,
		Principal: row.Principal, Actor: row.Actor, Origin: plugin.Origin(row.Origin), Parent: row.Parent, Session: row.Session,
		Plan: row.Plan, Labels: row.Labels, SchemaVersion: plugin.SchemaVersion,
	}
	for e, err := range r.Entries(ctx, store.EntryFilter{Tenant: row.Tenant, Subject: row.ID, Kind: "call.", Limit: 1}) {
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

// told returns the move from row to o with what is on record of the call.
func told(ctx context.Context, tx store.Tx, row store.CallRow, kind plugin.EntryKind, o Outcome, at time.Time) (*move, error) {
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
	return outcome(row, kind, o, &rec, at, time.Time{})
}

// statusOf is how a state reads outside.
func statusOf(state store.CallState) plugin.Status {
	switch state {
	case store.CallSucceeded:
		return plugin.Succeeded
	case store.CallFailed:
		return plugin.Failed
	case store.CallUnknown:
		return plugin.Unknown
	case store.CallPending:
		return plugin.PendingApproval
	}
	return plugin.InProgress
}

// Status returns how a state of a call reads outside.
func Status(state store.CallState) plugin.Status { return statusOf(state) }

// Release lets a call that waits for approval run, in the transaction of the
// approval. A call that no longer waits stays as it is.
func Release(ctx context.Context, tx store.Tx, tenant, id string, at time.Time) error {
	return shift(ctx, tx, tenant, id, store.CallPending, Outcome{State: store.CallQueued, WakeAt: at}, plugin.EntryCallQueued, at)
}

// Refuse fails a call that waits for approval, in the transaction that says
// why. A call that no longer waits stays as it is.
func Refuse(ctx context.Context, tx store.Tx, tenant, id string, why *plugin.Error, at time.Time) error {
	return shift(ctx, tx, tenant, id, store.CallPending, Outcome{State: store.CallFailed, Err: why}, plugin.EntryCallFailed, at)
}

func shift(ctx context.Context, tx store.Tx, tenant, id string, from store.CallState, o Outcome, kind plugin.EntryKind, at time.Time) error {
	row, err := tx.Call(ctx, tenant, id)
	if err != nil || row == nil || row.State != from {
		return err
	}
	m, err := told(ctx, tx, *row, kind, o, at)
	if err != nil {
		return err
	}
	_, err = m.do(tx)
	return err
}
