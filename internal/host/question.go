package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A Question is an approval as it is shown: everything that the answer is bound
// to. It never holds the token.
type Question struct {
	ID          string        `json:"id"`
	State       approvalState `json:"state"`
	SubjectKind string        `json:"subject_kind"` // call or plan
	Subject     string        `json:"subject"`
	Requester   string        `json:"requester"`
	Why         string        `json:"why"` // what policy said

	// Of a call.
	Operation  string          `json:"operation,omitempty"` // plugin/operation
	Version    string          `json:"version,omitempty"`
	Actor      string          `json:"actor,omitempty"` // who acts for the requester
	Input      json.RawMessage `json:"input,omitzero"`
	InputHash  string          `json:"input_hash,omitempty"`
	Labels     []string        `json:"labels,omitempty"`
	Effects    []string        `json:"effects,omitempty"`
	PolicyTags []string        `json:"policy_tags,omitempty"`
	Digest     string          `json:"package_digest,omitempty"`
	Changed    bool            `json:"changed"` // the plugin has, so that approving lets nothing run

	Steps []QuestionStep `json:"steps,omitempty"` // of a plan

	Preview       json.RawMessage `json:"preview,omitzero"`
	PreviewHash   string          `json:"preview_hash,omitempty"`
	Binding       string          `json:"binding"`
	PolicyVersion string          `json:"policy_version"`
	CreatedAt     time.Time       `json:"created_at"`
	ExpiresAt     time.Time       `json:"expires_at"`
	DecidedBy     string          `json:"decided_by,omitempty"`
	DecidedAt     time.Time       `json:"decided_at,omitzero"`
	Reason        string          `json:"reason,omitempty"` // the person's
}

// A QuestionStep is a step of a plan that is put up for approval.
type QuestionStep struct {
	ID        string          `json:"step_id"`
	Operation string          `json:"operation"`
	Version   string          `json:"version"`
	Digest    string          `json:"package_digest"`
	Input     json.RawMessage `json:"input"`
	Needs     []string        `json:"needs"`
	Gate      string          `json:"gate"`
	Why       string          `json:"why"`
}

// Question returns an approval as it is shown.
func (a *Approvers) Question(ctx context.Context, row *ApprovalRow) (*Question, error) {
	q := &Question{
		ID: row.ID, State: row.State, SubjectKind: row.SubjectKind, Subject: row.SubjectID, Requester: row.Requester, Why: row.Why,
		Digest: row.PackageDigest, PreviewHash: row.PreviewHash, Binding: row.Binding, PolicyVersion: row.PolicyVersion,
		CreatedAt: row.CreatedAt, ExpiresAt: row.ExpiresAt, DecidedBy: row.DecidedBy, DecidedAt: row.DecidedAt, Reason: row.Reason,
	}
	preview, err := ledger.Preview(ctx, a.Store, row)
	if err != nil {
		return nil, err
	}
	q.Preview = preview
	if row.SubjectKind == SubjectPlan {
		return q, a.askSteps(ctx, q, row)
	}
	return q, a.askCall(ctx, q, row)
}

// askCall fills in what a question about a call is bound to.
func (a *Approvers) askCall(ctx context.Context, q *Question, row *ApprovalRow) error {
	call, asked, err := a.callShown(ctx, row.Tenant, row.SubjectID)
	if err != nil || call == nil {
		return err
	}
	q.Operation, q.Version, q.Actor, q.InputHash, q.Labels = call.Operation, call.Version, call.Actor, call.InputHash, call.Labels
	q.Input = asked.Input
	t, err := a.Registry.Resolve(ctx, asked.Operation)
	if plugin.CodeOf(err) == plugin.CodeInternal {
		return err
	}
	if err != nil || t.Package.Digest != row.PackageDigest {
		q.Changed = true // it is gone, switched off or another: its effects are not known to be those that were asked for
		return nil
	}
	q.Effects, q.PolicyTags = t.Operation.Effects, t.Operation.PolicyTags
	q.Input, err = a.Shown(ctx, t, asked)
	return err
}

// askSteps fills in the steps of a plan.
func (a *Approvers) askSteps(ctx context.Context, q *Question, row *ApprovalRow) error {
	steps, err := a.stepsShown(ctx, row)
	for i := range steps {
		s := &steps[i]
		input, err := a.stepSeen(ctx, row, s)
		if err != nil {
			return err
		}
		q.Steps = append(q.Steps, QuestionStep{
			ID: s.StepID, Operation: s.Operation, Version: s.Version, Digest: s.PackageDigest, Input: input,
			Needs: append([]string{}, s.Needs...), Gate: s.Gate, Why: s.Why,
		})
	}
	return err
}

// stepSeen returns the input of a step as a person is shown it: with what the host
// fills in, where the operation is still the one that was planned.
func (a *Approvers) stepSeen(ctx context.Context, row *ApprovalRow, s *stepRow) (json.RawMessage, error) {
	call := plugin.Call{Tenant: row.Tenant, Principal: principal.Parse(row.Requester), Operation: s.Operation + "@=" + s.Version, Input: json.RawMessage(s.Input)}
	t, err := a.Registry.Resolve(ctx, call.Operation)
	if plugin.CodeOf(err) == plugin.CodeInternal {
		return nil, err
	}
	if err != nil || t.Package.Digest != s.PackageDigest {
		return call.Input, nil
	}
	return a.Shown(ctx, t, &call)
}

// Deciders returns the principals named in the configuration that may approve
// an approval, other than its requester.
func (a *Approvers) Deciders(ctx context.Context, row *ApprovalRow) []string {
	var names []string
	for _, name := range a.now().names {
		who := principal.Parse(name)
		if who.Type != "agent" && who.Member() != row.Requester && a.MayApprove(ctx, row, who) == nil {
			names = append(names, name)
		}
	}
	return names
}
