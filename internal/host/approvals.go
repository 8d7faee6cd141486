package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/plugin"
)

// Approvals are the approvals of the host's tenant, as one principal may see them.
type Approvals struct {
	kept
	asker     func() string
	approvers *Approvers
	engine    *approval.Service
	caller    *Caller
}

// MissingApproval says that there is no such approval, or none that the caller may
// know of.
func MissingApproval(id string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no approval %.64s; 'mortise approvals list' shows those there are", id)
}

// Get returns the approval of an id, nil where there is none: to who asked for
// it and who may decide it, and to principals that policy lets configure mortise.calls.
func (a Approvals) Get(ctx context.Context, id, action string) (*ApprovalRow, error) {
	row, err := a.g.Store.Approval(ctx, a.g.Tenant, id)
	if err != nil || row == nil || a.all(CallsPlugin) {
		return row, err
	}
	err = a.approvers.MaySee(ctx, row, a.by)
	if err == nil || plugin.CodeOf(err) == plugin.CodeInternal {
		return row, err
	}
	return nil, a.hide(ctx, CallsPlugin, use{kind: plugin.EntryApprovalRefused, subject: row.SubjectID, action: action}, MissingApproval(id))
}

// sees reports whether [Approvals.Get] returns an approval, and records nothing.
func (a Approvals) sees(ctx context.Context, id string) (bool, error) {
	if a.all(CallsPlugin) {
		return true, nil
	}
	row, err := a.g.Store.Approval(ctx, a.g.Tenant, id)
	if err != nil || row == nil {
		return false, err
	}
	return permitted(a.approvers.MaySee(ctx, row, a.by))
}

// Page returns approvals that they may see, the newest first. If rest is not empty the list goes
// on after that id: Page looks at a bounded number of approvals, even if they may see none of them.
func (a Approvals) Page(ctx context.Context, f ApprovalFilter) (rows []ApprovalRow, rest string, err error) {
	f.Tenant = a.g.Tenant
	if a.all(CallsPlugin) {
		rows, err = a.g.Store.Approvals(ctx, f)
		return rows, "", err
	}
	rows, last, err := theirs(f.Limit, func(limit int, last *ApprovalRow) ([]ApprovalRow, error) {
		f.Limit = limit
		if last != nil {
			f.Before = last.ID
		}
		return a.g.Store.Approvals(ctx, f)
	}, func(row *ApprovalRow) (bool, error) {
		err := a.approvers.MaySee(ctx, row, a.by)
		if plugin.CodeOf(err) == plugin.CodeInternal {
			return false, err
		}
		return err == nil, nil
	})
	if last != nil {
		rest = last.ID
	}
	return rows, rest, err
}

// Questions returns the newest approvals that they may see, with what each is bound to:
// those that are open, or all.
func (a Approvals) Questions(ctx context.Context, all bool, last int) ([]*Question, error) {
	f := ApprovalFilter{Tenant: a.g.Tenant, State: ApprovalOpen, Limit: page}
	if all {
		f.State = ""
	}
	questions := []*Question{}
	for seen := 0; seen < lookBack; seen += page {
		rows, err := a.g.Store.Approvals(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			if a.approvers.MaySee(ctx, &rows[i], a.by) != nil {
				continue
			}
			q, err := a.approvers.Question(ctx, &rows[i])
			if err != nil {
				return nil, err
			}
			if questions = append(questions, q); len(questions) == last {
				return questions, nil
			}
		}
		if len(rows) < page {
			break
		}
		f.Before = rows[len(rows)-1].ID
	}
	return questions, nil
}

// Show returns the approval that an id means, which may be cut short, with what it is
// bound to.
func (a Approvals) Show(ctx context.Context, given string) (*ApprovalRow, *Question, error) {
	row, err := a.Find(ctx, given, "see")
	if err != nil {
		return nil, nil, err
	}
	q, err := a.approvers.Question(ctx, row)
	return row, q, err
}

// Decide approves or denies an approval, which is named by its id, cut short or whole, or
// by the token that its approvers were sent. Who asked for it does not approve it, under
// whatever name; own makes an exception, for the sole owner at a terminal where the
// configuration has it. Errors: not_found, approval_self, policy_denied, approval_used,
// approval_expired, approval_void.
func (a Approvals) Decide(ctx context.Context, given string, approve, own bool, reason string) (*ApprovalRow, Decision, error) {
	d := Decision{Tenant: a.g.Tenant, Approve: approve, By: a.by, Asker: a.asker(), Reason: reason, Own: own}
	var asked *ApprovalRow
	var err error
	if IsApprovalToken(given) {
		d.Token = given
		asked, err = a.g.Store.ApprovalByToken(ctx, d.Tenant, approval.HashToken(given))
	} else if asked, err = a.Find(ctx, given, "decide"); err == nil {
		d.ID = asked.ID
	}
	if err == nil && approve && asked != nil {
		err = a.covered(ctx, asked)
	}
	if err == nil && asked != nil {
		err = a.g.recent(ctx, a.caller, use{kind: plugin.EntryApprovalRefused, subject: asked.SubjectID, action: "decide"})
	}
	if err != nil {
		return nil, d, err
	}
	row, err := a.engine.Decide(ctx, d)
	return row, d, err
}

// covered refuses callers whose token is not for what an approval lets run. A plan may run
// any operation, so that a token with a list is for none.
func (a Approvals) covered(ctx context.Context, row *ApprovalRow) error {
	if a.caller == nil {
		return nil
	}
	name, ref, err := a.lets(ctx, row)
	if err != nil {
		return err
	}
	return a.g.covered(ctx, a.caller, ScopeApprove, "approve", ref, name)
}

// lets returns the name of the operation that an approval lets run, "" for a plan, and what
// messages call it.
func (a Approvals) lets(ctx context.Context, row *ApprovalRow) (name, ref string, err error) {
	if row.SubjectKind == SubjectCall {
		call, err := a.g.Store.Call(ctx, row.Tenant, row.SubjectID)
		if err != nil || call != nil {
			return operationOf(call), operationOf(call), err
		}
	}
	return "", "plan " + row.SubjectID, nil
}

// operationOf returns the operation of a call, "" of none.
func operationOf(call *CallRow) string {
	if call == nil {
		return ""
	}
	return call.Operation
}

// tokenBytes is how many bytes approvers are sent as a token.
const tokenBytes = 32
