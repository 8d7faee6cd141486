package check

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/plugin"
)

// A hearing is what the kernel has for agents, and keeps what the agent said.
type hearing struct {
	app.Agents
	target *plugin.Target
	call   *plugin.Call
	input  json.RawMessage
	output json.RawMessage // nil where the agent was not heard
}

func (h *hearing) Judge(ctx context.Context, t *plugin.Target, call *plugin.Call, input, output json.RawMessage) error {
	h.target, h.call = t, call
	h.input, h.output = slices.Clone(input), slices.Clone(output)
	return h.Agents.Judge(ctx, t, call, input, output)
}

// agent holds an agent to what the contract asks of it: the shape of its
// answer, the context it needs, what it may propose (kernel contracts, 5.9).
func (t *trial) agent(ctx context.Context) error {
	heard := &hearing{Agents: t.host.Kernel.Agents}
	r := t.request()
	r.by = t.host.Varied(app.Variation{Agents: heard})
	a, err := t.host.call(ctx, r)
	if err != nil {
		return err
	}
	if heard.output == nil && (t.barred(a) != "" || a.err != nil && len(t.missing(t.shown.Manifest, t.op)) > 0) {
		t.held(a)
		return nil
	}
	if heard.output == nil {
		if a.err == nil {
			a.err = plugin.Errorf(plugin.CodeInternal, "the host did not judge its answer")
		}
		t.judge(runs, a.err)
		t.blame(a)
		return t.context(ctx)
	}
	t.tell(runs, Pass, "")
	t.asks(a)
	proposal, err := plan.ParseProposal(heard.output)
	if err != nil {
		t.judge(answers, err)
		return t.context(ctx)
	}
	forbidden := t.forbidden(ctx, heard, proposal)
	loose := ungrounded(heard.input, proposal)
	if a.err != nil && len(forbidden) == 0 && len(loose) == 0 {
		t.judge(answers, a.err) // refused for the rest: its name, its version, its output's own schema
	} else {
		t.tell(answers, Pass, "")
	}
	t.list(proposes, forbidden)
	t.list(grounded, loose)
	return t.context(ctx)
}

// list reports a check that passes where nothing speaks against it.
func (t *trial) list(check string, problems []string) {
	if len(problems) == 0 {
		t.tell(check, Pass, "")
		return
	}
	t.tell(check, Fail, "%s", strings.Join(problems, "; "))
}

// forbidden returns the places where something is proposed that may not be. The
// host judges each alone, in an answer that has nothing else to refuse.
func (t *trial) forbidden(ctx context.Context, heard *hearing, p *plan.Proposal) []string {
	var problems []string
	look := func(pointer, name string) {
		alone, err := json2.Marshal(map[string]any{
			"agent_name": heard.target.Manifest.Name, "agent_version": heard.target.Manifest.Version, "kind": plan.PlanProposal, "confidence": 0,
			"rationale":     map[string]any{"short": "", "signals": []string{}},
			"proposed_plan": map[string]any{"steps": []any{map[string]any{"step_id": "s1", "action": name}}},
		})
		if err != nil {
			return
		}
		err = heard.Agents.Judge(ctx, heard.target, heard.call, heard.input, alone)
		if plugin.CodeOf(err) == plugin.CodePolicyDenied {
			problems = append(problems, fmt.Sprintf("at %s: %s is not among its allowed_actions", pointer, name))
		}
	}
	for i, action := range p.RequiredActions {
		look(fmt.Sprintf("/required_actions/%d/operator", i), action.Operator)
	}
	for i, step := range p.ProposedPlan.Steps {
		look(fmt.Sprintf("/proposed_plan/steps/%d/action", i), step.Action)
	}
	return problems
}

// ungrounded returns the places of signals that are no facts of the input.
func ungrounded(input []byte, p *plan.Proposal) []string {
	var in plan.Request
	if err := json2.Unmarshal(input, &in); err != nil {
		return []string{"its input cannot be read: " + err.Error()}
	}
	var problems []string
	for i, signal := range p.Rationale.Signals {
		if !plan.Grounded(signal, in) {
			problems = append(problems, fmt.Sprintf("at /rationale/signals/%d: %.200q is no fact of what it was given", i, signal))
		}
	}
	return problems
}

// maxFields is how many context fields are left out in turn.
const maxFields = 32

// context checks that the agent is not even asked where a field of the context
// is missing that it declares to need.
func (t *trial) context(ctx context.Context) error {
	fields := t.shown.Manifest.Requires.ContextFields
	if len(fields) == 0 {
		t.tell(needs, Skip, "it declares no requires.context_fields")
		return nil
	}
	for _, field := range fields[:min(len(fields), maxFields)] {
		input, found, err := without(t.input, field)
		if err != nil {
			return err
		}
		if !found {
			t.tell(needs, Fail, "the example has no %s, which it declares under requires.context_fields", field)
			return nil
		}
		r := t.request()
		r.input = input
		a, err := t.host.call(ctx, r)
		if err != nil {
			return err
		}
		if code := plugin.CodeOf(a.err); code != plugin.CodeNeedsContext || a.count(plugin.EntryCallRefused) != 1 {
			t.tell(needs, Fail, "at /context: without %s it ended in %s, and not in needs_context before it ran", field, orSuccess(code))
			return nil
		}
	}
	t.tell(needs, Pass, "")
	return nil
}

func orSuccess(code plugin.Code) string {
	if code == "" {
		return "success"
	}
	return string(code)
}

// without returns an agent's input without one field, in the context and in the
// intent's payload, and whether it was there.
func without(input []byte, field string) ([]byte, bool, error) {
	var in map[string]any
	if err := json2.Unmarshal(input, &in); err != nil {
		return nil, false, err
	}
	intent, _ := in["intent"].(map[string]any)
	context, _ := in["context"].(map[string]any)
	payload, _ := intent["payload"].(map[string]any)
	inContext, inPayload := drop(context, field), drop(payload, field)
	raw, err := json2.Marshal(in)
	return raw, inContext || inPayload, err
}

// drop removes what a dotted path names, however its names are split.
func drop(object map[string]any, path string) bool {
	_, found := object[path]
	delete(object, path)
	for i := range path {
		if inner, ok := object[path[:i]].(map[string]any); ok && path[i] == '.' {
			found = drop(inner, path[i+1:]) || found
		}
	}
	return found
}
