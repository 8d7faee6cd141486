package plan

import (
	"context"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// finish ends the plan.
func (r *run) finish(ctx context.Context, state State, kind plugin.EntryKind, step string, why *plugin.Error) error {
	at := r.engine.now()
	next := r.row
	next.State, next.Lease, next.Node, next.UpdatedAt = state, "", "", at
	if why != nil {
		next.Code, next.Message = string(why.Code), why.Message
	}
	entry, err := r.engine.entry(&next, kind, r.row.Principal, at, func(ev *evidence) { ev.Step, ev.Approval = step, r.approval })
	if err != nil {
		return err
	}
	return r.write(ctx, next, &entry)
}

// leave releases the plan for the next run. The calls of its steps record in the ledger
// how far it came.
func (r *run) leave(ctx context.Context, state State) error {
	next := r.row
	next.State, next.Lease, next.Node, next.UpdatedAt = state, "", "", r.engine.now()
	return r.write(ctx, next, nil)
}

func (r *run) write(ctx context.Context, next Row, entry *plugin.Entry) error {
	var won bool
	err := r.engine.Store.Write(context.WithoutCancel(ctx), func(tx ledger.Tx) (err error) {
		if won, err = tx.UpdatePlan(r.row.Fence(), next); err == nil && won && entry != nil {
			tx.Append(*entry)
		}
		return err
	})
	if err == nil && !won {
		return errGone
	}
	return err
}
