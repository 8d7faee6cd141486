package rest

import (
	"context"
	"encoding/json"
	"net/http"
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
	Steps []PlanStep    `json:"steps" nullable:"false"`
	Asked *PlanApproval `json:"asked,omitzero" doc:"The approval of the whole."`
}

// A PlanApproval is how the approval of a plan stands.
type PlanApproval struct {
	ID        string    `json:"id"`
	State     string    `json:"state"`
	DecidedBy string    `json:"decided_by,omitzero"`
	Reason    string    `json:"reason,omitzero"`
	ExpiresAt time.Time `json:"expires_at"`
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
	add(r, route{method: "POST", path: "plans", id: "submit-plan", scope: host.ScopeRun, stays: true, about: "Ask an agent, and make a plan of what it proposes"}, r.submitPlan)
	add(r, route{method: "POST", path: "plans/{id}:cancel", id: "cancel-plan", scope: host.ScopeRun, about: "Stop a plan: the step that runs is told, and those after it never run"}, r.cancelPlan)
	add(r, route{method: "POST", path: "plans/{id}:resume", id: "resume-plan", scope: host.ScopeRun, about: "Let a plan go on that is queued, or whose unknown step was settled"}, r.resumePlan)
	add(r, route{method: "GET", path: "plans/{id}", id: "get-plan", scope: host.ScopeRead, stays: true, about: "A plan with its steps"}, r.getPlan)
}

func (r *registry) listPlans(ctx context.Context, q *request, in *struct {
	Page
	State string `query:"state" enum:"pending_approval,queued,running,succeeded,failed,unknown,cancelled"`
}) (*struct{ Body Plans }, error) {
	last, err := in.after("plans", in.State)
	if err != nil {
		return nil, err
	}
	views, rest, err := q.api.Plans().Page(ctx, host.PlanFilter{State: host.PlanState(in.State), Before: last, Limit: in.size() + 1})
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Plans }{Plans{Plans: []Plan{}}}
	views, out.Body.Next = cut(views, in.size(), rest, func(v *host.Plan) string { return v.ID }, "plans", in.State)
	for i := range views {
		out.Body.Plans = append(out.Body.Plans, planOf(&views[i]))
	}
	return out, nil
}

func (r *registry) getPlan(ctx context.Context, q *request, in *struct {
	PlanNamed
	Short
	Wait string `query:"wait" maxLength:"16" doc:"How long the request stays for a step to end, or the plan: 30s, or a number of seconds."`
}) (*struct{ Body PlanShown }, error) {
	if !in.Short.Short {
		if _, err := r.plan(ctx, q, in.ID); err != nil {
			return nil, err
		}
	}
	limit, err := r.waitOf(in.Wait)
	if err != nil {
		return nil, err
	}
	v, err := q.api.Plans().Get(ctx, in.ID, "see")
	if err != nil {
		return nil, err
	}
	if limit > 0 && !host.PlanEnded(v.State) {
		if v, err = r.waitForPlan(ctx, q, v, limit); err != nil {
			return nil, err
		}
	}
	return shownPlan(v), nil
}

// waitForPlan stays until a step of a plan ends that had not, or the plan does, or the time is
// over. A plan that can go on is run here.
func (r *registry) waitForPlan(ctx context.Context, q *request, v *host.Plan, limit time.Duration) (*host.Plan, error) {
	q.stays(limit + r.WorkTime)
	waiting, stop := context.WithTimeout(ctx, limit)
	defer stop()
	ended := map[string]bool{}
	for _, s := range v.Steps {
		ended[s.ID] = s.State.Ended()
	}
	now, err := q.api.Plans().Wait(waiting, v.ID, func(s host.PlanStep) {
		if !ended[s.ID] {
			stop()
		}
	})
	if err != nil && waiting.Err() == nil {
		return nil, err
	}
	if now == nil || waiting.Err() != nil {
		now, err = q.api.Plans().Get(ctx, v.ID, "see")
	}
	return now, err
}

// plan is a plan by its whole id.
func (r *registry) plan(ctx context.Context, q *request, id string) (*host.Plan, error) {
	in := PlanNamed{id}
	v, err := q.api.Plans().Get(ctx, in.ID, "see")
	if err == nil && v.ID != in.ID || plugin.CodeOf(err) == plugin.CodeInvalidInput { // an id is written whole here
		err = missing("plan", in.ID)
	}
	return v, unlessMissing(err, "plan", in.ID)
}

func shownPlan(v *host.Plan) *struct{ Body PlanShown } {
	out := &struct{ Body PlanShown }{PlanShown{Plan: planOf(v), Steps: []PlanStep{}}}
	if a := v.Approval; a != nil {
		out.Body.Asked = &PlanApproval{a.ID, string(a.State), a.DecidedBy, a.Reason, a.ExpiresAt}
	}
	for _, s := range v.Steps {
		out.Body.Steps = append(out.Body.Steps, PlanStep{s.ID, s.Operation, s.Version, s.Gate, s.Why, append([]string{}, s.Needs...), s.Input, string(s.State), s.CallID, s.Approval, s.Code})
	}
	return out
}

// A PlanNamed is a plan that is meant.
type PlanNamed struct {
	ID string `path:"id" maxLength:"64"`
}

// changedPlan is the answer to a change of a plan, which is named by its whole id.
func (r *registry) changedPlan(ctx context.Context, q *request, id string, change func() (*host.Plan, error)) (*struct{ Body PlanShown }, error) {
	if _, err := r.plan(ctx, q, id); err != nil {
		return nil, err
	}
	v, err := change()
	if isInvalid(err) { // it has ended
		return nil, refused(http.StatusConflict, plugin.CodeInvalidInput, plugin.AsError(err).Message)
	}
	if err != nil {
		return nil, unlessMissing(err, "plan", id)
	}
	return shownPlan(v), nil
}

func (r *registry) cancelPlan(ctx context.Context, q *request, in *struct {
	PlanNamed
	Body *struct {
		Reason string `json:"reason,omitzero" maxLength:"2000" doc:"Why, for the record."`
	} `nameHint:"CancelPlan"`
}) (*struct{ Body PlanShown }, error) {
	reason := ""
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return r.changedPlan(ctx, q, in.ID, func() (*host.Plan, error) { return q.api.Plans().Cancel(ctx, in.ID, reason) })
}

func (r *registry) resumePlan(ctx context.Context, q *request, in *PlanNamed) (*struct{ Body PlanShown }, error) {
	return r.changedPlan(ctx, q, in.ID, func() (*host.Plan, error) { return q.api.Plans().Resume(ctx, in.ID) })
}

// A PlanSubmitted is what became of a submission.
type PlanSubmitted struct {
	Status string          `json:"status" enum:"planned,answered,failed" doc:"There is a plan; the agent answered something else; or it failed."`
	Plan   *PlanShown      `json:"plan,omitzero"`
	CallID string          `json:"call_id,omitzero" doc:"Of the agent."`
	Agent  string          `json:"agent,omitzero" doc:"plugin/operation"`
	Answer json.RawMessage `json:"answer,omitzero" doc:"What the agent said in place of a plan."`
	Error  *Failure        `json:"error,omitzero"`

	Replayed bool `json:"replayed,omitzero" doc:"The plan was there before."`
}

// A submission is the answer to one.
type submission struct {
	Replayed string `header:"Idempotency-Replayed" doc:"true where the plan was there before, under the key."`
	Body     PlanSubmitted
}

func (r *registry) submitPlan(ctx context.Context, q *request, in *struct {
	Key
	Body struct {
		Agent  string          `json:"agent" minLength:"1" maxLength:"320" doc:"An operation of kind agent: plugin/operation, or plugin/operation@versions."`
		Input  json.RawMessage `json:"input,omitzero" doc:"Its input: intent, context, constraints."`
		Labels []string        `json:"labels,omitzero" maxItems:"2" nullable:"false" enum:"untrusted,private" doc:"What the input is tainted with."`
	} `nameHint:"SubmitPlan"`
}) (*submission, error) {
	if _, err := r.preferenceOf(q.Request); err != nil { // what it says of keys
		return nil, err
	}
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	input := in.Body.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return submitted(q.api.Plans().Submit(ctx, host.NewPlan{Agent: in.Body.Agent, Input: input, Key: in.Key.Key, Labels: in.Body.Labels, Origin: plugin.OriginAPI}))
}

// submitted answers with the plan that came of a submission, or why none did.
func submitted(v *host.Plan, err error) (*submission, error) {
	switch e := plugin.AsError(err); {
	case err == nil:
	case ofRun[e.Code]: // as an execution has it
		return &submission{Body: PlanSubmitted{Status: "failed", Error: &Failure{Code: e.Code, PluginCode: e.PluginCode, Message: told(e.Message), Retryable: e.Retryable}}}, nil
	default:
		return nil, refusal(plugin.Result{}, err)
	}
	out := &submission{Body: PlanSubmitted{Status: "answered", CallID: v.ProposalCall, Agent: v.Agent, Answer: v.Answer}}
	if v.ID != "" {
		out.Body = PlanSubmitted{Status: "planned", Plan: &shownPlan(v).Body, CallID: v.ProposalCall}
	}
	if v.Replayed {
		out.Replayed, out.Body.Replayed = "true", true
	}
	return out, nil
}
