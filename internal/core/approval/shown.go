package approval

import (
	"context"

	"github.com/mortise-dev/mortise/plugin"
)

// subject returns the digest of the call or plan that an approval is for, held against
// the ledger; "" where there is none.
func (s *Service) subject(ctx context.Context, row *Row) (string, error) {
	if row.SubjectKind == SubjectPlan {
		plan, err := s.Store.PlanToRun(ctx, row.Tenant, row.SubjectID)
		if err != nil || plan == nil {
			return "", err
		}
		return plan.Digest(), nil
	}
	call, err := s.Store.CallToRun(ctx, row.Tenant, row.SubjectID)
	if err != nil || call == nil {
		return "", err
	}
	return call.Digest(), nil
}

// shown refuses an approval of something else than a person can have been shown. Within
// the transaction that takes the answer the preview, the arguments and the steps of a
// plan have to be there, each as its hash or its MAC says, and the call or plan has to be
// the one that was held against the ledger just before.
func shown(ctx context.Context, r reader, row *Row, seen string) error {
	if _, err := preview(ctx, r, row); err != nil {
		return err
	}
	if row.SubjectKind == SubjectPlan {
		return shownPlan(ctx, r, row, seen)
	}
	call, err := r.Call(ctx, row.Tenant, row.SubjectID)
	if err != nil || call == nil {
		return err
	}
	if call.Digest() != seen {
		return moved(row)
	}
	_, err = neededBody(ctx, r, row.Tenant, call.RequestHash)
	return err
}

func shownPlan(ctx context.Context, r reader, row *Row, seen string) error {
	plan, err := r.Plan(ctx, row.Tenant, row.SubjectID)
	if err != nil || plan == nil {
		return err
	}
	if plan.Digest() != seen {
		return moved(row)
	}
	if plan.Hash != row.Binding {
		return &authorityError{Table: "plans"}
	}
	steps, err := r.Steps(ctx, row.Tenant, plan.ID)
	if err == nil && len(steps) == 0 {
		err = &authorityError{Table: "steps"}
	}
	if err != nil {
		return err
	}
	_, err = neededBody(ctx, r, row.Tenant, plan.RequestHash)
	return err
}

func moved(row *Row) error {
	return &plugin.Error{Code: plugin.CodeUnavailable, Retryable: true, Message: row.SubjectKind + " " + row.SubjectID + " changed while approval " + row.ID + " was answered; look at it and answer again"}
}
