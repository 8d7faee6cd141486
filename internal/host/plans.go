package host

import (
	"context"
	"encoding/json"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/plugin"
)

// A Plan is a plan as it stands.
type (
	Plan         = plan.View
	PlanStep     = plan.StepView
	PlanApproval = plan.ApprovalView
)

// StepUnknown is the state of a step whose call is unknown.
const StepUnknown = plan.StepUnknown

// PlanEnded reports whether a plan in this state is over.
func PlanEnded(state PlanState) bool { return plan.Ended(state) }

// Plans are the plans of the host's tenant, as one principal may make, see and end them.
type Plans struct {
	kept
	calls     Calls
	approvers *Approvers
	engine    *plan.Engine
	asker     func() string
	caller    *Caller
}

// A NewPlan is what an agent is asked to propose.
type NewPlan struct {
	Agent   string          // an operation of kind agent: plugin/operation@versions
	Input   json.RawMessage // {"intent": {...}, "context": {...}, "constraints": {...}}
	Key     string          // a second submission with it gets the plan of the first
	Labels  []string        // what the input is tainted with
	Origin  plugin.Origin
	Observe func(plugin.Event) // hears the events of the call of the agent; nil for none
}

// Submit asks an agent in the name of the principal, and makes a plan of its proposal. An
// answer that is no plan is in the plan that is returned, which has no id then. A plan may
// run any operation, so that a token with a list of operations submits none:
// policy_denied. Other errors are those of the call of the agent, and key_conflict.
func (p Plans) Submit(ctx context.Context, n NewPlan) (*plan.View, error) {
	if err := p.g.covered(ctx, p.caller, ScopeRun, "submit", "plans", ""); err != nil {
		return nil, err
	}
	return p.engine.Submit(ctx, plan.Submission{
		Tenant: p.g.Tenant, Principal: p.by, Asker: p.asker(), Agent: n.Agent, Input: n.Input, Key: n.Key,
		Labels: n.Labels, Origin: n.Origin, Observe: n.Observe,
	})
}

// Get returns a plan with its steps; its id may be cut short. It is for who asked
// for it, who may approve all of it, and principals that policy lets configure mortise.calls.
func (p Plans) Get(ctx context.Context, id, action string) (*plan.View, error) {
	v, err := p.engine.Show(ctx, p.g.Tenant, id)
	if err == nil && v == nil {
		err = plan.Missing(id)
	}
	if p.all(CallsPlugin) {
		return v, err
	}
	if plugin.CodeOf(err) == plugin.CodeInvalidInput { // it names plans that may be of others
		return nil, plan.Missing(id)
	}
	if err != nil {
		return nil, err
	}
	theirs, err := p.concerns(ctx, v)
	switch {
	case err != nil:
		return nil, err
	case theirs:
		return v, nil
	}
	return nil, p.hide(ctx, CallsPlugin, use{kind: plugin.EntryControlRefused, subject: v.ID, action: action}, plan.Missing(id))
}

// concerns reports whether they asked for a plan, or may approve all of it.
func (p Plans) concerns(ctx context.Context, v *plan.View) (bool, error) {
	if asked, err := p.asked(ctx, v); err != nil || asked {
		return asked, err
	}
	return permitted(p.approvers.MayApprove(ctx, &ApprovalRow{Tenant: p.g.Tenant, SubjectKind: SubjectPlan, SubjectID: v.ID, Requester: v.Principal}, p.by))
}

// sees reports whether [Plans.Get] returns a plan, and records nothing.
func (p Plans) sees(ctx context.Context, id string) (bool, error) {
	if p.all(CallsPlugin) {
		return true, nil
	}
	row, err := p.g.Store.Plan(ctx, p.g.Tenant, id)
	if err != nil || row == nil {
		return false, err
	}
	return p.concerns(ctx, &plan.View{ID: row.ID, Principal: row.Principal, ProposalCall: row.ProposalCall})
}

// List returns plans that were asked for in their name, or all where policy lets
// them see all, the newest first and without their steps.
func (p Plans) List(ctx context.Context, f PlanFilter) ([]plan.View, error) {
	f.Tenant = p.g.Tenant
	if p.all(CallsPlugin) {
		return p.engine.List(ctx, f)
	}
	return theirs(f.Limit, func(limit int, last *plan.View) ([]plan.View, error) {
		f.Limit = limit
		if last != nil {
			f.Before = last.ID
		}
		return p.engine.List(ctx, f)
	}, func(v *plan.View) (bool, error) { return p.asked(ctx, v) })
}

// asked reports whether they asked for a plan: who made the call that proposed it.
func (p Plans) asked(ctx context.Context, v *plan.View) (bool, error) {
	if v.Principal != p.by.Member() {
		return false, nil
	}
	row, err := p.g.Store.Call(ctx, p.g.Tenant, v.ProposalCall)
	if err != nil || row == nil {
		return err == nil && p.own(v.Principal), err // rows once had the id alone, which is a user's as it is written
	}
	return p.calls.made(ctx, row)
}

// Cancel ends a plan.
func (p Plans) Cancel(ctx context.Context, id, reason string) (*plan.View, error) {
	v, err := p.Get(ctx, id, "cancel")
	if err != nil {
		return nil, err
	}
	return p.engine.Cancel(ctx, p.g.Tenant, v.ID, p.by, reason)
}

// Resume takes up a plan again. A token with a list of operations resumes none, as it
// submits none.
func (p Plans) Resume(ctx context.Context, id string) (*plan.View, error) {
	v, err := p.Get(ctx, id, "resume")
	if err == nil {
		err = p.g.covered(ctx, p.caller, ScopeRun, "resume", "plan "+v.ID, "")
	}
	if err != nil {
		return nil, err
	}
	return p.engine.Resume(ctx, p.g.Tenant, v.ID)
}

// Wait runs a plan that can go on, or waits while others do and while people think, until
// it has ended or ctx has. show hears of each step that has ended, in order.
func (p Plans) Wait(ctx context.Context, id string, show func(PlanStep)) (*plan.View, error) {
	v, err := p.Get(ctx, id, "wait for")
	if err != nil {
		return nil, err
	}
	if err := p.g.covered(ctx, p.caller, ScopeRun, "wait for", "plans", ""); err != nil {
		return nil, err
	}
	n, err := p.calls.host.news(context.WithoutCancel(ctx), "")
	if err != nil {
		return nil, err
	}
	defer n.close()
	return p.engine.Wait(ctx, p.g.Tenant, v.ID, show, func(ctx context.Context) { n.wait(ctx, lookAgain) })
}
