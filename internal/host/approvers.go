package host

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// Approvers knows who may decide about an approval, see it, or stop what it is for:
// policy says so, of the call or plan as it was asked for.
type Approvers struct {
	*Guard
	Registry *registry.Registry
	Ledger   *ledger.Ledger

	// Shown returns the input of a call as a person is shown it.
	Shown func(ctx context.Context, t *plugin.Target, call *plugin.Call) (json.RawMessage, error)
}

// MayApprove asks policy whether a principal may decide about what an approval
// is for: the one operation of a call, or all operations of a plan that wait.
// It returns nil if so.
func (a *Approvers) MayApprove(ctx context.Context, row *ApprovalRow, by plugin.Principal) error {
	return a.each(ctx, row, by, func(t *plugin.Target, q *policy.Question) error {
		if d := a.Policy.Ask(q); d.Verdict != plugin.Allow {
			return plugin.Errorf(plugin.CodePolicyDenied, "%s may not approve %s: %s", by.Member(), t.Name(), d.Reasons[0])
		}
		return nil
	})
}

// each asks a question of policy about each operation that an approval lets run.
func (a *Approvers) each(ctx context.Context, row *ApprovalRow, by plugin.Principal, ask func(t *plugin.Target, q *policy.Question) error) error {
	asked, err := a.askedFor(ctx, row)
	if err != nil {
		return err
	}
	if len(asked) == 0 {
		return plugin.Errorf(plugin.CodeNotFound, "what approval %s was asked for is no longer there", row.ID)
	}
	for _, call := range asked {
		t, err := a.Registry.Resolve(ctx, call.Operation)
		if err != nil {
			return err
		}
		if call.Input, err = a.Shown(ctx, t, &call); err != nil {
			return err
		}
		call.Principal, call.Origin = by, plugin.OriginCLI
		if err := ask(t, &policy.Question{Action: policy.Approve, Target: t, Call: &call}); err != nil {
			return err
		}
	}
	return nil
}

// MaySee returns nil if a principal may see all that an approval is for: its
// requester, and each principal that may decide it.
func (a *Approvers) MaySee(ctx context.Context, row *ApprovalRow, who plugin.Principal) error {
	if who.Member() == row.Requester {
		return nil
	}
	return a.MayApprove(ctx, row, who)
}

// MayControl returns nil if a principal may stop a call or record its outcome;
// what names the action. The caller that made it may, and each principal that
// may approve its operation. A refusal is recorded.
func (a *Approvers) MayControl(ctx context.Context, tenant, id string, by plugin.Principal, what string) error {
	err := a.mayControl(ctx, tenant, id, by)
	return a.unlessMay(ctx, by, use{kind: plugin.EntryControlRefused, subject: id, action: what}, err)
}

// mayControl is MayControl without the record.
func (a *Approvers) mayControl(ctx context.Context, tenant, id string, by plugin.Principal) error {
	asked, err := a.callAsked(ctx, tenant, id)
	if err != nil {
		return err
	}
	if asked == nil {
		return MissingCall(id)
	}
	if made := asked.Principal; made.ID == by.ID && (made.Type == by.Type || made.Type == "") {
		return nil
	}
	return a.MayApprove(ctx, &ApprovalRow{Tenant: tenant, SubjectKind: SubjectCall, SubjectID: id}, by)
}

// unlessMay records an answer of [Approvers.MayApprove] that is no, and returns it.
func (a *Approvers) unlessMay(ctx context.Context, by plugin.Principal, u use, err error) error {
	if err == nil || plugin.CodeOf(err) == plugin.CodeInternal {
		return err
	}
	return a.refuse(ctx, by, u, plugin.AsError(err), plugin.Decision{})
}

// askedFor returns what an approval is for, as calls with their operations and
// inputs.
func (a *Approvers) askedFor(ctx context.Context, row *ApprovalRow) ([]plugin.Call, error) {
	if row.SubjectKind == SubjectCall {
		_, call, err := a.callShown(ctx, row.Tenant, row.SubjectID)
		if err != nil || call == nil {
			return nil, err
		}
		return []plugin.Call{*call}, nil
	}
	steps, err := a.stepsShown(ctx, row)
	if err != nil {
		return nil, err
	}
	var asked []plugin.Call
	for _, step := range steps {
		if step.Gate == plan.GateNone {
			continue
		}
		input, err := plan.Literals([]byte(step.Input)) // as far as it is known
		if err != nil {
			return nil, err
		}
		asked = append(asked, plugin.Call{Tenant: row.Tenant, Principal: principal.Parse(row.Requester), Operation: step.Operation + "@=" + step.Version, Input: json.RawMessage(input)})
	}
	return asked, nil
}

// callAsked returns a call as it was made, as far as it is kept; nil if there
// is none.
func (a *Approvers) callAsked(ctx context.Context, tenant, id string) (*plugin.Call, error) {
	w, err := a.Ledger.Waiting(ctx, tenant, id)
	if err != nil || w == nil {
		return nil, err
	}
	return callOf(w)
}

// callShown is callAsked for what a person is shown, or decides on: the row is what the
// ledger says of it, and what the call was made with is there for as long as it may run.
func (a *Approvers) callShown(ctx context.Context, tenant, id string) (*CallRow, *plugin.Call, error) {
	w, err := a.Ledger.ToRun(ctx, tenant, id)
	if err != nil || w == nil {
		return nil, nil, err
	}
	if w.Row.State.Live() && w.Row.RequestHash != "" && w.Request == nil {
		return nil, nil, &bodyError{Hash: w.Row.RequestHash, Gone: true}
	}
	call, err := callOf(w)
	return &w.Row, call, err
}

// inputShown returns the input of a call as a person is shown it; nil where it is kept no more.
func (a *Approvers) inputShown(ctx context.Context, row *CallRow) (json.RawMessage, error) {
	asked, err := a.callAsked(ctx, row.Tenant, row.ID)
	if err != nil || asked == nil || asked.Input == nil {
		return nil, err
	}
	t, err := a.Registry.Resolve(ctx, asked.Operation)
	switch {
	case plugin.CodeOf(err) == plugin.CodeInternal:
		return nil, err
	case err != nil: // it is gone or switched off: what was given is shown as it was given
		return asked.Input, nil
	}
	return a.Shown(ctx, t, asked)
}

// stepsShown returns the steps of a plan likewise.
func (a *Approvers) stepsShown(ctx context.Context, row *ApprovalRow) ([]stepRow, error) {
	p, err := a.Store.PlanToRun(ctx, row.Tenant, row.SubjectID)
	if err != nil || p == nil {
		return nil, err
	}
	if row.State == ApprovalOpen && row.Binding != p.Hash {
		return nil, &authorityError{Table: "plans"}
	}
	if p.State.Live() {
		if _, err := neededBody(ctx, a.Store, p.Tenant, p.RequestHash); err != nil {
			return nil, err
		}
	}
	return plan.Steps(ctx, a.Store, p)
}

func callOf(w *ledger.Waiting) (*plugin.Call, error) {
	request := struct {
		Principal plugin.Principal `json:"principal"`
		Input     json.RawMessage  `json:"input"`
		Labels    []string         `json:"labels"`
	}{Principal: plugin.Principal{ID: w.Row.Principal}, Labels: w.Row.Labels}
	if len(w.Request) > 0 {
		if err := json.Unmarshal(w.Request, &request); err != nil {
			return nil, err
		}
	}
	return &plugin.Call{
		ID: w.Row.ID, Tenant: w.Row.Tenant, Principal: request.Principal, Operation: w.Row.Operation + "@=" + w.Row.Version, Input: request.Input, Labels: request.Labels,
	}, nil
}
