package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/canon"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A Claim is a call about to run.
type Claim struct {
	Call          *plugin.Call
	Target        *plugin.Target
	Fingerprint   string // hash of what the caller asked for, before hooks
	InputHash     string // hash of what the plugin will see
	PolicyVersion string
	Deadline      time.Time
	Record        *plugin.CallRecord // as the entry call.started keeps it
	At            time.Time
}

// A Lease is the right to settle one attempt of one call. The zero Lease is
// nobody's.
type Lease struct{ row store.CallRow }

// Call returns the id of the call.
func (l Lease) Call() string { return l.row.ID }

// A Prior is the call that burnt a key first.
type Prior struct {
	CallID      string
	State       store.CallState
	Fingerprint string
	Principal   string         // who made it
	Result      *plugin.Result // the stored answer: Data byte for byte as it was given the first time
	Err         *plugin.Error  // or the stored error
	Erased      bool           // there was an answer, and its time is over
}

// An Outcome is how an attempt ended.
type Outcome struct {
	State  store.CallState // succeeded, failed or unknown
	Result *plugin.Result
	Err    *plugin.Error
}

// StoredKey returns the key under which call burns: its caller's own, or one
// that is no other call's.
func StoredKey(call *plugin.Call) string {
	if call.Key != "" {
		return "k:" + call.Key
	}
	return "c:" + call.ID
}

// Lookup returns the call that burnt key, nil if none did. operation is
// plugin/operation, and key is in its stored form ([StoredKey]).
func (l *Ledger) Lookup(ctx context.Context, tenant, operation, key string) (prior *Prior, err error) {
	row, err := l.st.CallByKey(ctx, tenant, operation, key)
	if err != nil || row == nil {
		return nil, err
	}
	return priorOf(ctx, l.st, row)
}

// Claim burns the call's key: in one transaction the call becomes a row that is
// running and an entry call.started. When it returns a lease, both are on the
// disk and an effect may follow. If the key was burnt before, prior is by what,
// and nothing is written.
func (l *Ledger) Claim(ctx context.Context, c Claim) (lease Lease, prior *Prior, err error) {
	e, err := entry(c.Call.Tenant, plugin.EntryCallStarted, c.Record, c.At)
	if err != nil {
		return Lease{}, nil, err
	}
	row := store.CallRow{
		Tenant: c.Call.Tenant, ID: c.Call.ID, Operation: c.Target.Name(), Key: StoredKey(c.Call), Fingerprint: c.Fingerprint,
		Principal: c.Record.Principal, Actor: c.Call.Actor, Agent: c.Call.Agent, Origin: string(c.Call.Origin),
		Parent: c.Call.Parent, Session: c.Call.Session, Labels: c.Call.Labels,
		Version: c.Target.Manifest.Version, PackageDigest: c.Target.Package.Digest, PolicyVersion: c.PolicyVersion,
		InputHash: c.InputHash, Effectful: len(c.Target.Operation.Effects) > 0, CreatedAt: c.At,
		State: store.CallRunning, Attempt: 1, Lease: uuid.NewString(), Node: l.st.Node(), Deadline: c.Deadline, UpdatedAt: c.At,
	}
	err = l.st.Write(ctx, func(tx store.Tx) error {
		prior = nil // this may be the second run
		seen, err := tx.InsertCall(row)
		if err != nil {
			return err
		}
		if seen != nil {
			prior, err = priorOf(ctx, tx, seen)
			return err
		}
		tx.Append(e)
		return nil
	})
	if err != nil || prior != nil {
		return Lease{}, prior, err
	}
	return Lease{row}, nil, nil
}

// Settle ends the attempt that lease is for: in one transaction the row changes
// its state, the answer becomes a body and the end an entry. It does not stop
// for ctx, because what happened has happened. It fails with [ErrLeaseLost],
// and writes nothing, if the attempt was ended by somebody else.
func (l *Ledger) Settle(ctx context.Context, lease Lease, o Outcome, rec *plugin.CallRecord, at time.Time) error {
	kind, ok := map[store.CallState]plugin.EntryKind{
		store.CallSucceeded: plugin.EntryCallSucceeded,
		store.CallFailed:    plugin.EntryCallFailed,
		store.CallUnknown:   plugin.EntryCallUnknown,
	}[o.State]
	if !ok {
		return fmt.Errorf("settling call %s: %q is not how a call ends", lease.row.ID, o.State)
	}
	e, err := entry(lease.row.Tenant, kind, rec, at)
	if err != nil {
		return err
	}
	body, err := encodeAnswer(o.Result, o.Err)
	if err != nil {
		return fmt.Errorf("settling call %s: %w", lease.row.ID, err)
	}
	var expires time.Time
	if l.opts.Keep > 0 {
		expires = at.Add(l.opts.Keep)
	}

	next := lease.row
	next.State, next.Lease, next.UpdatedAt = o.State, "", at
	next.ResultHash, next.SchemaVersion = canon.Sum(body), plugin.SchemaVersion
	if o.Err != nil {
		next.Code = string(o.Err.Code)
	}
	var won bool
	err = lapsing(func() error {
		return l.st.Write(context.WithoutCancel(ctx), func(tx store.Tx) (err error) {
			if won, err = tx.UpdateCall(lease.row.Fence(), next); err != nil || !won {
				return err
			}
			tx.Append(e)
			_, err = tx.PutBody(next.Tenant, body, expires)
			return err
		})
	})
	if err != nil {
		return err
	}
	if !won {
		return fmt.Errorf("settling call %s: %w", lease.row.ID, ErrLeaseLost)
	}
	return nil
}

// priorOf reads the answer that row keeps.
func priorOf(ctx context.Context, r store.Reader, row *store.CallRow) (*Prior, error) {
	p := &Prior{CallID: row.ID, State: row.State, Fingerprint: row.Fingerprint, Principal: row.Principal}
	if row.ResultHash == "" {
		if row.Code != "" { // settled without an answer, by recovery
			code := plugin.Code(row.Code)
			p.Err = &plugin.Error{Code: code, Message: code.Meaning()}
		}
		return p, nil
	}
	body, err := r.Body(ctx, row.Tenant, row.ResultHash)
	if err != nil {
		return nil, err
	}
	if body == nil {
		p.Erased = true
		return p, nil
	}
	if p.Result, p.Err, err = decodeAnswer(body); err != nil {
		return nil, errors.Join(fmt.Errorf("the stored answer of call %s cannot be read", row.ID), err)
	}
	return p, nil
}
