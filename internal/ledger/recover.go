package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// Recover settles what dead processes left and returns how many there were.
// Open does it; a process that runs for long does it again now and then.
//
// The death is an entry, because up to a moment's worth of entries written
// behind died too: the ledger says where it may have a gap. A call that was
// running becomes unknown if its operation has effects, since nobody can tell
// whether one happened, and otherwise failed.
func (l *Ledger) Recover(ctx context.Context) (int, error) {
	n, err := l.st.Recover(ctx, func(tx store.Tx, node store.NodeRow) error {
		return bury(ctx, tx, node, l.st.Node(), time.Now().UTC())
	})
	if err != nil {
		return n, fmt.Errorf("recovering from an unclean end: %w", err)
	}
	return n, nil
}

// bury writes a dead node's last entries.
func bury(ctx context.Context, tx store.Tx, node store.NodeRow, finder string, at time.Time) error {
	body, err := json.Marshal(struct {
		Node      string    `json:"node"`
		StartedAt time.Time `json:"started_at"`
	}{node.ID, node.StartedAt})
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: at, Kind: plugin.EntryNodeUnclean, Subject: node.ID, Principal: finder, Body: body})

	calls, err := tx.Calls(ctx, store.CallFilter{Node: node.ID, State: store.CallRunning})
	if err != nil {
		return err
	}
	for _, row := range slices.Backward(calls) { // oldest first
		if err := settleDead(ctx, tx, row, at); err != nil {
			return err
		}
	}
	return nil
}

func settleDead(ctx context.Context, tx store.Tx, row store.CallRow, at time.Time) error {
	next, kind := row, plugin.EntryCallFailed
	next.State, next.Code, next.Lease, next.UpdatedAt = store.CallFailed, string(plugin.CodeCrashed), "", at
	status, message := plugin.Failed, "the host ended while the call was running"
	if row.Effectful {
		next.State, next.Code, kind = store.CallUnknown, string(plugin.CodeOutcomeUnknown), plugin.EntryCallUnknown
		status, message = plugin.Unknown, "the host ended while the call was running; an effect may or may not have happened"
	}

	rec := plugin.CallRecord{
		CallID: row.ID, Operation: row.Operation, Version: row.Version, PackageDigest: row.PackageDigest, InputHash: row.InputHash,
		Principal: row.Principal, Actor: row.Actor, Origin: plugin.Origin(row.Origin), Parent: row.Parent, Session: row.Session,
	}
	for e, err := range tx.Entries(ctx, store.EntryFilter{Subject: row.ID, Kind: string(plugin.EntryCallStarted), Limit: 1}) {
		if err != nil {
			return err
		}
		// The entry knows more than the row. One that cannot be read is for
		// Verify to find, and no reason to leave the call running for ever.
		var started plugin.CallRecord
		if json.Unmarshal(e.Body, &started) == nil {
			rec = started
		}
	}
	rec.Status = status
	rec.Error = &plugin.ErrorRecord{Code: plugin.Code(next.Code), Message: message}
	e, err := entry(row.Tenant, kind, &rec, at)
	if err != nil {
		return err
	}
	won, err := tx.UpdateCall(row.Fence(), next)
	if err != nil || !won {
		return err
	}
	tx.Append(e)
	return nil
}
