package rest

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// An Approval is what a person is asked, without what it is bound to.
type Approval struct {
	ID          string    `json:"id"`
	State       string    `json:"state" doc:"open, approved, denied, expired, void or consumed."`
	SubjectKind string    `json:"subject_kind" enum:"call,plan"`
	Subject     string    `json:"subject" doc:"The id of the call or plan."`
	Requester   string    `json:"requester"`
	Why         string    `json:"why" doc:"What policy said."`
	CreatedAt   time.Time `json:"created_at"`
	ExpiresAt   time.Time `json:"expires_at"`
	DecidedBy   string    `json:"decided_by,omitzero"`
	Reason      string    `json:"reason,omitzero" doc:"What was said with the decision."`
}

// Approvals are a page of them.
type Approvals struct {
	Approvals []Approval `json:"approvals" nullable:"false"`
	Next      string     `json:"next_page_token" doc:"Empty on the last page."`
}

// A Question is an approval with everything that the answer is bound to.
type Question struct {
	Approval
	Operation     string          `json:"operation,omitzero" doc:"Of a call: plugin/operation."`
	Version       string          `json:"version,omitzero"`
	Actor         string          `json:"actor,omitzero" doc:"Who acts for the requester."`
	Input         json.RawMessage `json:"input,omitzero"`
	InputHash     string          `json:"input_hash,omitzero"`
	Labels        []string        `json:"labels,omitzero"`
	Effects       []string        `json:"effects,omitzero"`
	PolicyTags    []string        `json:"policy_tags,omitzero"`
	Digest        string          `json:"package_digest,omitzero"`
	Changed       bool            `json:"changed" doc:"The plugin has changed, so that approving lets nothing run."`
	Steps         []AskedStep     `json:"steps,omitzero" doc:"Of a plan."`
	Preview       json.RawMessage `json:"preview,omitzero"`
	PreviewHash   string          `json:"preview_hash,omitzero"`
	Binding       string          `json:"binding"`
	PolicyVersion string          `json:"policy_version"`
}

// An AskedStep is a step of a plan that a person is asked about.
type AskedStep struct {
	ID        string          `json:"step_id"`
	Operation string          `json:"operation"`
	Version   string          `json:"version"`
	Digest    string          `json:"package_digest"`
	Input     json.RawMessage `json:"input"`
	Needs     []string        `json:"needs" nullable:"false"`
	Gate      string          `json:"gate"`
	Why       string          `json:"why"`
}

func (r *registry) approvals() {
	add(r, route{method: "GET", path: "approvals", id: "list-approvals", scope: host.ScopeRead, about: "The approvals that the caller asked for or may decide, the newest first"}, r.listApprovals)
	add(r, route{method: "GET", path: "approvals/{id}", id: "get-approval", scope: host.ScopeRead, about: "An approval with everything that it is bound to"}, r.getApproval)
	add(r, route{method: "POST", path: "approvals/{id}:approve", id: "approve", scope: host.ScopeApprove, about: "Agree to one call or plan, which then goes on"}, r.decide(true))
	add(r, route{method: "POST", path: "approvals/{id}:deny", id: "deny", scope: host.ScopeApprove, about: "Refuse one call or plan"}, r.decide(false))
}

func approvalOf(row *host.ApprovalRow) Approval {
	return Approval{row.ID, string(row.State), row.SubjectKind, row.SubjectID, row.Requester, row.Why, row.CreatedAt, row.ExpiresAt, row.DecidedBy, row.Reason}
}

func (r *registry) listApprovals(ctx context.Context, q *request, in *struct {
	Page
	State string `query:"state" enum:"open,approved,denied,expired,void,consumed"`
}) (*struct{ Body Approvals }, error) {
	filters := []string{"approvals", in.State}
	last, err := in.after(filters...)
	if err != nil {
		return nil, err
	}
	f := host.ApprovalFilter{Before: last, Limit: in.size() + 1}
	if in.State != "" {
		f.State = host.ApprovalState(in.State)
	}
	rows, err := q.api.Approvals().List(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Approvals }{Approvals{Approvals: []Approval{}}}
	rows, out.Body.Next = cut(rows, in.size(), func(row *host.ApprovalRow) string { return row.ID }, filters...)
	for i := range rows {
		out.Body.Approvals = append(out.Body.Approvals, approvalOf(&rows[i]))
	}
	return out, nil
}

func (r *registry) getApproval(ctx context.Context, q *request, in *struct {
	ID string `path:"id" maxLength:"64"`
}) (*struct{ Body Question }, error) {
	row, err := q.api.Approvals().Get(ctx, in.ID, "see")
	if err == nil && row == nil {
		err = missing("approval", in.ID)
	}
	if err != nil {
		return nil, unlessMissing(err, "approval", in.ID)
	}
	asked, err := q.api.Approvers().Question(ctx, row)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Question }{Question{
		Approval: approvalOf(row), Operation: asked.Operation, Version: asked.Version, Actor: asked.Actor, Input: asked.Input, InputHash: asked.InputHash,
		Labels: asked.Labels, Effects: asked.Effects, PolicyTags: asked.PolicyTags, Digest: asked.Digest, Changed: asked.Changed,
		Preview: asked.Preview, PreviewHash: asked.PreviewHash, Binding: asked.Binding, PolicyVersion: asked.PolicyVersion,
	}}
	for _, step := range asked.Steps {
		out.Body.Steps = append(out.Body.Steps, AskedStep(step))
	}
	return out, nil
}

// A Decided is what a person says about an approval.
type Decided struct {
	Reason string `json:"reason,omitzero" maxLength:"4096" doc:"Why, for the record and for the requester."`
}

// wholeID is how many characters the id of an approval has. One that is cut short, and the
// token that approvers are sent, name none here: the path of a request is logged.
const wholeID = 36

// decide approves or denies an approval.
func (r *registry) decide(approve bool) func(context.Context, *request, *decision) (*struct{ Body Approval }, error) {
	return func(ctx context.Context, q *request, in *decision) (*struct{ Body Approval }, error) {
		var said Decided
		if in.Body != nil {
			said = *in.Body
		}
		if len(in.ID) != wholeID {
			return nil, missing("approval", in.ID)
		}
		row, _, err := q.api.Approvals().Decide(ctx, in.ID, approve, false, said.Reason)
		if plugin.CodeOf(err) == plugin.CodeNotFound {
			err = unlessMissing(err, "approval", in.ID)
		}
		if err != nil {
			return nil, err
		}
		return &struct{ Body Approval }{approvalOf(row)}, nil
	}
}

type decision struct {
	ID   string `path:"id" maxLength:"64"`
	Body *Decided
}
