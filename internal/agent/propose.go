package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// Plans make plans of what an operation of kind agent proposes, and carry them out.
type Plans interface {
	Submit(ctx context.Context, s plan.Submission) (*plan.View, error)
	Run(ctx context.Context, tenant, id string) (*plan.View, error)
	Show(ctx context.Context, tenant, id string) (*plan.View, error)
}

// The intents that an operation is asked with which is the brain of an agent.
const (
	IntentMessage = "Conversation.Message" // what was said to it
	IntentOutcome = "Conversation.Outcome" // how something ended that outlived its turn
)

// A request is the input of such an operation, beside what the kernel adds to it
// (kernel contracts, 5.2.2).
type request struct {
	Intent struct {
		Type    string  `json:"type"`
		Payload payload `json:"payload"`
	} `json:"intent"`
	Context     setting        `json:"context"`
	Constraints map[string]any `json:"constraints"`
}

type payload struct {
	Text     string          `json:"text"`
	Role     string          `json:"role"` // of who says it, to the agent
	Channel  string          `json:"channel,omitempty"`
	Room     string          `json:"room,omitempty"`
	Sender   string          `json:"sender,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitzero"`
}

// A setting is what the agent knows. The operation is told those members that its
// manifest names in requires.context_fields, or all where it names none.
type setting struct {
	Agent struct {
		ID     string `json:"id"`
		Prompt string `json:"prompt"`
	} `json:"agent"`
	Conversation struct {
		Session  string `json:"session"`
		Messages []line `json:"messages"` // before this one, the oldest first
	} `json:"conversation"`
	Memory []Remembered `json:"memory"`
}

// propose has an operation decide in place of a model: its suggestions are the
// answer, and what it proposes becomes a plan, with the gates that policy asks for. Its
// steps are calls of the agent: of plugins that it was given, and guarded by its hooks.
func (t *turn) propose(ctx context.Context) error {
	brain := t.settings.Brain
	versions, given, err := t.given(ctx, brain)
	switch {
	case err != nil:
		return err
	case t.agents.Plans == nil || t.agents.Outcome == nil:
		return plugin.Errorf(plugin.CodeUnavailable, "this host makes no plans")
	case !given:
		name, _, _ := strings.Cut(brain, "/")
		return plugin.Errorf(plugin.CodeNotFound, "%s, the brain of agent %s, is of a plugin that it does not have; mortise plugins enable %s --agent %s enables it", brain, t.key.Agent, name, t.key.Agent)
	case versions != "":
		brain += "@" + versions
	}
	input, err := t.asked(ctx)
	if err != nil {
		return err
	}
	view, err := t.agents.Plans.Submit(ctx, plan.Submission{
		Tenant: t.key.Tenant, Principal: t.message.From, Actor: t.call.Actor, Asker: t.call.Asker, Agent: brain, Input: input, Labels: t.answer.Labels,
		Session: t.session, Instance: t.key.Agent, Origin: plugin.OriginAgent, Correlation: t.session,
	})
	if err != nil {
		return err
	}
	t.taint(view.Labels)
	text, err := t.proposed(ctx, view)
	if err != nil {
		return err
	}
	t.answer.Text, t.answer.Steps = text, 1
	return t.keep(ctx, t.session, t.lease, llm.Message{Role: llm.Assistant, Text: text}, view.ProposalCall, t.answer.Labels, func(tx Tx, n int64) error {
		t.said = n
		return t.answered(tx, replyAnswer)
	})
}

// given reports whether the agent has the plugin of an operation, and in which
// versions.
func (t *turn) given(ctx context.Context, operation string) (versions string, given bool, err error) {
	name, _, _ := strings.Cut(operation, "/")
	assigned, err := t.agents.Assignments(ctx, t.key.Tenant, t.key.Agent)
	versions, given = assigned[name]
	return versions, given, err
}

// asked is the input of the operation.
func (t *turn) asked(ctx context.Context) (json.RawMessage, error) {
	messages, labels, err := t.history(ctx, t.session, t.settings.History)
	if err != nil {
		return nil, err
	}
	t.taint(plugin.Labels(labels, t.read()))
	m, r := &t.message, request{Constraints: map[string]any{"max_tokens": t.settings.MaxTokens}}
	r.Intent.Type = IntentMessage
	if m.Late != nil {
		r.Intent.Type = IntentOutcome
	}
	r.Intent.Payload = payload{m.Text, m.Role, m.Channel, m.Room, m.Sender, nil}
	if m.Metadata != nil {
		if r.Intent.Payload.Metadata, err = exactNumbers(m.Metadata); err != nil {
			return nil, err
		}
	}
	r.Context.Agent.ID, r.Context.Agent.Prompt = t.key.Agent, t.row.Prompt
	r.Context.Conversation.Session = t.session
	r.Context.Conversation.Messages = linesOf("", messages[:max(len(messages)-1, 0)])[1:] // the last one is the intent
	r.Context.Memory = RememberedOf(t.known)
	return json.Marshal(r)
}

// proposed returns what people are told of what the operation answered. A plan is
// carried out as far as it goes without a person.
func (t *turn) proposed(ctx context.Context, view *plan.View) (string, error) {
	if view.ID == "" {
		p, err := plan.ParseProposal(view.Answer)
		if err != nil {
			return "", err
		}
		return suggested(p), nil
	}
	said := view.Rationale
	if res, err := t.agents.Outcome(ctx, t.key.Tenant, view.ProposalCall); err == nil {
		if p, err := plan.ParseProposal(res.Data); err == nil {
			said = suggested(p)
		}
	}
	view, err := t.carryOut(ctx, view.ID)
	if err != nil {
		return "", err
	}
	u := t.planned(ctx, view)
	t.answer.Uses = append(t.answer.Uses, u.Use)
	t.taint(u.labels)
	told, err := t.stepsEnded(ctx, t.session, view, nil)
	if err != nil {
		return "", err
	}
	if !plan.Ended(view.State) {
		if err := t.owe(ctx, After{
			Session: t.session, Tool: t.settings.Brain, Call: view.ID, Args: json.RawMessage("{}"), Started: t.agents.Now(), Inbound: t.message.Inbound, Depth: t.message.depth(),
			Plan: true, Steps: told,
		}); err != nil {
			return "", err
		}
	} else if err := t.keep(ctx, t.session, t.lease, llm.Message{Role: llm.User, Text: u.late()}, view.ID, t.answer.Labels, nil); err != nil {
		return "", err
	}
	return strings.TrimSpace(said + "\n" + u.line()), nil
}

// planPoll is how often a plan is looked at that another host carries out.
const planPoll = 250 * time.Millisecond

// carryOut runs a plan until it has ended, waits for a person, or the turn is over.
func (t *turn) carryOut(ctx context.Context, id string) (*plan.View, error) {
	for {
		view, err := t.agents.Plans.Run(ctx, t.key.Tenant, id)
		if err != nil || plan.Ended(view.State) || view.State == plan.Pending || ctx.Err() != nil {
			return view, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(planPoll):
		}
	}
}

// stepsEnded tells the plugins of the steps that have ended and of which they were not
// told, as of any use of a tool. It returns all of which they were.
func (i *Instance) stepsEnded(ctx context.Context, session string, view *plan.View, told []string) ([]string, error) {
	for _, s := range view.Steps {
		if !s.State.Ended() || s.CallID == "" || slices.Contains(told, s.ID) {
			continue
		}
		told = append(told, s.ID)
		res, failed := i.agents.Outcome(ctx, i.key.Tenant, s.CallID)
		u := &Use{Operation: s.Operation, CallID: s.CallID}
		u.told(res, failed)
		if err := i.after(ctx, After{Session: session, Tool: s.Operation, Call: s.CallID, Args: s.Input, Started: view.CreatedAt}, u, res.Data); err != nil {
			return told, err
		}
	}
	return told, nil
}

// A planUse is a plan as what it came to: the text has each step, and its result.
type planUse struct {
	Use
	labels []string
	view   *plan.View
}

// planned reads what a plan came to.
func (i *Instance) planned(ctx context.Context, view *plan.View) planUse {
	u := planUse{Use: Use{ID: uuid.NewString(), Name: "plan", Operation: "plan " + view.ID, CallID: view.ID, Status: plugin.InProgress}, labels: view.Labels, view: view}
	switch view.State {
	case plan.Succeeded:
		u.Status = plugin.Succeeded
	case plan.Pending:
		u.Status = plugin.PendingApproval
	case plan.Unknown:
		u.Status, u.Code = plugin.Unknown, plugin.CodeOutcomeUnknown
	case plan.Failed, plan.Cancelled:
		u.Status, u.Code = plugin.Failed, plugin.CodeCancelled
		if view.Error != nil {
			u.Code = view.Error.Code
		}
	}
	if view.Approval != nil && u.Status == plugin.PendingApproval {
		u.Approval = view.Approval.ID
	}
	var text strings.Builder
	for _, s := range view.Steps {
		fmt.Fprintf(&text, "%s %s: %s", s.ID, s.Operation, s.State)
		if s.State.Ended() && s.CallID != "" {
			step := &Use{}
			res, failed := i.agents.Outcome(ctx, i.key.Tenant, s.CallID)
			step.told(res, failed)
			u.labels = plugin.Labels(u.labels, res.Labels)
			fmt.Fprintf(&text, " %s", step.Text)
		}
		text.WriteString("\n")
	}
	u.Text = strings.TrimSpace(text.String())
	return u
}

// line is what people are told of a plan, without anything of its results.
func (u *planUse) line() string {
	switch {
	case u.Status == plugin.PendingApproval:
		return "It waits until a person approves plan " + u.view.ID + "."
	case u.Status == plugin.InProgress:
		return "It goes on as plan " + u.view.ID + "."
	case u.Code != "":
		return u.Use.line()
	}
	var done []string
	for _, s := range u.view.Steps {
		done = append(done, s.Operation)
	}
	return "Done: " + strings.Join(done, ", ") + "."
}

// suggested is what an answer says to people: its suggestions, or what it produced, or
// why.
func suggested(p *plan.Proposal) string {
	var lines []string
	for _, s := range p.Suggestions {
		lines = append(lines, s.Text)
	}
	if len(lines) == 0 && p.Kind == plan.StepOutput {
		lines = append(lines, outputText(json.RawMessage(p.Output)))
	}
	if len(lines) == 0 {
		lines = append(lines, p.Rationale.Short)
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n"), "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), MaxText)], "")
}

// outputText is a product as text: itself where it is one, its member text, or its
// JSON.
func outputText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var object struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &object) == nil && object.Text != "" {
		return object.Text
	}
	return string(raw)
}
