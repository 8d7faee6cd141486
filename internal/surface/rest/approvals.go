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
	DecidedAt   time.Time `json:"decided_at,omitzero"`
	Reason      string    `json:"reason,omitzero" doc:"What was said with the decision."`
}

// Approvals are a page of them.
type Approvals struct {
	Approvals []Approval `json:"approvals" nullable:"false"`
	Questions []Question `json:"questions,omitzero" doc:"The same with what each is bound to, where the request asks for questions."`
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
	Standing      *Standing       `json:"standing,omitzero" doc:"Who may decide it, of one approval."`
	Before        *Precedent      `json:"before,omitzero" doc:"The call of the same operation that was approved last before this was asked for, among its last 50 calls; of one approval, where the caller may see it."`
}

// A Standing is how an approval stands with those who may decide it.
type Standing struct {
	Deciders []string `json:"deciders" nullable:"false" doc:"Who may decide it, as the configuration names them; of one that is open."`
	Owner    string   `json:"owner" doc:"The principal that the configuration acts for."`
	TrustAs  bool     `json:"trust_as" doc:"The configuration takes a name's word for who someone is."`
	Theirs   bool     `json:"theirs" doc:"The caller may agree to it themselves, at a terminal."`
	Approve  *Barred  `json:"may_not_approve,omitzero" doc:"Why the caller may not approve it; absent where they may, and where it is decided."`
	Deny     *Barred  `json:"may_not_deny,omitzero" doc:"Why the caller may not deny it, likewise."`
	Same     bool     `json:"same" doc:"It was approved by the user who asked for it, which counts only because of trust_as."`
}

// A Barred is why the caller may not do something.
type Barred struct {
	Code   plugin.Code `json:"code" doc:"One of the codes in docs/codes.md."`
	Detail string      `json:"detail"`
}

// A Precedent is the call of the same operation that was approved last before.
type Precedent struct {
	Call      string          `json:"call_id"`
	Version   string          `json:"version"`
	Requester string          `json:"requester"`
	DecidedBy string          `json:"decided_by"`
	DecidedAt time.Time       `json:"decided_at"`
	Input     json.RawMessage `json:"input"`
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
	return Approval{row.ID, string(row.State), row.SubjectKind, row.SubjectID, row.Requester, row.Why, row.CreatedAt, row.ExpiresAt, row.DecidedBy, row.DecidedAt, row.Reason}
}

func (r *registry) listApprovals(ctx context.Context, q *request, in *struct {
	Page
	State     string `query:"state" enum:"open,approved,denied,expired,void,consumed"`
	Questions bool   `query:"questions" doc:"With what each is bound to."`
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
	rows, rest, err := q.api.Approvals().Page(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Approvals }{Approvals{Approvals: []Approval{}}}
	rows, out.Body.Next = cut(rows, in.size(), rest, func(row *host.ApprovalRow) string { return row.ID }, filters...)
	for i, asks := 0, 0; i < len(rows); i++ {
		out.Body.Approvals = append(out.Body.Approvals, approvalOf(&rows[i]))
		if !in.Questions {
			continue
		}
		asked, err := q.api.Approvers().Question(ctx, &rows[i])
		if err != nil {
			return nil, err
		}
		out.Body.Questions = append(out.Body.Questions, questionOf(&rows[i], asked))
		if asks += sizeOf(asked); asks >= mostAsked && i+1 < len(rows) {
			out.Body.Next = next(rows[i].ID, filters...)
			break
		}
	}
	return out, nil
}

// mostAsked is how many bytes the questions of a page ask about: with the one that passes it, the
// page ends.
const mostAsked = 4 << 20

// sizeOf returns how many bytes a question asks about.
func sizeOf(q *host.Question) int {
	n := len(q.Input) + len(q.Preview)
	for _, step := range q.Steps {
		n += len(step.Input)
	}
	return n
}

func (r *registry) getApproval(ctx context.Context, q *request, in *struct {
	ID string `path:"id" maxLength:"64"`
	Short
}) (*struct{ Body Question }, error) {
	if !in.Short.Short && len(in.ID) != wholeID {
		return nil, missing("approval", in.ID)
	}
	asked, err := q.api.Approvals().Asked(ctx, in.ID)
	if err != nil {
		return nil, unlessMissing(err, "approval", in.ID)
	}
	return standingOf(&asked), nil
}

func standingOf(asked *host.Asked) *struct{ Body Question } {
	out := &struct{ Body Question }{questionOf(asked.Row, asked.Question)}
	out.Body.Standing = &Standing{
		Deciders: append([]string{}, asked.Deciders...), Owner: asked.Owner, TrustAs: asked.TrustAs, Theirs: asked.Theirs, Same: asked.Same,
		Approve: mayNot(asked.MayApprove), Deny: mayNot(asked.MayDeny),
	}
	if p := asked.Before; p != nil {
		out.Body.Before = &Precedent{p.Call.ID, p.Call.Version, p.Call.Principal, p.DecidedBy, p.DecidedAt, p.Input}
	}
	return out
}

// mayNot is why the caller may not do something, nil where they may.
func mayNot(err error) *Barred {
	if err == nil {
		return nil
	}
	e := plugin.AsError(err)
	return &Barred{e.Code, told(e.Message)}
}

func questionOf(row *host.ApprovalRow, asked *host.Question) Question {
	out := Question{
		Approval: approvalOf(row), Operation: asked.Operation, Version: asked.Version, Actor: asked.Actor, Input: asked.Input, InputHash: asked.InputHash,
		Labels: asked.Labels, Effects: asked.Effects, PolicyTags: asked.PolicyTags, Digest: asked.Digest, Changed: asked.Changed,
		Preview: asked.Preview, PreviewHash: asked.PreviewHash, Binding: asked.Binding, PolicyVersion: asked.PolicyVersion,
	}
	for _, step := range asked.Steps {
		out.Steps = append(out.Steps, AskedStep(step))
	}
	return out
}

// A Decided is what a person says about an approval.
type Decided struct {
	Reason   string `json:"reason,omitzero" maxLength:"4096" doc:"Why, for the record and for the requester."`
	Token    string `json:"token,omitzero" maxLength:"64" doc:"What an approver was sent. It names the approval where the id is token: a path is logged, and a body is not."`
	Terminal bool   `json:"terminal,omitzero" doc:"The owner is at a terminal, and may agree to what they asked for where the configuration has it. It counts on the owner's socket alone."`
}

// wholeID is how many characters the id of an approval has. One that is cut short names none
// here, and byToken the approval of the token in the body.
const (
	wholeID = 36
	byToken = "token"
)

// decide approves or denies an approval.
func (r *registry) decide(approve bool) func(context.Context, *request, *decision) (*struct{ Body Question }, error) {
	return func(ctx context.Context, q *request, in *decision) (*struct{ Body Question }, error) {
		var said Decided
		if in.Body != nil {
			said = *in.Body
		}
		given := in.ID
		if (given == byToken) != (said.Token != "") || given != byToken && len(given) != wholeID {
			return nil, missing("approval", in.ID)
		}
		if given == byToken {
			given = said.Token
		}
		asked, err := q.api.Approvals().Answer(ctx, given, approve, said.Terminal, said.Reason)
		if err != nil {
			return nil, unlessMissing(err, "approval", in.ID)
		}
		return standingOf(&asked), nil
	}
}

type decision struct {
	ID   string `path:"id" maxLength:"64"`
	Body *Decided
}
