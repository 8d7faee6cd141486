package plan

import (
	"context"
	"encoding/json"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
)

// A View is a plan as it is shown.
type View struct {
	ID           string              `json:"id"` // "" where the agent proposed no plan
	State        State               `json:"state"`
	Agent        string              `json:"agent"`
	ProposalCall string              `json:"proposal_call"`
	Principal    string              `json:"principal"`
	Hash         string              `json:"hash,omitempty"`
	Labels       []string            `json:"labels,omitempty"`
	Steps        []StepView          `json:"steps"`
	Approval     *ApprovalView       `json:"approval,omitempty"`
	Error        *plugin.ErrorRecord `json:"error,omitempty"`
	Answer       json.RawMessage     `json:"answer,omitzero"`     // of an agent that proposed no plan
	Rationale    string              `json:"rationale,omitempty"` // the agent's
	Replayed     bool                `json:"replayed,omitzero"`   // it was there before, under this key
	CreatedAt    time.Time           `json:"created_at,omitzero"`
	UpdatedAt    time.Time           `json:"updated_at,omitzero"`
}

// A StepView is a step as it is shown.
type StepView struct {
	ID        string          `json:"step_id"`
	Operation string          `json:"operation"`
	Version   string          `json:"version"`
	Gate      string          `json:"gate"`
	Why       string          `json:"why,omitempty"`
	Needs     []string        `json:"needs"`
	Input     json.RawMessage `json:"input"`
	State     StepState       `json:"state"`
	CallID    string          `json:"call_id,omitempty"`
	Approval  string          `json:"approval,omitempty"` // that its call waits for
	Code      plugin.Code     `json:"code,omitempty"`     // of its error
}

// A StepState is how a step stands: how its call does.
type StepState string

// The states of a step.
const (
	StepWaiting StepState = "waiting" // it has not begun
	StepNotRun  StepState = "not_run" // and never will
	StepPending StepState = "pending_approval"
	StepRunning StepState = "in_progress"
	StepDone    StepState = "succeeded"
	StepFailed  StepState = "failed"
	StepUnknown StepState = "unknown"
)

// Ended reports whether nothing more happens to such a step by itself.
func (s StepState) Ended() bool { return s == StepDone || s == StepFailed || s == StepUnknown }

// An ApprovalView is the one approval of a whole plan.
type ApprovalView struct {
	ID        string         `json:"id"`
	State     approval.State `json:"state"`
	DecidedBy string         `json:"decided_by,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	ExpiresAt time.Time      `json:"expires_at"`
}

// Ended reports whether nothing more happens to a plan by itself. One that is
// unknown can be resumed once its step was settled.
func Ended(state State) bool {
	switch state {
	case Succeeded, Failed, Unknown, Cancelled:
		return true
	}
	return false
}

// Show returns a plan. The id may be the beginning of one.
func (e *Engine) Show(ctx context.Context, tenant, id string) (*View, error) {
	row, err := e.find(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	return e.view(ctx, row)
}

// List returns plans, the newest first, without their steps.
func (e *Engine) List(ctx context.Context, f Filter) ([]View, error) {
	rows, err := e.Store.Plans(ctx, f)
	views := make([]View, len(rows))
	for i, row := range rows {
		views[i] = *outline(&row)
	}
	return views, err
}

func outline(row *Row) *View {
	v := &View{
		ID: row.ID, State: row.State, Agent: row.Agent, ProposalCall: row.ProposalCall, Principal: row.Principal, Hash: row.Hash,
		Labels: row.Labels, Steps: []StepView{}, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}
	if row.Code != "" {
		v.Error = &plugin.ErrorRecord{Code: plugin.Code(row.Code), Message: row.Message}
	}
	return v
}

// view returns a plan with its steps as their calls stand at one moment.
func (e *Engine) view(ctx context.Context, row *Row) (v *View, err error) {
	err = e.Store.Snapshot(ctx, func(r ledger.Reader) error {
		now, err := r.PlanToRun(ctx, row.Tenant, row.ID)
		if err != nil || now == nil {
			return err
		}
		v, err = assemble(ctx, r, now)
		return err
	})
	return v, err
}

func assemble(ctx context.Context, r reader, row *Row) (*View, error) {
	v := outline(row)
	steps, err := Steps(ctx, r, row)
	if err != nil {
		return nil, err
	}
	calls, err := callsOf(ctx, r, row)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		sv := StepView{
			ID: s.StepID, Operation: s.Operation, Version: s.Version, Gate: s.Gate, Why: s.Why, Needs: orEmpty(s.Needs),
			Input: json.RawMessage(s.Input), State: StepWaiting,
		}
		if Ended(row.State) {
			sv.State = StepNotRun
		}
		if call, found := calls[s.StepID]; found {
			sv.State, sv.CallID, sv.Code = stateOf(call.State), call.ID, plugin.Code(call.Code)
			if call.State == ledger.Pending {
				asked, err := newest(ctx, r, row.Tenant, approval.SubjectCall, call.ID)
				if err != nil {
					return nil, err
				}
				if asked != nil {
					sv.Approval = asked.ID
				}
			}
		}
		v.Steps = append(v.Steps, sv)
	}
	asked, err := newest(ctx, r, row.Tenant, approval.SubjectPlan, row.ID)
	if err != nil {
		return nil, err
	}
	if asked != nil {
		v.Approval = &ApprovalView{asked.ID, asked.State, asked.DecidedBy, asked.Reason, asked.ExpiresAt}
	}
	read := r.Body // what has ended may have been erased
	if row.State.Live() {
		read = func(ctx context.Context, tenant, hash string) ([]byte, error) {
			return neededBody(ctx, r, tenant, hash)
		}
	}
	body, err := read(ctx, row.Tenant, row.RequestHash)
	if err != nil {
		return nil, err
	}
	if body != nil {
		var kept struct {
			Proposal Proposal `json:"proposal"`
		}
		if json2.Unmarshal(body, &kept) == nil {
			v.Rationale = kept.Proposal.Rationale.Short
		}
	}
	return v, nil
}

// callsOf returns the calls of a plan's steps, by step.
func callsOf(ctx context.Context, r reader, row *Row) (map[string]ledger.CallRow, error) {
	rows, err := r.Calls(ctx, ledger.CallFilter{Tenant: row.Tenant, Plan: row.ID})
	if err != nil {
		return nil, err
	}
	calls := map[string]ledger.CallRow{}
	prefix := stepKey(row.ID, "")
	for _, call := range rows {
		if len(call.Key) > len(prefix) && call.Key[:len(prefix)] == prefix {
			calls[call.Key[len(prefix):]] = call
		}
	}
	return calls, nil
}

// stepKey is the key of a step's call, as it is stored.
func stepKey(plan, step string) string { return "p:" + plan + "/" + step }

// newest returns the last approval that was asked for something, nil if none was.
func newest(ctx context.Context, r reader, tenant, kind, id string) (*approval.Row, error) {
	asked, err := r.Approvals(ctx, approval.Filter{Tenant: tenant, SubjectKind: kind, SubjectID: id, Limit: 1})
	if err != nil || len(asked) == 0 {
		return nil, err
	}
	return &asked[0], nil
}

func stateOf(state ledger.State) StepState {
	switch state {
	case ledger.Succeeded:
		return StepDone
	case ledger.Failed:
		return StepFailed
	case ledger.Unknown:
		return StepUnknown
	case ledger.Pending:
		return StepPending
	}
	return StepRunning
}
