package host

import (
	"context"
	"errors"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// MayConfirm returns nil if the caller may confirm their own call in the program that made it.
// Nothing else lets a requester approve over a network: policy has to let them approve the call
// with a permit that has @self("allow"), they must have made the call themselves, and their
// token must have the scope approve and cover the operation.
func (a Approvals) MayConfirm(ctx context.Context, id string) error {
	_, err := a.confirmable(ctx, id)
	return err
}

// Confirm answers a question about their own call, where [Approvals.MayConfirm] allows it.
func (a Approvals) Confirm(ctx context.Context, id string, approve bool, reason string) (*ApprovalRow, error) {
	row, err := a.confirmable(ctx, id)
	if err != nil {
		return nil, err
	}
	return a.engine.Decide(ctx, Decision{Tenant: a.g.Tenant, ID: row.ID, Approve: approve, By: a.by, Asker: a.asker(), Reason: reason, Own: true})
}

func (a Approvals) confirmable(ctx context.Context, id string) (*ApprovalRow, error) {
	row, err := a.g.Store.Approval(ctx, a.g.Tenant, id)
	switch {
	case err != nil:
		return nil, err
	case row == nil:
		return nil, MissingApproval(id)
	case row.SubjectKind != SubjectCall || row.Requester != a.by.Member() || a.by.Type == "agent":
		return nil, plugin.Errorf(plugin.CodeApprovalSelf, "%s did not ask for approval %s, so it is not theirs to confirm", a.by.ID, row.ID)
	case a.caller != nil && !a.caller.Has(ScopeApprove):
		return nil, plugin.Errorf(plugin.CodeScopeDenied, "the token of %s has not the scope approve", a.by.ID)
	}
	if err := a.covered(ctx, row); err != nil {
		return nil, err
	}
	denied := plugin.Errorf(plugin.CodeApprovalSelf, "no permit with @self lets %s confirm their own call", a.by.ID)
	err = a.approvers.each(ctx, row, a.by, func(_ *plugin.Target, q *policy.Question) error {
		if !a.g.Policy.ConfirmsSelf(q) {
			return denied
		}
		return nil
	})
	if err != nil && !errors.Is(err, denied) && plugin.CodeOf(err) == plugin.CodeInternal {
		return nil, err
	}
	return row, err
}
