package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/plugin"
)

// A Claim is a call about to run, now or later.
type Claim struct {
	Call          *plugin.Call
	Target        *plugin.Target
	State         State  // running, queued or pending_approval
	Fingerprint   string // hash of what the caller asked for, before hooks
	InputHash     string // hash of what the plugin will see
	Request       []byte // with which it can be run again, on any node
	PolicyVersion string
	Journalled    bool      // every effect of it goes through the journal
	WakeAt        time.Time // when a call that waits is to be looked at
	Deadline      time.Time
	Record        *plugin.CallRecord // as its first entry keeps it
	At            time.Time

	// Also is done in the same transaction; nil does nothing.
	Also func(tx Tx) error
}

// A Lease is the right to settle one attempt of one call. The zero Lease belongs to no
// attempt.
type Lease struct{ row CallRow }

// Call returns the id of the call.
func (l Lease) Call() string { return l.row.ID }

// Attempt counts from 1.
func (l Lease) Attempt() int64 { return l.row.Attempt }

// Journalled reports whether every effect of the call goes through the journal.
func (l Lease) Journalled() bool { return l.row.Journalled }

// A Prior is the call that burnt a key first.
type Prior struct {
	CallID      string
	State       State
	Fingerprint string
	Principal   string          // who made it
	Waits       *plugin.Pending // for what, if it is pending
	Result      *plugin.Result  // the stored answer: Data byte for byte as it was given the first time
	Err         *plugin.Error   // or the stored error
	Labels      []string        // of all that is told of the call: its answer, its error, its preview
	Erased      bool            // there was an answer, and it was removed
	Removed     string          // by what and when, for people; "" where that is not known
	ResultHash  string          // of the answer that was removed
}

// An Outcome is how an attempt ended.
type Outcome struct {
	State  State // succeeded, failed or unknown; in_progress or queued if it goes on
	Result *plugin.Result
	Err    *plugin.Error
	Labels []string  // of the result and the error; nil if they are not known, which counts as untrusted
	WakeAt time.Time // when a call that goes on is to be looked at
	Free   bool      // nothing of it happened: its key is free for another call
}

// labels returns the labels of the answer of a call. They include those of the call, because
// labels only grow.
func (o *Outcome) labels(row *CallRow) []string {
	labels := o.Labels
	if o.Result != nil {
		labels = plugin.Labels(labels, o.Result.Labels)
	} else if labels == nil {
		labels = unlabelled
	}
	return append([]string{}, plugin.Labels(row.Labels, labels)...)
}

// ownWords are the labels of an outcome that the host or a person describes in their own words.
var ownWords = []string{}

// Lookup returns the call that burnt key, nil if none did. operation is
// plugin/operation, and key is in its stored form ([StoredKey]).
func (l *Ledger) Lookup(ctx context.Context, tenant, operation, key string) (prior *Prior, err error) {
	row, err := l.st.CallByKey(ctx, tenant, operation, key)
	if err != nil || row == nil {
		return nil, err
	}
	return priorOf(ctx, l.st, row)
}

// firstEntry is the entry with which a call begins, by its first state.
var firstEntry = map[State]plugin.EntryKind{
	Running: plugin.EntryCallStarted,
	Queued:  plugin.EntryCallQueued,
	Pending: plugin.EntryCallPending,
}

// Claim burns the call's key: in one transaction the call becomes a row and an
// entry. When it returns a lease, both are on the disk and, if the call is
// running, an effect may follow. If the key was burnt before, prior is by what,
// and nothing is written.
func (l *Ledger) Claim(ctx context.Context, c Claim) (lease Lease, prior *Prior, err error) {
	if c.State, err = transition(None, claimed(c.State)); err != nil {
		return Lease{}, nil, err
	}
	e, err := entry(c.Call.Tenant, firstEntry[c.State], c.Record, c.At)
	if err != nil {
		return Lease{}, nil, err
	}
	row := CallRow{
		Tenant: c.Call.Tenant, ID: c.Call.ID, Operation: c.Target.Name(), Key: StoredKey(c.Call), Fingerprint: c.Fingerprint,
		Principal: c.Record.Principal, Actor: c.Call.Actor, Agent: c.Call.Agent, Origin: string(c.Call.Origin),
		Parent: c.Call.Parent, Plan: c.Call.Plan, Session: c.Call.Session, Labels: c.Call.Labels,
		Version: c.Target.Manifest.Version, PackageDigest: c.Target.Package.Digest, PolicyVersion: c.PolicyVersion,
		InputHash: c.InputHash, Effectful: len(c.Target.Operation.Effects) > 0, Journalled: c.Journalled, CreatedAt: c.At,
		State: c.State, WakeAt: c.WakeAt, Deadline: c.Deadline, UpdatedAt: c.At,
	}
	if c.State == Running {
		row.Attempt, row.Lease, row.Node = 1, uuid.NewString(), l.st.Node()
	}
	if c.Request != nil {
		row.RequestHash = canon.Sum(c.Request)
	}
	err = l.st.Write(ctx, func(tx Tx) error {
		prior = nil // this may be the second run
		seen, err := tx.InsertCall(row)
		if err != nil {
			return err
		}
		if seen != nil {
			prior, err = priorOf(ctx, tx, seen)
			return err
		}
		if c.Request != nil {
			if _, err := tx.PutBody(row.Tenant, c.Request, time.Time{}); err != nil {
				return err
			}
		}
		tx.Append(e)
		if c.Also != nil {
			return c.Also(tx)
		}
		return nil
	})
	if err != nil || prior != nil {
		return Lease{}, prior, err
	}
	return Lease{row}, nil, nil
}

// Settle ends the attempt that lease is for: in one transaction the row changes its
// state, the answer becomes a body and the end an entry. It ignores a cancelled ctx,
// because the outcome has already happened. It fails with [ErrLeaseLost], and writes
// nothing, if another owner has ended the attempt.
func (l *Ledger) Settle(ctx context.Context, lease Lease, o Outcome, rec *plugin.CallRecord, at time.Time) error {
	if lease.row.ID == "" {
		return fmt.Errorf("settling no call: %w", ErrLeaseLost)
	}
	u, err := l.settled(lease.row, o, rec, at)
	if err != nil {
		return err
	}
	var won bool
	err = lapsing(func() error {
		return l.st.Write(settling(context.WithoutCancel(ctx)), func(tx Tx) (err error) {
			won, err = u.apply(tx)
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

// Labels returns the labels of a call, nil if it has none.
func Labels(row *CallRow) []string {
	if len(row.Labels) == 0 {
		return nil
	}
	return row.Labels
}

// priorOf reads the answer that row keeps.
func priorOf(ctx context.Context, r Reader, row *CallRow) (*Prior, error) {
	p := &Prior{CallID: row.ID, State: row.State, Fingerprint: row.Fingerprint, Principal: row.Principal, Labels: Labels(row)}
	if row.State == Pending {
		asked, err := r.Approvals(ctx, approvalFilter{Tenant: row.Tenant, SubjectID: row.ID, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(asked) > 0 {
			a := &asked[0]
			p.Waits = &plugin.Pending{ID: a.ID, Why: a.Why, ExpiresAt: a.ExpiresAt}
			if p.Waits.Preview, err = Preview(ctx, r, a); err != nil {
				return nil, err
			}
			if len(p.Waits.Preview) > 0 { // its labels are not kept
				p.Labels = plugin.Labels(p.Labels, unlabelled)
			}
		}
	}
	if row.ResultHash == "" {
		if row.Code != "" { // settled without an answer, by recovery
			code := plugin.Code(row.Code)
			p.Err = &plugin.Error{Code: code, Message: code.Meaning()}
			p.Labels = plugin.Labels(p.Labels, unlabelled)
		} else if row.State == Succeeded || row.State == Failed {
			return nil, changed("how call " + row.ID + " ended")
		}
		return p, nil
	}
	body, err := r.Body(ctx, row.Tenant, row.ResultHash)
	if err != nil {
		return nil, err
	}
	if body == nil {
		p.Erased, p.ResultHash = true, row.ResultHash
		p.Labels = plugin.Labels(p.Labels, unlabelled)
		if !row.RemovedAt.IsZero() {
			p.Removed = " (removed by " + row.RemovedBy + " on " + row.RemovedAt.Format(time.DateOnly) + ")"
		}
		return p, nil
	}
	if canon.Sum(body) != row.ResultHash {
		return nil, changed("the stored answer of call " + row.ID)
	}
	var labels []string
	if p.Result, p.Err, labels, err = decodeAnswer(body); err != nil {
		return nil, errors.Join(fmt.Errorf("the stored answer of call %s cannot be read", row.ID), err)
	}
	if len(labels) > 0 {
		p.Labels = plugin.Labels(p.Labels, labels)
	}
	if p.Result != nil {
		p.Result.Labels = p.Labels
	}
	return p, nil
}

// changed says that what is kept is not what was stored, and is not used.
func changed(what string) *plugin.Error {
	return plugin.Errorf(plugin.CodeInternal, "%s was changed in the database: it no longer has the hash that it was stored under; 'mortise ledger verify' checks all that is kept", what)
}
