package client

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// plans are the plans of a remote host.
type plans struct{ *remote }

// Plans implements [Host].
func (r *remote) Plans() Plans { return plans{r} }

// A planDocument is a plan as a document has it: the approval is there by its id.
type planDocument struct {
	host.Plan
	Approval string             `json:"approval"`
	Asked    *host.PlanApproval `json:"asked"`
}

func (d *planDocument) of() *host.Plan {
	v := d.Plan
	v.Approval = d.Asked
	if v.Approval == nil && d.Approval != "" {
		v.Approval = &host.PlanApproval{ID: d.Approval}
	}
	return &v
}

// List implements [Plans].
func (p plans) List(ctx context.Context, f host.PlanFilter) ([]host.Plan, error) {
	query := url.Values{}
	if f.State != "" {
		query.Set("state", string(f.State))
	}
	found, err := rowsOf[planDocument](ctx, p.remote, "plans", query, f.Limit, "plans")
	all := make([]host.Plan, len(found))
	for i := range found {
		all[i] = *found[i].of()
	}
	return all, err
}

// Get implements [Plans].
func (p plans) Get(ctx context.Context, id, _ string) (*host.Plan, error) {
	return p.read(ctx, url.Values{"short": {"true"}}, id)
}

func (p plans) read(ctx context.Context, query url.Values, id string) (*host.Plan, error) {
	var d planDocument
	if err := p.get(ctx, &d, query, "plans", id); err != nil {
		return nil, err
	}
	return d.of(), nil
}

// changed asks for a change of a plan, whose id may be cut short.
func (p plans) changed(ctx context.Context, id, verb string, body any) (*host.Plan, error) {
	if len(id) != wholeID {
		v, err := p.Get(ctx, id, "change")
		if err != nil {
			return nil, err
		}
		id = v.ID
	}
	var d planDocument
	if err := p.post(ctx, body, &d, "plans", id+verb); err != nil {
		return nil, err
	}
	return d.of(), nil
}

// Cancel implements [Plans].
func (p plans) Cancel(ctx context.Context, id, reason string) (*host.Plan, error) {
	return p.changed(ctx, id, ":cancel", map[string]string{"reason": reason})
}

// Resume implements [Plans].
func (p plans) Resume(ctx context.Context, id string) (*host.Plan, error) {
	return p.changed(ctx, id, ":resume", nil)
}

// Submit implements [Plans]. What the agent says meanwhile stays with the host.
func (p plans) Submit(ctx context.Context, n host.NewPlan) (*host.Plan, error) {
	q := asking{
		method: http.MethodPost, path: "plans", key: cmp.Or(n.Key, host.NewKey()),
		body: map[string]any{"agent": n.Agent, "input": json.RawMessage(n.Input), "labels": append([]string{}, n.Labels...)},
	}
	var out submission
	header, err := p.do(ctx, q, &out)
	if err != nil {
		return nil, err
	}
	v, err := p.submitted(&out)
	if v != nil {
		v.Replayed = n.Key != "" && (v.Replayed || header.Get("Idempotency-Replayed") == "true")
	}
	return v, err
}

// A submission is what became of one.
type submission struct {
	Status string          `json:"status"`
	Plan   *planDocument   `json:"plan"`
	CallID string          `json:"call_id"`
	Answer json.RawMessage `json:"answer"`
	Error  *rest.Failure   `json:"error"`
	Agent  string          `json:"agent"`

	Replayed bool `json:"replayed"`
}

// submitted is the plan that came of a submission, or what the agent said in its place.
func (p plans) submitted(out *submission) (*host.Plan, error) {
	if out.Error != nil {
		_, err := resultOf(&rest.Outcome{Error: out.Error})
		return nil, err
	}
	v := &host.Plan{Agent: out.Agent, ProposalCall: out.CallID, Principal: p.who.Principal, Answer: out.Answer, Steps: []host.PlanStep{}}
	if out.Plan != nil {
		v = out.Plan.of()
	}
	v.Replayed = out.Replayed
	return v, nil
}

// Wait implements [Plans]. The host does the waiting, step by step.
func (p plans) Wait(ctx context.Context, id string, show func(host.PlanStep)) (*host.Plan, error) {
	told := map[string]bool{}
	v, err := p.Get(ctx, id, "wait for")
	for {
		if err != nil {
			return nil, err
		}
		for _, s := range v.Steps {
			if s.State.Ended() && !told[s.ID] {
				told[s.ID] = true
				show(s)
			}
		}
		if host.PlanEnded(v.State) {
			return v, nil
		}
		last := v
		if v, err = p.read(ctx, url.Values{"wait": {"60"}}, v.ID); ctx.Err() != nil {
			return last, context.Cause(ctx)
		}
	}
}
