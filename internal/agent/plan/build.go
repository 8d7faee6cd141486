package plan

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/core/placeholder"
	"github.com/mortise-dev/mortise/plugin"
)

// A step is one step of a proposal that is being looked at.
type step struct {
	id     string
	target *plugin.Target
	input  jsontext.Value // canonical: literals and references
	refs   []reference
	needs  []string
	gate   string
	why    string   // why it has a gate
	labels []string // that its call will carry, as far as that can be known
}

// A builder makes steps of an agent's proposal, or says why not. Nothing has
// run when it is done.
type builder struct {
	engine    *Engine
	agent     *plugin.Target
	submitted *Submission
	proposal  *Proposal
	labels    []string // of everything in the plan

	steps []*step
	byID  map[string]*step
}

// build returns the steps. The error has a code, and names the step.
func (b *builder) build(ctx context.Context) ([]*step, error) {
	proposed := b.proposal.ProposedPlan.Steps
	switch {
	case len(proposed) == 0:
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "%s proposes a plan without steps", b.agent.Name())
	case len(proposed) > MaxSteps:
		return nil, plugin.Errorf(plugin.CodeLimitExceeded, "%s proposes %d steps; a plan has at most %d", b.agent.Name(), len(proposed), MaxSteps)
	}
	b.byID = map[string]*step{}
	for _, p := range proposed {
		if b.byID[p.ID] != nil {
			return nil, inStep(p.ID, plugin.Errorf(plugin.CodeInvalidInput, "two steps have this id"))
		}
		s := &step{id: p.ID, gate: GateNone}
		if p.Gate == GateHumanApply {
			s.gate, s.why = GateHumanApply, "the agent asks for it"
		}
		b.steps = append(b.steps, s)
		b.byID[p.ID] = s
	}
	for _, stage := range []func(context.Context, int, *ProposedStep) error{b.resolve, b.order} {
		for i := range proposed {
			if err := stage(ctx, i, &proposed[i]); err != nil {
				return nil, inStep(proposed[i].ID, err)
			}
		}
	}
	if err := b.acyclic(); err != nil {
		return nil, err
	}
	if err := b.payloads(ctx, proposed); err != nil {
		return nil, err
	}
	for _, stage := range []func(*step) error{b.refer, func(s *step) error { return b.checkIn(ctx, s) }, b.decide} {
		for _, s := range b.steps {
			if err := stage(s); err != nil {
				return nil, inStep(s.id, err)
			}
		}
	}
	return b.steps, b.approvers(ctx)
}

// inStep says which step an error is about.
func inStep(id string, err error) error { return named("step "+id, err) }

// resolve finds the operation of a step, which must be one that does something
// or computes.
func (b *builder) resolve(ctx context.Context, i int, p *ProposedStep) error {
	t, err := b.target(ctx, p.Action)
	if err != nil {
		return err
	}
	if kind := t.Operation.Kind; kind != plugin.Operator && kind != plugin.Tool {
		return plugin.Errorf(plugin.CodePolicyDenied, "%s is an %s; the steps of a plan are operators and tools", t.Name(), kind)
	}
	for _, scope := range t.Operation.Permissions {
		held := b.submitted.Principal.Scopes
		if !slices.Contains(held, scope) && !slices.Contains(held, "*") {
			return plugin.Errorf(plugin.CodeScopeDenied, "%s asks for the permission %s, which %s does not have", t.Name(), scope, b.submitted.Principal.Member())
		}
	}
	b.steps[i].target = t
	return nil
}

// target resolves what the agent calls an operation.
func (b *builder) target(ctx context.Context, asked string) (*plugin.Target, error) {
	ref, ok := allowed(b.agent.Operation.AllowedActions, asked)
	if !ok {
		return nil, refuseAction(b.agent, asked)
	}
	who := &plugin.Call{Tenant: b.submitted.Tenant, Principal: b.submitted.Principal, Origin: plugin.OriginPlan}
	return b.engine.Registry.ResolveFor(ctx, ref, b.engine.sees(who))
}

// order finds what a step waits for: where the agent does not say, for the step
// before it.
func (b *builder) order(_ context.Context, i int, p *ProposedStep) error {
	s := b.steps[i]
	switch {
	case p.Needs != nil:
		for _, need := range *p.Needs {
			if b.byID[need] == nil {
				return plugin.Errorf(plugin.CodeInvalidInput, "it needs %.100q, and there is no such step", need)
			}
			if !slices.Contains(s.needs, need) {
				s.needs = append(s.needs, need)
			}
		}
	case i > 0:
		s.needs = []string{b.steps[i-1].id}
	}
	return nil
}

// acyclic refuses steps that wait for each other.
func (b *builder) acyclic() error {
	order := make([]node, len(b.steps))
	for i, s := range b.steps {
		order[i] = node{s.id, s.needs}
	}
	if _, stuck := sorted(order); len(stuck) > 0 {
		return inStep(stuck[0], plugin.Errorf(plugin.CodeInvalidInput, "the steps %s wait for each other", list(stuck)))
	}
	return nil
}

// payloads gives each step its input: its own, or that of the required action
// of its operation, the first for the first step of it, and so on.
func (b *builder) payloads(ctx context.Context, proposed []ProposedStep) error {
	actions := map[string][]jsontext.Value{} // by plugin/operation
	for _, action := range b.proposal.RequiredActions {
		t, err := b.target(ctx, action.Operator)
		if err != nil {
			return named("required action "+action.Operator, err)
		}
		actions[t.Name()] = append(actions[t.Name()], action.Payload)
	}
	for i, s := range b.steps {
		name := s.target.Name()
		payload := proposed[i].Payload
		if left := actions[name]; len(left) > 0 {
			if len(payload) == 0 {
				payload = left[0]
			}
			actions[name] = left[1:]
		}
		if len(payload) == 0 {
			payload = jsontext.Value("{}")
		}
		form, err := canon.Form(payload)
		if err != nil {
			return inStep(s.id, plugin.Errorf(plugin.CodeInvalidInput, "its payload is not one strict JSON value: %w", err))
		}
		if at, found := canon.BigNumber(form); found {
			return inStep(s.id, plugin.Errorf(plugin.CodeInvalidInput, "its payload at %s: a number above 2^53 does not mean the same to every program; send it as text", at))
		}
		s.input = form
	}
	return nil
}

// refer finds a step's references, which must be to steps that come before it
// whatever happens.
func (b *builder) refer(s *step) (err error) {
	if s.refs, err = references(s.input); err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	}
	before := b.ancestors(s)
	for _, ref := range s.refs {
		switch {
		case b.byID[ref.step] == nil:
			return plugin.Errorf(plugin.CodeInvalidInput, "it refers to %.100q, and there is no such step", ref.step)
		case !before[ref.step]:
			return plugin.Errorf(plugin.CodeInvalidInput, "it refers to %s and does not need it, so that may run later; add it to needs", ref.step)
		}
	}
	return nil
}

// ancestors are the steps that have succeeded when s runs.
func (b *builder) ancestors(s *step) map[string]bool {
	found := map[string]bool{}
	var walk func(*step)
	walk = func(s *step) {
		for _, need := range s.needs {
			if !found[need] {
				found[need] = true
				walk(b.byID[need])
			}
		}
	}
	walk(s)
	return found
}

// checkIn holds a payload against the operation's schema. One with references
// is held against it when they are filled in, by the kernel.
func (b *builder) checkIn(ctx context.Context, s *step) error {
	if len(s.refs) > 0 || s.target.Operation.Advisory { // the plugin's own code decides
		return nil
	}
	gaps, err := placeholder.Gaps(s.target.Operation, json.RawMessage(s.input))
	if err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: input: %w", s.target.Name(), err)
	}
	if len(gaps) > 0 { // the host fills them in when the step runs, and holds it against the schema then
		return nil
	}
	if err := s.target.Input.Check(ctx, s.input); err != nil {
		return plugin.Errorf(plugin.CodeInvalidInput, "%s: input %w", s.target.Name(), err)
	}
	return nil
}

// decide asks policy about a step, as far as its arguments are known. The kernel
// asks again when they are.
func (b *builder) decide(s *step) error {
	known, err := Literals(s.input)
	if err != nil {
		return err
	}
	s.labels = b.tainted(s, map[string]bool{})
	d := b.engine.Policy.Decide(s.target, &plugin.Call{
		Tenant: b.submitted.Tenant, Principal: b.submitted.Principal, Actor: b.submitted.Actor, Origin: plugin.OriginPlan,
		Session: b.submitted.Session, Labels: s.labels, Operation: s.target.Name(), Input: json.RawMessage(known),
	})
	reason := strings.Join(d.Reasons, "; ")
	switch d.Verdict {
	case plugin.Allow:
	case plugin.AllowWithApproval:
		s.gate, s.why = GateHumanApply, reason
	default:
		return plugin.Errorf(plugin.CodePolicyDenied, "%s", reason)
	}
	return nil
}

// tainted returns the labels of what a step will be given: those of the plan,
// and those that the operations it refers to declare.
func (b *builder) tainted(s *step, seen map[string]bool) []string {
	labels := slices.Clone(b.labels)
	for _, ref := range s.refs {
		if from := b.byID[ref.step]; !seen[ref.step] {
			seen[ref.step] = true
			labels = union(labels, from.target.Operation.Labels, b.tainted(from, seen))
		}
	}
	return labels
}

// approvers refuses a plan with a gate that no principal may approve: it would wait
// until it expires.
func (b *builder) approvers(ctx context.Context) error {
	var gated []*plugin.Target
	var ids []string
	for _, s := range b.steps {
		if s.gate != GateNone {
			gated = append(gated, s.target)
			ids = append(ids, s.id)
		}
	}
	if len(gated) == 0 || b.engine.Approvers == nil || b.engine.Approvers.Anyone(ctx, gated, b.submitted.Principal) {
		return nil
	}
	return inStep(list(ids), plugin.Errorf(plugin.CodeApprovalDenied, "a person other than %s has to agree, and no other may; name approvers with approvals.by in mortise.yaml, or with a policy on approve", b.submitted.Principal.Member()))
}

// union returns the labels of all lists, each once, in order.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
