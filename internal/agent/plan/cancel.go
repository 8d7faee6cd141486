package plan

import (
	"context"
	"errors"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// Cancel ends a plan: the step that is running is told to stop, and those after
// it never run. What has happened has happened.
func (e *Engine) Cancel(ctx context.Context, tenant, id string, by plugin.Principal, reason string) (*View, error) {
	if len(reason) > approval.MaxReason {
		return nil, plugin.Errorf(plugin.CodeInputTooLarge, "the reason has %d bytes; at most %d are kept", len(reason), approval.MaxReason)
	}
	found, err := e.find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	why := plugin.Errorf(plugin.CodeCancelled, "%s cancelled the plan", by.Member())
	if reason != "" {
		why.Message += ": " + reason
	}
	at := e.now()
	err = e.moving(ctx, func(tx ledger.Tx) error {
		row, err := tx.Plan(ctx, found.Tenant, found.ID)
		if err != nil || row == nil {
			return err
		}
		if Ended(row.State) && row.State != Unknown {
			return plugin.Errorf(plugin.CodeInvalidInput, "plan %s has ended (%s); there is nothing to cancel", row.ID, row.State)
		}
		next := *row
		next.State, next.Code, next.Message, next.Lease, next.Node, next.UpdatedAt = Cancelled, string(why.Code), why.Message, "", "", at
		won, err := tx.UpdatePlan(row.Fence(), next)
		if err != nil {
			return err
		}
		if !won { // another node took it up, or gave it back, since we looked
			return errMoved
		}
		if err := approval.Withdraw(ctx, tx, row.Tenant, approval.SubjectPlan, row.ID, why.Message, e.now()); err != nil {
			return err
		}
		calls, err := callsOf(ctx, tx, row)
		if err != nil {
			return err
		}
		for _, call := range calls {
			if call.State.Ended() {
				continue
			}
			over, err := ledger.Abandon(ctx, tx, call.Tenant, call.ID, why, at)
			if err != nil {
				return err
			}
			if over { // it waited, for a person or to be run
				err = approval.Withdraw(ctx, tx, call.Tenant, approval.SubjectCall, call.ID, why.Message, e.now())
			} else {
				_, err = tx.CancelCall(call.Tenant, call.ID)
			}
			if err != nil {
				return err
			}
		}
		entry, err := e.entry(&next, plugin.EntryPlanCancelled, by.Member(), at, func(ev *evidence) { ev.Reason = reason })
		if err != nil {
			return err
		}
		tx.Append(entry)
		return nil
	})
	if err != nil {
		return nil, err
	}
	e.stop(found, why)
	return e.view(ctx, found)
}

// errMoved is why a write did not count: the plan was moved between the look at
// it and the write, which only another node can do.
var errMoved = errors.New("another node changed the plan at the same moment")

// moving is Write, again while others move the plan meanwhile. How often that
// can be is bounded by what there is to do in a plan.
func (e *Engine) moving(ctx context.Context, fn func(ledger.Tx) error) error {
	for {
		if err := e.Store.Write(ctx, fn); !errors.Is(err, errMoved) {
			return err
		}
	}
}
