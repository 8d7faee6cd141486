package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// StatusOf returns the state of a call as callers see it.
func StatusOf(state CallState) plugin.Status { return ledger.Status(state) }

// Calls are the calls of the host's tenant, as one principal may see and stop them.
type Calls struct {
	kept
	approvers *Approvers
	host      *Host
	caller    *Caller
}

// MissingCall says that there is no such call, or none that the caller may know of.
func MissingCall(id string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no call %.64s; 'mortise calls list' shows those there are", id)
}

// Get returns the call of an id, nil where there is none. It is for who made it,
// who may approve it where it was asked about, and principals that policy lets configure mortise.calls.
func (c Calls) Get(ctx context.Context, id, action string) (*CallRow, error) {
	row, err := c.g.Store.Call(ctx, c.g.Tenant, id)
	if err != nil || row == nil || c.all(CallsPlugin) {
		return row, err
	}
	theirs, err := c.concerns(ctx, row)
	switch {
	case err != nil:
		return nil, err
	case theirs:
		return row, nil
	}
	return nil, c.hide(ctx, CallsPlugin, use{kind: plugin.EntryControlRefused, subject: row.ID, action: action}, MissingCall(id))
}

// concerns reports whether they made a call, or may approve it where it was asked about.
func (c Calls) concerns(ctx context.Context, row *CallRow) (bool, error) {
	made, err := c.made(ctx, row)
	if err != nil || made {
		return made, err
	}
	asked, err := c.g.Store.Approvals(ctx, ApprovalFilter{Tenant: c.g.Tenant, SubjectKind: SubjectCall, SubjectID: row.ID, Limit: 1})
	if err != nil || len(asked) == 0 {
		return false, err
	}
	return permitted(c.approvers.MayApprove(ctx, &ApprovalRow{Tenant: c.g.Tenant, SubjectKind: SubjectCall, SubjectID: row.ID}, c.by))
}

// sees reports whether [Calls.Get] returns a call, and records nothing.
func (c Calls) sees(ctx context.Context, id string) (bool, error) {
	if c.all(CallsPlugin) {
		return true, nil
	}
	row, err := c.g.Store.Call(ctx, c.g.Tenant, id)
	if err != nil || row == nil {
		return false, err
	}
	return c.concerns(ctx, row)
}

// Control returns the call of an id, nil where there is none, to who may stop it or
// say how it ended; see [Approvers.MayControl].
func (c Calls) Control(ctx context.Context, id, action string) (*CallRow, error) {
	row, err := c.g.Store.Call(ctx, c.g.Tenant, id)
	if err != nil || row == nil {
		return nil, err
	}
	if c.all(CallsPlugin) { // who sees all calls hears why they may not touch one
		if err := c.approvers.MayControl(ctx, c.g.Tenant, row.ID, c.by, action); err != nil {
			return nil, err
		}
		return row, nil
	}
	err = c.approvers.mayControl(ctx, c.g.Tenant, row.ID, c.by)
	if err == nil || plugin.CodeOf(err) == plugin.CodeInternal {
		return row, err
	}
	return nil, c.hide(ctx, CallsPlugin, use{kind: plugin.EntryControlRefused, subject: row.ID, action: action}, MissingCall(id))
}

// made reports whether the principal made a call. Rows of earlier releases name a principal by id
// only, so made also compares the type in the stored request, if there still is one.
func (c Calls) made(ctx context.Context, row *CallRow) (bool, error) {
	if row.Principal != c.by.Member() {
		return false, nil
	}
	asked, err := c.approvers.callAsked(ctx, row.Tenant, row.ID)
	if err != nil || asked == nil {
		return false, err
	}
	return asked.Principal.Type == "" || asked.Principal.Member() == c.by.Member(), nil
}

// List returns calls that they made, or all where policy lets them see all, the newest first. It
// looks at any number of calls.
func (c Calls) List(ctx context.Context, f CallFilter) ([]CallRow, error) {
	return collect(f.Before, f.Limit, 0, func(before string, limit int) ([]CallRow, string, error) {
		f.Before, f.Limit = before, limit
		return c.Page(ctx, f)
	})
}

// Page returns calls as List does. If rest is not empty the list goes on after that id: Page looks
// at a bounded number of calls.
func (c Calls) Page(ctx context.Context, f CallFilter) (rows []CallRow, rest string, err error) {
	f.Tenant = c.g.Tenant
	if c.all(CallsPlugin) {
		rows, err = c.g.Store.Calls(ctx, f)
		return rows, "", err
	}
	return c.Own(ctx, f)
}

// Own is Page of the calls that they made, whatever else they may see.
func (c Calls) Own(ctx context.Context, f CallFilter) (rows []CallRow, rest string, err error) {
	f.Tenant, f.Principal = c.g.Tenant, c.by.Member()
	rows, last, err := theirs(f.Limit, func(limit int, last *CallRow) ([]CallRow, error) {
		f.Limit = limit
		if last != nil {
			f.Before = last.ID
		}
		return c.g.Store.Calls(ctx, f)
	}, func(row *CallRow) (bool, error) { return c.made(ctx, row) })
	if last != nil {
		rest = last.ID
	}
	return rows, rest, err
}
