package plan

import (
	"context"

	"github.com/mortise-dev/mortise/internal/approval"
	"github.com/mortise-dev/mortise/internal/ledger"
	"github.com/mortise-dev/mortise/internal/store"
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
	why := plugin.Errorf(plugin.CodeCancelled, "%s cancelled the plan", by.ID)
	if reason != "" {
		why.Message += ": " + reason
	}
	at := e.now()
	err = e.Store.Write(ctx, func(tx store.Tx) error {
		row, err := tx.Plan(ctx, found.Tenant, found.ID)
		if err != nil || row == nil {
			return err
		}
		if Ended(row.State) && row.State != store.PlanUnknown {
			return plugin.Errorf(plugin.CodeInvalidInput, "plan %s has ended (%s); there is nothing to cancel", row.ID, row.State)
		}
		next := *row
		next.State, next.Code, next.Message, next.Lease, next.Node, next.UpdatedAt = store.PlanCancelled, string(why.Code), why.Message, "", "", at
		if won, err := tx.UpdatePlan(row.Fence(), next); err != nil || !won {
			return err
		}
		if err := withdraw(ctx, tx, row.Tenant, store.SubjectPlan, row.ID, why, e); err != nil {
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
			if call.State == store.CallPending {
				if err := withdraw(ctx, tx, call.Tenant, store.SubjectCall, call.ID, why, e); err != nil {
					return err
				}
				if err := ledger.Refuse(ctx, tx, call.Tenant, call.ID, why, at); err != nil {
					return err
				}
				continue
			}
			if _, err := tx.CancelCall(call.Tenant, call.ID); err != nil {
				return err
			}
		}
		entry, err := e.entry(&next, plugin.EntryPlanCancelled, by.ID, at, func(ev *evidence) { ev.Reason = reason })
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

// withdraw takes a question back that nobody has answered, or whose answer was
// not used.
func withdraw(ctx context.Context, tx store.Tx, tenant, kind, id string, why *plugin.Error, e *Engine) error {
	asked, err := newest(ctx, tx, tenant, kind, id)
	if err != nil || asked == nil || asked.State != store.ApprovalOpen && asked.State != store.ApprovalApproved {
		return err
	}
	return approval.Void(tx, *asked, why.Message, e.now())
}
