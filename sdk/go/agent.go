package mortise

import (
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Agent adds an operation that decides: it gets an intent and what it may know
// and propose, and answers with a [Proposal]. Nothing in that happens by itself.
// What it may propose is declared by [AllowedActions], what it needs to know by
// [ContextFields], what it produces itself by [Produces].
func Agent(p *Plugin, name, description string, fn func(*Call, AgentInput) (Proposal, error), options ...Option) {
	p.add(name, &operation{
		described: describedOperation{Kind: "agent", Description: description, Input: agentSchema()},
		input:     reflect.TypeFor[AgentInput](),
		run: func(c *Call, input jsontext.Value) (any, error) {
			var in AgentInput
			if err := json.Unmarshal(input, &in); err != nil { // what a later host adds is passed over
				return nil, &Error{code: "invalid_input", Message: err.Error()}
			}
			return fn(c, in)
		},
	}, options)
}

// AllowedActions declares the operations that an agent may propose, such as
// "Email.GenerateDraft@1.x".
func AllowedActions(operations ...string) Option {
	return func(o *operation) { o.described.AllowedActions = append(o.described.AllowedActions, operations...) }
}

// ContextFields declares what an agent needs of its context, such as
// "student.profile". A call without them never reaches it, and it is told
// nothing else.
func ContextFields(names ...string) Option {
	return func(o *operation) { o.described.ContextFields = append(o.described.ContextFields, names...) }
}

// Produces declares the type of an agent's StepOutput.
func Produces[T any]() Option {
	return func(o *operation) { o.described.Output = outputSchema(reflect.TypeFor[T]()) }
}

// NeedsContext is the failure of an agent that was not told enough.
func NeedsContext(fields ...string) *Error {
	return &Error{code: "needs_context", Message: "the context lacks what the agent needs", Details: map[string][]string{"missing": fields}}
}

// AgentInput is all that an agent learns (kernel contracts, 5.2.2).
type AgentInput struct {
	Intent         Intent         `json:"intent"`
	Context        jsontext.Value `json:"context"` // an object
	PolicySnapshot PolicySnapshot `json:"policy_snapshot"`
	ToolRegistry   []Proposable   `json:"tool_registry"`
	Constraints    jsontext.Value `json:"constraints"` // an object
	Runtime        Runtime        `json:"runtime"`
}

// An Intent is what a user wants, such as Funding.Outreach.Email.Generate.
type Intent struct {
	Type    string         `json:"type"`
	Payload jsontext.Value `json:"payload,omitzero"` // an object
}

// A PolicySnapshot is what policy said of what the agent may propose.
type PolicySnapshot struct {
	Version    string            `json:"version"`
	Operations map[string]string `json:"operations"` // by plugin/operation: allow, allow_with_approval or deny
}

// A Proposable is an operation that the agent may propose.
type Proposable struct {
	Name        string         `json:"name"` // as it is proposed
	Operation   string         `json:"operation"`
	Version     string         `json:"version"`
	Kind        string         `json:"kind"`
	Description string         `json:"description"`
	Effects     []string       `json:"effects"`
	PolicyTags  []string       `json:"policy_tags"`
	InputSchema jsontext.Value `json:"input_schema"`
	Gate        string         `json:"gate"` // human_apply where a person will be asked
}

// A Runtime is what the agent may use up.
type Runtime struct {
	DeadlineMS    int64 `json:"deadline_ms"`
	MaxActions    int   `json:"max_actions"`
	MaxInputBytes int   `json:"max_input_bytes"`
}

// What a Proposal may be.
const (
	PlanProposal        = "plan_proposal"
	StepOutput          = "step_output"
	NextStepSuggestions = "next_step_suggestions"
)

// The gates of a step.
const (
	GateNone       = "none"
	GateHumanApply = "human_apply" // a person agrees before it runs
)

// A Proposal is an agent's answer.
type Proposal struct {
	AgentName            string           `json:"agent_name"`
	AgentVersion         string           `json:"agent_version"`
	Kind                 string           `json:"kind"`
	Confidence           float64          `json:"confidence"` // 0 to 1
	Rationale            Rationale        `json:"rationale"`
	RequiredActions      []RequiredAction `json:"required_actions,omitempty"`
	ProposedPlan         *ProposedPlan    `json:"proposed_plan,omitzero"` // with plan_proposal
	Suggestions          []Suggestion     `json:"suggestions,omitempty"`  // with next_step_suggestions
	StepOutput           any              `json:"step_output,omitzero"`   // with step_output
	RandomnessDisclosure any              `json:"randomness_disclosure,omitzero"`
}

// A Rationale is why: signals are facts of the input, such as
// "intent_type:Support.Ticket.Resolve" and "context:student.profile".
type Rationale struct {
	Short   string   `json:"short"`
	Signals []string `json:"signals"`
}

// A RequiredAction is an operation with its input.
type RequiredAction struct {
	Operator        string   `json:"operator"`
	Payload         any      `json:"payload,omitzero"`
	PolicyTags      []string `json:"policy_tags,omitempty"`
	IdempotencyHint string   `json:"idempotency_hint,omitempty"`
}

// A ProposedPlan is what is to be done, in order.
type ProposedPlan struct {
	Steps []ProposedStep `json:"steps"`
}

// A ProposedStep is one of it.
type ProposedStep struct {
	ID      string    `json:"step_id"`
	Action  string    `json:"action"`
	Gate    string    `json:"gate,omitempty"`   // none where it is empty
	Payload any       `json:"payload,omitzero"` // in place of the required action's
	Needs   *[]string `json:"needs,omitzero"`   // steps that must have succeeded; nil means the step before
}

// A Suggestion is something for a person.
type Suggestion struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// agentSchema is what an agent's input has to be. Who calls one gives intent,
// context and constraints; the host adds the rest.
func agentSchema() map[string]any {
	object := func() map[string]any { return map[string]any{"type": "object"} }
	intent := object()
	intent["properties"] = map[string]any{"type": map[string]any{"type": "string"}, "payload": object()}
	intent["required"] = []string{"type"}
	input := object()
	input["$schema"] = draft
	input["properties"] = map[string]any{"intent": intent, "context": object(), "constraints": object()}
	input["required"] = []string{"intent"}
	return input
}
