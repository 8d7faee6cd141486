package rest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Plan is a plan, without its steps.
type Plan struct {
	ID           string              `json:"id"`
	State        string              `json:"state" enum:"pending_approval,queued,running,succeeded,failed,unknown,cancelled"`
	Agent        string              `json:"agent"`
	ProposalCall string              `json:"proposal_call"`
	Principal    string              `json:"principal"`
	Hash         string              `json:"hash,omitzero"`
	Labels       []string            `json:"labels,omitzero"`
	Approval     string              `json:"approval,omitzero" doc:"The id of the one approval of the whole."`
	Error        *plugin.ErrorRecord `json:"error,omitzero"`
	Rationale    string              `json:"rationale,omitzero" doc:"The agent's."`
	CreatedAt    time.Time           `json:"created_at"`
	UpdatedAt    time.Time           `json:"updated_at"`
}

// Plans are a page of them.
type Plans struct {
	Plans []Plan `json:"plans" nullable:"false"`
	Next  string `json:"next_page_token" doc:"Empty on the last page."`
}

// A PlanShown is a plan with its steps.
type PlanShown struct {
	Plan
	Steps []PlanStep `json:"steps" nullable:"false"`
}

// A PlanStep is a step of a plan.
type PlanStep struct {
	ID        string          `json:"step_id"`
	Operation string          `json:"operation"`
	Version   string          `json:"version"`
	Gate      string          `json:"gate"`
	Why       string          `json:"why,omitzero"`
	Needs     []string        `json:"needs" nullable:"false"`
	Input     json.RawMessage `json:"input"`
	State     string          `json:"state"`
	CallID    string          `json:"call_id,omitzero"`
	Approval  string          `json:"approval,omitzero" doc:"That its call waits for."`
	Code      plugin.Code     `json:"code,omitzero" doc:"Of its error."`
}

func planOf(v *host.Plan) Plan {
	p := Plan{
		ID: v.ID, State: string(v.State), Agent: v.Agent, ProposalCall: v.ProposalCall, Principal: v.Principal, Hash: v.Hash, Labels: v.Labels,
		Error: v.Error, Rationale: v.Rationale, CreatedAt: v.CreatedAt, UpdatedAt: v.UpdatedAt,
	}
	if v.Approval != nil {
		p.Approval = v.Approval.ID
	}
	return p
}

func (r *registry) plans() {
	add(r, route{method: "GET", path: "plans", id: "list-plans", scope: host.ScopeRead, about: "The plans that were asked for in the caller's name, or that they may see, the newest first"}, r.listPlans)
	add(r, route{method: "GET", path: "plans/{id}", id: "get-plan", scope: host.ScopeRead, about: "A plan with its steps"}, r.getPlan)
}

func (r *registry) listPlans(ctx context.Context, q *request, in *struct{ Page }) (*struct{ Body Plans }, error) {
	last, err := in.after("plans")
	if err != nil {
		return nil, err
	}
	views, err := q.api.Plans().List(ctx, host.PlanFilter{Before: last, Limit: in.size() + 1})
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Plans }{Plans{Plans: []Plan{}}}
	views, out.Body.Next = cut(views, in.size(), func(v *host.Plan) string { return v.ID }, "plans")
	for i := range views {
		out.Body.Plans = append(out.Body.Plans, planOf(&views[i]))
	}
	return out, nil
}

func (r *registry) getPlan(ctx context.Context, q *request, in *struct {
	ID string `path:"id" maxLength:"64"`
}) (*struct{ Body PlanShown }, error) {
	v, err := q.api.Plans().Get(ctx, in.ID, "see")
	if err == nil && v.ID != in.ID || plugin.CodeOf(err) == plugin.CodeInvalidInput { // an id is written whole here
		err = missing("plan", in.ID)
	}
	if err != nil {
		return nil, unlessMissing(err, "plan", in.ID)
	}
	out := &struct{ Body PlanShown }{PlanShown{Plan: planOf(v), Steps: []PlanStep{}}}
	for _, s := range v.Steps {
		out.Body.Steps = append(out.Body.Steps, PlanStep{s.ID, s.Operation, s.Version, s.Gate, s.Why, append([]string{}, s.Needs...), s.Input, string(s.State), s.CallID, s.Approval, s.Code})
	}
	return out, nil
}
