package plan

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	json2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// What an agent may answer.
const (
	PlanProposal = "plan_proposal"
	StepOutput   = "step_output"
	NextSteps    = "next_step_suggestions"
)

// The gates of a step.
const (
	GateNone       = "none"
	GateHumanApply = "human_apply" // a person agrees before it runs
)

// A Proposal is an agent's answer (kernel contracts, 5.2.2): what it would have
// done, never what is done.
type Proposal struct {
	AgentName    string `json:"agent_name"`
	AgentVersion string `json:"agent_version"`
	Kind         string `json:"kind"`

	Confidence float64 `json:"confidence"`
	Rationale  struct {
		Short   string   `json:"short"`
		Signals []string `json:"signals"`
	} `json:"rationale"`

	RequiredActions []Action `json:"required_actions"`
	ProposedPlan    struct {
		Steps []ProposedStep `json:"steps"`
	} `json:"proposed_plan"`

	Suggestions []Suggestion   `json:"suggestions"`
	Output      jsontext.Value `json:"step_output"`
	Randomness  jsontext.Value `json:"randomness_disclosure"`
}

// An Action is an operation that an agent asks for, with its input.
type Action struct {
	Operator        string         `json:"operator"`
	Payload         jsontext.Value `json:"payload"`
	PolicyTags      []string       `json:"policy_tags"`
	IdempotencyHint string         `json:"idempotency_hint"`
}

// A ProposedStep is a step as an agent proposes it.
type ProposedStep struct {
	ID      string         `json:"step_id"`
	Action  string         `json:"action"`
	Gate    string         `json:"gate"`
	Payload jsontext.Value `json:"payload"` // absent: that of the required action
	Needs   *[]string      `json:"needs"`   // absent: the step before
}

// A Suggestion is something an agent says to a person.
type Suggestion struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// answerSchema is the one schema of agents' answers.
var answerSchema = sync.OnceValues(func() (*schema.Schema, error) {
	return schema.Compile(protocol.AgentOutput)
})

// ParseProposal reads an agent's answer. The error is invalid_output, and names
// the place by JSON pointer.
func ParseProposal(output json.RawMessage) (*Proposal, error) {
	s, err := answerSchema()
	if err != nil {
		return nil, err
	}
	if err := s.Check(context.Background(), output); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "the agent's answer %w", err)
	}
	p := &Proposal{}
	if err := json2.Unmarshal(output, p); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidOutput, "the agent's answer: %w", err)
	}
	return p, nil
}

// Judge returns nil if an agent's answer to input may count: it fits the schema,
// says truly who gives it, proposes nothing that the agent may not propose, and
// gives no reason that is not a fact of the input (see [Grounded]). What it
// produced itself must fit the operation's own output schema.
func (a *Agents) Judge(ctx context.Context, t *plugin.Target, _ *plugin.Call, input, output json.RawMessage) error {
	p, err := ParseProposal(output)
	if err != nil {
		return named(t.Name(), err)
	}
	if err := truthful(t, p); err != nil {
		return err
	}
	for _, name := range p.actions() {
		if _, ok := allowed(t.Operation.AllowedActions, name); !ok {
			return refuseAction(t, name)
		}
	}
	var in Request
	if err := json2.Unmarshal(input, &in); err != nil {
		return err
	}
	for _, signal := range p.Rationale.Signals {
		if !Grounded(signal, in) {
			return plugin.Errorf(plugin.CodeInvalidOutput, "%s gives the signal %.200q, which is no fact of what it was given", t.Name(), signal)
		}
	}
	if p.Kind == StepOutput {
		own := p.Output
		if len(own) == 0 {
			own = jsontext.Value("null")
		}
		if err := t.Output.Check(ctx, own); err != nil {
			return plugin.Errorf(plugin.CodeInvalidOutput, "%s: step_output %w", t.Name(), err)
		}
	}
	return nil
}

// actions returns the names of all operations that are proposed.
func (p *Proposal) actions() []string {
	var names []string
	for _, action := range p.RequiredActions {
		names = append(names, action.Operator)
	}
	for _, step := range p.ProposedPlan.Steps {
		names = append(names, step.Action)
	}
	return names
}

// truthful refuses an answer that is given in another's name. Names are the
// plugin's, its operation's or what it is called on screen; 1.0 is short for
// every version that begins so.
func truthful(t *plugin.Target, p *Proposal) error {
	names := []string{t.Name(), t.Manifest.Name, t.Operation.Name, t.Manifest.DisplayName}
	names = append(names, t.Manifest.Name[strings.LastIndexByte(t.Manifest.Name, '.')+1:])
	if p.AgentName != "" && !slices.ContainsFunc(names, func(own string) bool { return strings.EqualFold(own, p.AgentName) }) {
		return plugin.Errorf(plugin.CodeInvalidOutput, "%s gives its agent_name as %.200q", t.Name(), p.AgentName)
	}
	if v := p.AgentVersion; v != "" && v != t.Manifest.Version && !strings.HasPrefix(t.Manifest.Version, v+".") {
		return plugin.Errorf(plugin.CodeInvalidOutput, "%s gives its agent_version as %.100q, and is %s", t.Name(), v, t.Manifest.Version)
	}
	return nil
}

// named puts what an error is about in front of its message.
func named(what string, err error) error {
	e := *plugin.AsError(err)
	if e.Code != plugin.CodeInternal {
		e.Message = what + ": " + e.Message
	}
	return &e
}
