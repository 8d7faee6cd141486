package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/fault"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// Recover settles what dead processes left and returns how many there were.
// Open does it; a process that runs for long does it again now and then.
//
// The death is an entry, because up to a moment's worth of entries written
// behind died too: the ledger says where it may have a gap. What becomes of a
// call that was running is in [afterlife].
func (l *Ledger) Recover(ctx context.Context) (int, error) {
	n, err := l.st.Recover(store.Settling(ctx), func(tx store.Tx, node store.NodeRow) error {
		at := time.Now().UTC()
		if err := bury(ctx, tx, node, l.st.Node(), at); err != nil {
			return err
		}
		if l.opts.Bury == nil {
			return nil
		}
		return l.opts.Bury(ctx, tx, node, at)
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
		effects, err := tx.Effects(ctx, row.Tenant, row.ID)
		if err != nil {
			return err
		}
		o := afterlife(&row, effects, at)
		kind := endEntry[o.State]
		m, err := told(ctx, tx, row, kind, o, at)
		if err != nil {
			return err
		}
		if _, err := m.do(tx); err != nil {
			return err
		}
	}
	return nil
}

// MaxAttempts is how often a call is run before it is taken to be what kills
// the host.
const MaxAttempts = 3

// afterlife decides what becomes of a call whose process died while it was
// running: it runs again if nothing was sent, or if everything that was sent
// was answered or can be sent again under the same key; else nobody can say
// what happened.
func afterlife(row *store.CallRow, effects []store.EffectRow, at time.Time) Outcome {
	unknown := func(what string) Outcome {
		// An operator that can find out is asked at once.
		return Outcome{State: store.CallUnknown, Err: plugin.Errorf(plugin.CodeOutcomeUnknown, "the host ended while the call was running; %s", what), WakeAt: at}
	}
	if fault.Lifted("unknown") {
		return Outcome{State: store.CallQueued, WakeAt: at}
	}
	if row.Effectful && !row.Journalled {
		return unknown("an effect may or may not have happened")
	}
	for _, e := range effects {
		if e.State == store.EffectIntent && e.ProviderKey == "" {
			return unknown(fmt.Sprintf("effect %d, %s, was about to be sent and may or may not have happened", e.N, e.Method))
		}
	}
	switch {
	case row.Cancelled && len(effects) == 0:
		return Outcome{State: store.CallFailed, Err: plugin.Errorf(plugin.CodeCancelled, "it was cancelled, and the host ended before it had any effect")}
	case row.Cancelled:
		return unknown("it was cancelled after it had begun to have effects")
	case row.RequestHash == "":
		return Outcome{State: store.CallFailed, Err: plugin.Errorf(plugin.CodeCrashed, "the host ended while the call was running")}
	case row.Attempt < MaxAttempts:
		return Outcome{State: store.CallQueued, WakeAt: at}
	case len(effects) > 0:
		return unknown(fmt.Sprintf("it was run %d times and had begun to have effects", row.Attempt))
	default:
		return Outcome{State: store.CallFailed, Err: plugin.Errorf(plugin.CodeCrashed, "the host ended each of the %d times that the call was running", row.Attempt)}
	}
}
