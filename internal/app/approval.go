package app

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// mayApprove asks policy whether somebody may decide about what an approval is
// for: the one operation of a call, or all operations of a plan that wait.
func (a *App) mayApprove(ctx context.Context, row *store.ApprovalRow, by plugin.Principal) error {
	asked, err := a.askedFor(ctx, row)
	if err != nil {
		return err
	}
	for _, call := range asked {
		t, err := a.Registry.Resolve(ctx, call.Operation)
		if err != nil {
			return err
		}
		call.Principal, call.Origin = by, plugin.OriginCLI
		if d := a.Policy.Ask(&policy.Question{Action: policy.Approve, Target: t, Call: &call}); d.Verdict != plugin.Allow {
			return plugin.Errorf(plugin.CodePolicyDenied, "%s may not approve %s: %s", by.ID, t.Name(), d.Reasons[0])
		}
	}
	return nil
}

// askedFor returns what an approval is for, as calls with their operations and
// inputs.
func (a *App) askedFor(ctx context.Context, row *store.ApprovalRow) ([]plugin.Call, error) {
	if row.SubjectKind == store.SubjectCall {
		w, err := a.Ledger.Waiting(ctx, row.Tenant, row.SubjectID)
		if err != nil || w == nil {
			return nil, err
		}
		var request struct {
			Input  json.RawMessage `json:"input"`
			Labels []string        `json:"labels"`
		}
		if err := json.Unmarshal(w.Request, &request); err != nil {
			return nil, err
		}
		return []plugin.Call{{Tenant: row.Tenant, Operation: w.Row.Operation + "@=" + w.Row.Version, Input: request.Input, Labels: request.Labels}}, nil
	}
	steps, err := a.Store.Steps(ctx, row.Tenant, row.SubjectID)
	if err != nil {
		return nil, err
	}
	var asked []plugin.Call
	for _, step := range steps {
		if step.Gate != "none" {
			asked = append(asked, plugin.Call{Tenant: row.Tenant, Operation: step.Operation + "@=" + step.Version, Input: json.RawMessage(step.Input)})
		}
	}
	return asked, nil
}
