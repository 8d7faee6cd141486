package ledger

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// abandoned decides the outcome of a waiting call that must not run again. The call
// failed, unless an earlier attempt sent an effect that was never answered. Then the
// outcome is unknown, whatever the reason for giving up.
func abandoned(ctx context.Context, r Reader, row *CallRow, why *plugin.Error, at time.Time) (Outcome, error) {
	if row.Attempt == 0 {
		return Outcome{State: Failed, Err: why, Labels: ownWords}, nil
	}
	effects, err := r.Effects(ctx, row.Tenant, row.ID)
	if err != nil {
		return Outcome{}, err
	}
	done := 0
	for _, e := range effects {
		switch e.State {
		case effectIntent:
			return Outcome{State: Unknown, Err: why, Labels: ownWords, WakeAt: at}, nil // an operator that can find out is asked
		case effectDone, effectLate:
			done++
		}
	}
	if done > 0 {
		e := *why
		e.Message += Happened(done)
		why = &e
	}
	return Outcome{State: Failed, Err: why, Labels: ownWords}, nil
}

// Happened is what the message of a failure ends with where effects were
// answered before it.
func Happened(done int) string {
	return fmt.Sprintf("; its journal has %d of its effects, and how each ended", done)
}

// Abandon ends a call that waits for approval or is queued, in the transaction
// that says why. won is false, and nothing is written, if it is neither, or not
// any more.
func Abandon(ctx context.Context, tx Tx, tenant, id string, why *plugin.Error, at time.Time) (won bool, err error) {
	row, err := tx.Call(ctx, tenant, id)
	if err != nil || row == nil || row.State != Pending && row.State != Queued {
		return false, err
	}
	o, err := abandoned(ctx, tx, row, why, at)
	if err != nil {
		return false, err
	}
	u, err := updateOf(ctx, tx, *row, "", endEntry[o.State], o, at)
	if err != nil {
		return false, err
	}
	return u.apply(tx)
}
