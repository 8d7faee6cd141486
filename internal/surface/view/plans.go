package view

import (
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Plans are plans as they are listed.
var Plans = List[host.Plan]{
	Key:    "plans",
	Titles: []string{"PLAN", "CREATED", "STATE", "AGENT", "FOR", "CODE"},
	Row: func(v host.Plan) []string {
		code := "-"
		if v.Error != nil {
			code = string(v.Error.Code)
		}
		return []string{v.ID, terminal.Clock(v.CreatedAt), string(v.State), v.Agent, v.Principal, code}
	},
}

// Plan shows a plan, and what may be done about it next.
func Plan(w, errs io.Writer, v *host.Plan) error {
	if v.ID == "" {
		Say(errs, "%s proposes no plan; call %s", v.Agent, v.ProposalCall)
		return terminal.Value(w, jsontext.Value(v.Answer), width(w))
	}
	t := terminal.Details(w)
	t.Row("plan", v.ID)
	t.Row("state", string(v.State))
	t.Row("agent", v.Agent)
	if v.Rationale != "" {
		t.Row("why", terminal.OneLine(v.Rationale, 100))
	}
	t.Row("for", v.Principal)
	t.Some("labels", v.Labels...)
	if v.Approval != nil {
		t.Row("approval", fmt.Sprintf("%s %s", v.Approval.ID, approvalText(v.Approval)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	steps := terminal.NewTable(w, "STEP", "OPERATION", "NEEDS", "GATE", "STATE", "CALL")
	for _, s := range v.Steps {
		steps.Row(s.ID, s.Operation+"@"+s.Version, terminal.Dash(strings.Join(s.Needs, ",")), s.Gate, string(s.State)+inBrackets(string(s.Code)), terminal.Dash(s.CallID))
	}
	if err := steps.Flush(); err != nil {
		return err
	}
	for _, s := range v.Steps {
		if s.Why != "" {
			fmt.Fprintf(w, "%s: %s\n", terminal.Safe(s.ID), terminal.Safe(s.Why))
		}
	}
	if v.Replayed {
		Say(errs, "its key was used before: this is the plan of then, and there is no other")
	}
	if hint := PlanHint(v); hint != "" {
		Say(errs, "%s", hint)
	}
	return nil
}

// PlanHint is what may be done about a plan next.
func PlanHint(v *host.Plan) string {
	switch v.State {
	case host.PlanPending:
		if v.Approval != nil && v.Approval.State == host.ApprovalOpen {
			return fmt.Sprintf("a person has to agree: 'mortise plans show %s', then 'mortise plans approve %s --as NAME' or 'mortise plans deny %s --as NAME'", v.ID, v.ID, v.ID)
		}
		for _, s := range v.Steps {
			if s.Approval != "" {
				return fmt.Sprintf("step %s asks again: 'mortise approvals show %s'", s.ID, s.Approval)
			}
		}
		return fmt.Sprintf("it can go on: 'mortise plans resume %s --wait'", v.ID)
	case host.PlanUnknown:
		for _, s := range v.Steps {
			if s.State == host.StepUnknown {
				return fmt.Sprintf("record how step %s ended: 'mortise calls settle %s', with --ask if its operator can find out; then 'mortise plans resume %s --wait'", s.ID, s.CallID, v.ID)
			}
		}
		return fmt.Sprintf("it can go on: 'mortise plans resume %s --wait'", v.ID)
	case host.PlanQueued:
		return fmt.Sprintf("it is run by 'mortise serve', or here with 'mortise plans resume %s --wait'", v.ID)
	}
	return ""
}

// PlanInputs shows why a plan ended badly, and the inputs of its steps.
func PlanInputs(w, errs io.Writer, v *host.Plan) error {
	if v.Error != nil {
		Say(errs, "%s: %s", v.Error.Code, v.Error.Message)
	}
	fmt.Fprintln(w)
	for _, s := range v.Steps {
		fmt.Fprintf(w, "%s %s\n", terminal.Safe(s.ID), terminal.Escaped(string(s.Input)))
	}
	return nil
}

// PlanStep says on one line how a step ended.
func PlanStep(s host.PlanStep) string {
	return fmt.Sprintf("step %s %s: %s%s", s.ID, s.Operation, s.State, inBrackets(string(s.Code)))
}

func approvalText(a *host.PlanApproval) string {
	switch a.State {
	case host.ApprovalOpen:
		return "open until " + terminal.Clock(a.ExpiresAt)
	case host.ApprovalApproved, host.ApprovalConsumed, host.ApprovalDenied:
		return fmt.Sprintf("%s, decided by %s", a.State, a.DecidedBy)
	}
	return string(a.State)
}
