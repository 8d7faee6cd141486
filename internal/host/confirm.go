package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// MayConfirm returns nil if the caller may confirm their own call in the program that made it.
// Nothing else lets a requester approve over a network: policy has to let them approve the call
// with a permit that has @self("allow"), they must have made the call themselves, their token must
// have the scope approve and cover the operation, and a sign-in of a browser must be recent.
func (a Approvals) MayConfirm(ctx context.Context, id string) error {
	row, err := a.g.Store.Approval(ctx, a.g.Tenant, id)
	if err == nil && row == nil {
		err = MissingApproval(id)
	}
	if err != nil {
		return err
	}
	return a.confirmable(ctx, row)
}

// Confirm answers a question about their own call, where [Approvals.MayConfirm] allows it. A
// refusal is recorded.
func (a Approvals) Confirm(ctx context.Context, id string, approve bool, reason string) (*ApprovalRow, error) {
	row, err := a.Get(ctx, id, "confirm")
	if err == nil && row == nil {
		err = MissingApproval(id)
	}
	if err != nil {
		return nil, err
	}
	if err := a.confirmable(ctx, row); plugin.CodeOf(err) == plugin.CodeInternal {
		return nil, err
	} else if err != nil {
		return nil, a.g.refuse(ctx, a.by, use{kind: plugin.EntryApprovalRefused, subject: row.SubjectID, action: "confirm"}, plugin.AsError(err), plugin.Decision{})
	}
	return a.engine.Decide(ctx, Decision{Tenant: a.g.Tenant, ID: row.ID, Approve: approve, By: a.by, Asker: a.asker(), Reason: reason, Own: true})
}

// confirmable returns nil if the caller may confirm what an approval is for. It records nothing.
func (a Approvals) confirmable(ctx context.Context, row *ApprovalRow) error {
	if row.SubjectKind != SubjectCall || row.Requester != a.by.Member() || a.by.Type == "agent" {
		return plugin.Errorf(plugin.CodeApprovalSelf, "%s did not ask for approval %s, so it is not theirs to confirm", a.by.Member(), row.ID)
	}
	if a.caller != nil {
		name, ref, err := a.lets(ctx, row)
		if err != nil {
			return err
		}
		if !a.caller.Has(ScopeApprove) || !a.caller.Covers(name) {
			return plugin.Errorf(plugin.CodeScopeDenied, "the token of %s is not for approving %s", a.by.Member(), ref)
		}
	}
	if why := a.g.stale(a.caller); why != nil {
		return why
	}
	return a.approvers.each(ctx, row, a.by, func(_ *plugin.Target, q *policy.Question) error {
		if !a.g.Policy.ConfirmsSelf(q) {
			return plugin.Errorf(plugin.CodeApprovalSelf, "no permit with @self lets %s confirm their own call", a.by.Member())
		}
		return nil
	})
}
