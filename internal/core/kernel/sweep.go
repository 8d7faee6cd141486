package kernel

import (
	"context"

	"github.com/mortise-dev/mortise/internal/core/ledger"
)

// Due returns calls for which the time has come, the longest waiting first:
// those that may run, those of which it is to be asked how they ended, and
// those that have waited long enough for a person. Ends of calls that could not
// be recorded are recorded first, where that works by now, and calls that stand as
// running without being so are settled.
func (k *Kernel) Due(ctx context.Context, limit int) ([]ledger.CallRow, error) {
	k.recordAgain(ctx)
	if err := k.orphans(ctx); err != nil {
		return nil, err
	}
	return k.Ledger.Due(ctx, k.Now(), limit)
}

// Advance moves a call whose wake time has passed: it resumes a queued call and
// reconciles one whose outcome is unknown. It settles a running call that this process is
// not at work on, though the store says so. Package approval moves a call that waits for
// approval.
func (k *Kernel) Advance(ctx context.Context, tenant, id string) error {
	row, err := k.Ledger.Call(ctx, tenant, id)
	if err != nil || row == nil {
		return err
	}
	switch row.State {
	case ledger.Queued:
		if !row.WakeAt.After(k.Now()) {
			_, err = k.Resume(ctx, tenant, id)
		}
	case ledger.Unknown, ledger.InProgress:
		if !row.WakeAt.IsZero() && !row.WakeAt.After(k.Now()) {
			err = k.Reconcile(ctx, tenant, id)
		}
	case ledger.Running:
		if k.Ledger.IsOurs(row) {
			err = k.settleOrphan(ctx, row)
		}
	}
	return err
}
