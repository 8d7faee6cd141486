package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/fault"
	"github.com/mortise-dev/mortise/plugin"
)

// Recover settles what dead processes left and returns how many there were.
// Open does it; a process that runs for long does it again now and then.
//
// The death is an entry, because up to a moment's worth of entries written
// behind died too: the ledger says where it may have a gap. What becomes of a
// call that was running is decided by [recoveredState].
func (l *Ledger) Recover(ctx context.Context) (int, error) {
	n, err := l.st.Recover(settling(ctx), func(tx Tx, node NodeRow) error {
		at := l.Now().UTC()
		if err := recoverNode(ctx, tx, node, l.st.Node(), at); err != nil {
			return err
		}
		if l.opts.Recover == nil {
			return nil
		}
		return l.opts.Recover(ctx, tx, node, at)
	})
	if err != nil {
		return n, fmt.Errorf("recovering from an unclean end: %w", err)
	}
	return n, nil
}

// recoverNode appends the entry for the death of a node and settles the calls that the
// node was running.
func recoverNode(ctx context.Context, tx Tx, node NodeRow, finder string, at time.Time) error {
	body, err := json.Marshal(struct {
		Node      string    `json:"node"`
		StartedAt time.Time `json:"started_at"`
	}{node.ID, node.StartedAt})
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: at, Kind: plugin.EntryNodeUnclean, Subject: node.ID, Principal: finder, Body: body})

	calls, err := tx.Calls(ctx, CallFilter{Node: node.ID, State: Running})
	if err != nil {
		return err
	}
	for _, row := range slices.Backward(calls) { // oldest first
		if _, err := byJournal(ctx, tx, row, "the host ended while the call was running", at); err != nil {
			return err
		}
	}
	return nil
}

// byJournal settles a call that is running and that no process is at work on. won
// is false if it stands otherwise by now.
func byJournal(ctx context.Context, tx Tx, row CallRow, why string, at time.Time) (won bool, err error) {
	effects, err := tx.Effects(ctx, row.Tenant, row.ID)
	if err != nil {
		return false, err
	}
	o := recoveredState(&row, effects, why, at)
	u, err := updateOf(ctx, tx, row, "", endEntry[o.State], o, at)
	if err != nil {
		return false, err
	}
	return u.apply(tx)
}

// IsOurs reports whether the store has this process run a call.
func (l *Ledger) IsOurs(row *CallRow) bool {
	return row.State == Running && row.Node != "" && row.Node == l.st.Node()
}

// Running returns the calls that the store has this process run, the oldest first.
func (l *Ledger) Running(ctx context.Context) ([]CallRow, error) {
	if l.st.Node() == "" {
		return nil, nil // it only reads, and an empty filter asks for those of all
	}
	rows, err := l.st.Calls(ctx, CallFilter{Node: l.st.Node(), State: Running})
	slices.Reverse(rows)
	return rows, err
}

// Abandoned settles a call that this process is not at work on, though the store
// says so, as it settles those of a dead one: by its journal. won is false if the
// call stands otherwise by now.
func (l *Ledger) Abandoned(ctx context.Context, row CallRow, at time.Time) (won bool, err error) {
	err = l.st.Write(settling(ctx), func(tx Tx) error {
		won, err = byJournal(ctx, tx, row, "how the call ended could not be recorded", at)
		return err
	})
	return won, err
}

// MaxAttempts is how often a call is run before it is taken to be what kills
// the host.
const MaxAttempts = 3

// MayResume reports whether a call goes on by itself if this claim was written and the
// attempt is given up: see [recoveredState].
func (c *Claim) MayResume() bool {
	return c.State == Queued || c.State == Pending || c.Journalled || len(c.Target.Operation.Effects) == 0
}

// MayResume reports whether recovery may run the call again if nothing is known of what this
// attempt did: see [recoveredState].
func (l Lease) MayResume() bool {
	return (l.row.Journalled || !l.row.Effectful) && l.row.RequestHash != "" && l.row.Attempt < MaxAttempts
}

// MayResume is [Lease.MayResume] for an attempt whose effects are in the journal.
func (j *Journal) MayResume() bool {
	open, repeatable := j.Unanswered()
	return open == repeatable && j.lease.MayResume()
}

// recoveredState decides the outcome of a call that is marked running but has no live process; why is
// the reason. The call runs again if it sent nothing, or if each effect was answered or can be repeated
// under the same idempotency key; otherwise its outcome is unknown.
func recoveredState(row *CallRow, effects []effectRow, why string, at time.Time) Outcome {
	unknown := func(what string) Outcome {
		// An operator that can find out is asked at once.
		return Outcome{State: Unknown, Err: plugin.Errorf(plugin.CodeOutcomeUnknown, "%s; %s", why, what), Labels: ownWords, WakeAt: at}
	}
	if fault.Lifted("unknown") {
		return Outcome{State: Queued, WakeAt: at}
	}
	if row.Effectful && !row.Journalled {
		return unknown("an effect may or may not have happened")
	}
	for _, e := range effects {
		if e.State == effectIntent && e.ProviderKey == "" {
			return unknown(fmt.Sprintf("effect %d, %s, was about to be sent and may or may not have happened", e.N, e.Method))
		}
	}
	failed := func(code plugin.Code, format string, args ...any) Outcome {
		return Outcome{State: Failed, Err: plugin.Errorf(code, format, args...), Labels: ownWords}
	}
	switch {
	case row.Cancelled && len(effects) == 0:
		return failed(plugin.CodeCancelled, "it was cancelled before it had any effect; %s", why)
	case row.Cancelled:
		return unknown("it was cancelled after it had begun to have effects")
	case row.RequestHash == "":
		return failed(plugin.CodeCrashed, "%s", why)
	case row.Attempt < MaxAttempts:
		return Outcome{State: Queued, WakeAt: at}
	case len(effects) > 0:
		return unknown(fmt.Sprintf("it was run %d times and had begun to have effects", row.Attempt))
	default:
		return failed(plugin.CodeCrashed, "%s, and so did %d attempts before it", why, row.Attempt-1)
	}
}
