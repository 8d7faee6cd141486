package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/plugin"
)

// A Waiting is a call that is not running: what it takes to go on with it.
type Waiting struct {
	Row     CallRow
	Request []byte // as it was claimed with
}

// Waiting returns a call with what it was claimed with; nil if there is none.
func (l *Ledger) Waiting(ctx context.Context, tenant, id string) (*Waiting, error) {
	row, err := l.st.Call(ctx, tenant, id)
	if err != nil || row == nil {
		return nil, err
	}
	return l.waiting(ctx, row)
}

// ToRun is Waiting for who goes on with the call: what the row says is what the
// ledger says of it, and not what another wrote into the database. It is of one
// moment, in which a call that has ended is not one that waits.
func (l *Ledger) ToRun(ctx context.Context, tenant, id string) (*Waiting, error) {
	row, err := l.st.CallToRun(ctx, tenant, id)
	if err != nil || row == nil {
		return nil, err
	}
	return l.waiting(ctx, row)
}

func (l *Ledger) waiting(ctx context.Context, row *CallRow) (w *Waiting, err error) {
	tenant, id := row.Tenant, row.ID
	w = &Waiting{Row: *row}
	if row.RequestHash != "" {
		if w.Request, err = l.st.Body(ctx, tenant, row.RequestHash); err != nil {
			return nil, err
		}
		if w.Request != nil && canon.Sum(w.Request) != row.RequestHash {
			return nil, changed("what call " + id + " was made with")
		}
	}
	return w, nil
}

// Prior returns how a call stands, with its answer if it has one.
func (l *Ledger) Prior(ctx context.Context, row *CallRow) (*Prior, error) {
	return priorOf(ctx, l.st, row)
}

// Start claims a queued call for this process: in one transaction the row becomes
// running with a new attempt, and an entry records it. also runs in the same
// transaction and may refuse. won is false if another process claimed the call first.
func (l *Ledger) Start(ctx context.Context, row CallRow, rec *plugin.CallRecord, policy string, deadline, at time.Time, also func(tx Tx) (bool, error)) (lease Lease, won bool, err error) {
	next := row
	if next.State, err = transition(row.State, eventStart); err != nil {
		return Lease{}, false, err
	}
	next.Attempt, next.Lease, next.Node = row.Attempt+1, uuid.NewString(), l.st.Node()
	next.Deadline, next.UpdatedAt, next.WakeAt = deadline, at, time.Time{}
	rec.Attempt = next.Attempt
	e, err := entry(row.Tenant, plugin.EntryCallStarted, rec, at)
	if err != nil {
		return Lease{}, false, err
	}
	err = l.st.Write(ctx, func(tx Tx) (err error) {
		if won, err = tx.UpdateCall(row.Fence(), next); err != nil || !won {
			return err
		}
		now, err := tx.Call(ctx, row.Tenant, row.ID)
		if err != nil {
			return err
		}
		if now.Cancelled { // since the row was read
			return errTakenBack
		}
		if also != nil {
			fine, err := also(tx)
			if err != nil {
				return err
			}
			if !fine {
				return errTakenBack
			}
		}
		tx.Append(e)
		return nil
	})
	if err == errTakenBack {
		return Lease{}, false, nil
	}
	if err != nil || !won {
		return Lease{}, false, err
	}
	return Lease{next}, true, nil
}

var errTakenBack = errors.New("the call was cancelled, or its approval was used by another call")

// Refused ends a queued call that must not run: it failed, or is unknown if an earlier
// attempt sent an effect that was never answered. rec receives the status. won is false
// if the call is no longer queued.
func (l *Ledger) Refused(ctx context.Context, row CallRow, rec *plugin.CallRecord, why *plugin.Error, at time.Time, also func(tx Tx) error) (won bool, err error) {
	var ended plugin.CallRecord
	err = l.st.Write(ctx, func(tx Tx) error {
		o, err := abandoned(ctx, tx, &row, why, at)
		if err != nil {
			return err
		}
		o.Labels = append(o.Labels, rec.Labels...)
		kind := plugin.EntryCallRefused
		if o.State == Unknown {
			kind = plugin.EntryCallUnknown
		}
		ended = *rec
		ended.Status = statusOf(o.State)
		ended.Error = &plugin.ErrorRecord{Code: o.Err.Code, PluginCode: o.Err.PluginCode, Message: o.Err.Message}
		u, err := newUpdate(row, "", kind, o, &ended, at, time.Time{})
		if err != nil {
			return err
		}
		if won, err = u.apply(tx); err != nil || !won || also == nil {
			return err
		}
		return also(tx)
	})
	if err == nil && won {
		*rec = ended
	}
	return won, err
}

// Ask makes the question how a call ended this process's until a time: none other
// asks it meanwhile. won is false if another does, or the call stands otherwise.
func (l *Ledger) Ask(ctx context.Context, row *CallRow, at, until time.Time) (won bool, err error) {
	if row.Lease != "" && row.WakeAt.After(at) {
		return false, nil // another does
	}
	next := *row
	next.Lease, next.WakeAt = uuid.NewString(), until
	err = l.st.Write(ctx, func(tx Tx) (err error) {
		won, err = tx.UpdateCall(row.Fence(), next)
		return err
	})
	if won {
		*row = next
	}
	return won, err
}

// Hold binds a call that is in progress elsewhere to one holder, by compare-and-set on its lease: of
// several holders that try, one wins. won is false if another holds it, or the call has changed
// since row was read. The holder that has it wins again.
func (l *Ledger) Hold(ctx context.Context, row *CallRow, holder string, at time.Time) (won bool, err error) {
	lease := "held:" + canon.Sum([]byte(holder))
	if row.State != InProgress || row.Lease != "" {
		return row.State == InProgress && row.Lease == lease, nil
	}
	next := *row
	next.Lease, next.UpdatedAt = lease, at
	err = l.st.Write(ctx, func(tx Tx) (err error) {
		won, err = tx.UpdateCall(row.Fence(), next)
		return err
	})
	return won, err
}

// A Resolution says how a call ended that was unknown, or in progress elsewhere, and on
// whose word.
type Resolution struct {
	State    State // succeeded, failed, queued ("it did not happen"), unknown, or the row's own (the outcome is still to come)
	Result   *plugin.Result
	Err      *plugin.Error
	Labels   []string // of both; nil if they are not known, which counts as untrusted
	By       string   // a principal, or the operation that reconciled
	Reason   string
	Evidence []byte // JSON; may be nil
	WakeAt   time.Time
}

// MaxEvidence bounds what is kept with a settlement, in bytes.
const MaxEvidence = 64 << 10

// Resolve records how a call ended whose outcome was unknown or still to come. won is
// false if the state of the call has changed since row was read.
func (l *Ledger) Resolve(ctx context.Context, row CallRow, f Resolution, at time.Time) (won bool, err error) {
	if len(f.Evidence) > MaxEvidence {
		return false, plugin.Errorf(plugin.CodeInputTooLarge, "the evidence has %d bytes; at most %d are kept", len(f.Evidence), MaxEvidence)
	}
	err = l.st.Write(ctx, func(tx Tx) (err error) {
		won = false
		if f.State == row.State { // only when to ask again has changed
			next := row
			next.WakeAt, next.UpdatedAt, next.Lease = f.WakeAt, at, ""
			won, err = tx.UpdateCall(row.Fence(), next)
			return err
		}
		if f.State == Queued {
			if err := undone(ctx, tx, &row, at); err != nil {
				return err
			}
		}
		kind := plugin.EntryCallSettled
		if f.State == Unknown {
			kind = plugin.EntryCallUnknown
		}
		u, err := updateOf(ctx, tx, row, "", kind, Outcome{State: f.State, Result: f.Result, Err: f.Err, Labels: f.Labels, WakeAt: f.WakeAt}, at)
		if err != nil {
			return err
		}
		if u.entry.Body, err = withSettlement(u.entry.Body, f); err != nil {
			return err
		}
		u.entry.Principal = clean(f.By)
		won, err = u.apply(tx)
		return err
	})
	return won, err
}

// undone notes of the effects whose answer never came that they did not happen.
func undone(ctx context.Context, tx Tx, row *CallRow, at time.Time) error {
	effects, err := tx.Effects(ctx, row.Tenant, row.ID)
	if err != nil {
		return err
	}
	for _, e := range effects {
		if e.State != effectIntent {
			continue
		}
		e.State, e.At = effectNotDone, at
		if _, err := tx.UpdateEffect(row.Fence(), e); err != nil {
			return err
		}
	}
	return nil
}

// Cancel asks a call to stop: a waiting call ends at once, and the process that runs a
// running call receives the request. state is the call's state before.
//
// waited is done in the same transaction for a call that waited, for approval or
// to be run.
func (l *Ledger) Cancel(ctx context.Context, tenant, id, by, reason string, at time.Time, waited func(tx Tx) error) (state State, err error) {
	why := plugin.Errorf(plugin.CodeCancelled, "%s cancelled it", by)
	if reason != "" {
		why.Message += ": " + reason
	}
	err = l.st.Write(ctx, func(tx Tx) error {
		state = ""
		row, err := tx.Call(ctx, tenant, id)
		if err != nil {
			return err
		}
		if row == nil {
			return plugin.Errorf(plugin.CodeNotFound, "there is no call %s that could be cancelled", id)
		}
		if state = row.State; state.Ended() {
			return nil
		}
		if state == Pending || state == Queued {
			won, err := Abandon(ctx, tx, tenant, id, why, at)
			if err != nil {
				return err
			}
			if won {
				return waited(tx)
			}
			// Another node was faster. What it made of the call is noted on it
			// like on one that runs.
			if row, err = tx.Call(ctx, tenant, id); err != nil {
				return err
			}
			state = row.State
		}
		found, err := tx.CancelCall(tenant, id)
		if err != nil || !found || row.Cancelled {
			return err
		}
		rec, err := recordOf(ctx, tx, row)
		if err != nil {
			return err
		}
		rec.Status, rec.Error = plugin.InProgress, &plugin.ErrorRecord{Code: why.Code, Message: why.Message}
		e, err := entry(tenant, plugin.EntryCallCancel, &rec, at)
		if err != nil {
			return err
		}
		e.Principal = clean(by)
		tx.Append(e)
		return nil
	})
	return state, err
}

// Due returns calls for which the time has come: to run, to be asked about, or
// to give up waiting. The longest waiting come first.
func (l *Ledger) Due(ctx context.Context, now time.Time, limit int) ([]CallRow, error) {
	return l.st.Calls(ctx, CallFilter{DueBefore: now, Limit: limit})
}

// Cancelled returns the calls of this process for which a cancel is requested.
func (l *Ledger) Cancelled(ctx context.Context) ([]CallRow, error) {
	return l.st.Calls(ctx, CallFilter{Node: l.st.Node(), State: Running, Cancelled: true})
}

// Call returns the row of a call; nil if there is none.
func (l *Ledger) Call(ctx context.Context, tenant, id string) (*CallRow, error) {
	return l.st.Call(ctx, tenant, id)
}

// Approval returns an approval; nil if there is none.
func (l *Ledger) Approval(ctx context.Context, tenant, id string) (*approvalRow, error) {
	return l.st.Approval(ctx, tenant, id)
}

// ApprovalOf returns the last approval that was asked for a call; nil if there
// is none.
func (l *Ledger) ApprovalOf(ctx context.Context, tenant, call string) (*approvalRow, error) {
	rows, err := l.st.Approvals(ctx, approvalFilter{Tenant: tenant, SubjectKind: subjectCall, SubjectID: call, Limit: 1})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// Effects returns the journal of a call, and beside each effect its answer; nil
// for none.
func (l *Ledger) Effects(ctx context.Context, tenant, call string) (rows []effectRow, answers [][]byte, err error) {
	if rows, err = l.st.Effects(ctx, tenant, call); err != nil {
		return nil, nil, err
	}
	answers = make([][]byte, len(rows))
	for i, row := range rows {
		if row.ResponseHash == "" {
			continue
		}
		if answers[i], err = l.st.Body(ctx, tenant, row.ResponseHash); err != nil {
			return nil, nil, err
		}
	}
	return rows, answers, nil
}
