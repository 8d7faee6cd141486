package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// MissingCall says that there is no such call, or none that the caller may know of.
func MissingCall(id string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no call %.64s; 'mortise calls list' shows those there are", id)
}

// Call returns the call of an id, nil where there is none. It is for who made it,
// who may approve it where it was asked about, and whom policy lets configure mortise.calls.
func (k Kept) Call(ctx context.Context, id, action string) (*store.CallRow, error) {
	row, err := k.store.Call(ctx, k.tenant, id)
	if err != nil || row == nil || k.all(CallsPlugin) {
		return row, err
	}
	made, err := k.made(ctx, row)
	if err != nil || made {
		return row, err
	}
	asked, err := k.store.Approvals(ctx, store.ApprovalFilter{Tenant: k.tenant, SubjectKind: store.SubjectCall, SubjectID: row.ID, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(asked) > 0 && k.app.MayApprove(ctx, &store.ApprovalRow{Tenant: k.tenant, SubjectKind: store.SubjectCall, SubjectID: row.ID}, k.by) == nil {
		return row, nil
	}
	return nil, k.hide(ctx, CallsPlugin, use{kind: plugin.EntryControlRefused, subject: row.ID, action: action}, MissingCall(id))
}

// Control returns the call of an id, nil where there is none, to who may stop it or
// say how it ended; see [App.MayControl].
func (k Kept) Control(ctx context.Context, id, action string) (*store.CallRow, error) {
	row, err := k.store.Call(ctx, k.tenant, id)
	if err != nil || row == nil {
		return nil, err
	}
	if k.all(CallsPlugin) { // who sees all calls hears why they may not touch one
		if err := k.app.MayControl(ctx, k.tenant, row.ID, k.by, action); err != nil {
			return nil, err
		}
		return row, nil
	}
	err = k.app.mayControl(ctx, k.tenant, row.ID, k.by)
	if err == nil || plugin.CodeOf(err) == plugin.CodeInternal {
		return row, err
	}
	return nil, k.hide(ctx, CallsPlugin, use{kind: plugin.EntryControlRefused, subject: row.ID, action: action}, MissingCall(id))
}

// MissingApproval says that there is no such approval, or none that the caller may
// know of.
func MissingApproval(id string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no approval %.64s; 'mortise approvals list' shows those there are", id)
}

// Approval returns the approval of an id, nil where there is none: to who asked for
// it and who may decide it, and to principals that policy lets configure mortise.calls.
func (k Kept) Approval(ctx context.Context, id, action string) (*store.ApprovalRow, error) {
	row, err := k.store.Approval(ctx, k.tenant, id)
	if err != nil || row == nil || k.all(CallsPlugin) {
		return row, err
	}
	err = k.app.MaySee(ctx, row, k.by)
	if err == nil || plugin.CodeOf(err) == plugin.CodeInternal {
		return row, err
	}
	return nil, k.hide(ctx, CallsPlugin, use{kind: plugin.EntryApprovalRefused, subject: row.SubjectID, action: action}, MissingApproval(id))
}

// Approvals returns approvals that they may see, the newest first.
func (k Kept) Approvals(ctx context.Context, f store.ApprovalFilter) ([]store.ApprovalRow, error) {
	f.Tenant = k.tenant
	if k.all(CallsPlugin) {
		return k.store.Approvals(ctx, f)
	}
	return theirs(f.Limit, func(limit int, last *store.ApprovalRow) ([]store.ApprovalRow, error) {
		f.Limit = limit
		if last != nil {
			f.Before = last.ID
		}
		return k.store.Approvals(ctx, f)
	}, func(row *store.ApprovalRow) (bool, error) {
		err := k.app.MaySee(ctx, row, k.by)
		if plugin.CodeOf(err) == plugin.CodeInternal {
			return false, err
		}
		return err == nil, nil
	})
}

// made reports whether they made a call. The row has the id alone: what was asked
// says of which type the principal was, for as long as that is kept.
func (k Kept) made(ctx context.Context, row *store.CallRow) (bool, error) {
	if row.Principal != k.by.ID {
		return false, nil
	}
	asked, err := k.app.callAsked(ctx, row.Tenant, row.ID)
	if err != nil || asked == nil {
		return false, err
	}
	return asked.Principal.Type == "" || asked.Principal.Member() == k.by.Member(), nil
}

// Calls returns calls that they made, or all where policy lets them see all, the
// newest first.
func (k Kept) Calls(ctx context.Context, f store.CallFilter) ([]store.CallRow, error) {
	f.Tenant = k.tenant
	if k.all(CallsPlugin) {
		return k.store.Calls(ctx, f)
	}
	return theirs(f.Limit, func(limit int, last *store.CallRow) ([]store.CallRow, error) {
		f.Limit = limit
		if last != nil {
			f.Before = last.ID
		}
		return k.store.Calls(ctx, f)
	}, func(row *store.CallRow) (bool, error) { return k.made(ctx, row) })
}

// Plan returns a plan with its steps; its id may be cut short. It is for who asked
// for it, who may approve all of it, and whom policy lets configure mortise.calls.
func (k Kept) Plan(ctx context.Context, id, action string) (*plan.View, error) {
	v, err := k.plans().Show(ctx, k.tenant, id)
	if err == nil && v == nil {
		err = plan.Missing(id)
	}
	if k.all(CallsPlugin) {
		return v, err
	}
	if plugin.CodeOf(err) == plugin.CodeInvalidInput { // it names plans that may be of others
		return nil, plan.Missing(id)
	}
	if err != nil {
		return nil, err
	}
	if asked, err := k.asked(ctx, v); err != nil || asked {
		return v, err
	}
	if k.app.MayApprove(ctx, &store.ApprovalRow{Tenant: k.tenant, SubjectKind: store.SubjectPlan, SubjectID: v.ID, Requester: v.Principal}, k.by) == nil {
		return v, nil
	}
	return nil, k.hide(ctx, CallsPlugin, use{kind: plugin.EntryControlRefused, subject: v.ID, action: action}, plan.Missing(id))
}

// Plans returns plans that were asked for in their name, or all where policy lets
// them see all, the newest first and without their steps.
func (k Kept) Plans(ctx context.Context, f store.PlanFilter) ([]plan.View, error) {
	f.Tenant = k.tenant
	if k.all(CallsPlugin) {
		return k.plans().List(ctx, f)
	}
	return theirs(f.Limit, func(limit int, last *plan.View) ([]plan.View, error) {
		f.Limit = limit
		if last != nil {
			f.Before = last.ID
		}
		return k.plans().List(ctx, f)
	}, func(v *plan.View) (bool, error) { return k.asked(ctx, v) })
}

// asked reports whether they asked for a plan: who made the call that proposed it.
func (k Kept) asked(ctx context.Context, v *plan.View) (bool, error) {
	if v.Principal != k.by.ID {
		return false, nil
	}
	row, err := k.store.Call(ctx, k.tenant, v.ProposalCall)
	if err != nil || row == nil {
		return err == nil && k.own(v.Principal), err // the row has the id alone, which is a user's as it is written
	}
	return k.made(ctx, row)
}

func (k Kept) plans() *plan.Engine {
	if k.app == nil {
		return plan.New(plan.Options{Store: k.store})
	}
	return k.app.Plans
}

// CancelPlan ends a plan.
func (k Kept) CancelPlan(ctx context.Context, id, reason string) (*plan.View, error) {
	v, err := k.Plan(ctx, id, "cancel")
	if err != nil {
		return nil, err
	}
	return k.app.Plans.Cancel(ctx, k.tenant, v.ID, k.by, reason)
}

// ResumePlan takes up a plan again.
func (k Kept) ResumePlan(ctx context.Context, id string) (*plan.View, error) {
	v, err := k.Plan(ctx, id, "resume")
	if err != nil {
		return nil, err
	}
	return k.app.Plans.Resume(ctx, k.tenant, v.ID)
}

// MayReadLedger refuses who may not read the record of everybody's calls.
func (k Kept) MayReadLedger(ctx context.Context) error {
	return k.allow(ctx, LedgerPlugin, use{plugin.EntryLedgerRefused, "ledger", "read", "read the ledger"})
}

// MayBackup refuses who may not copy everything that the host keeps.
func (k Kept) MayBackup(ctx context.Context) error {
	return k.allow(ctx, BackupPlugin, use{plugin.EntryBackupRefused, "backup", "back up", "back up the host"})
}

// theirs returns the first of those rows of all pages that is picks, or all of them
// where most is 0. page returns the rows after the last of the page before it.
func theirs[T any](most int, page func(limit int, last *T) ([]T, error), is func(*T) (bool, error)) ([]T, error) {
	const limit = 200
	picked, last := []T{}, (*T)(nil)
	for {
		rows, err := page(limit, last)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			picks, err := is(&rows[i])
			if err != nil {
				return nil, err
			}
			if picks {
				picked = append(picked, rows[i])
			}
			if most > 0 && len(picked) == most {
				return picked, nil
			}
		}
		if len(rows) < limit {
			return picked, nil
		}
		last = &rows[len(rows)-1]
	}
}
