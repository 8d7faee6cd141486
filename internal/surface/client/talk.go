package client

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// A Talk is a conversation with an agent, see [host.Talk].
type Talk interface {
	// With returns the conversation as it was when it was begun or gone on with.
	With() host.Conversation
	// Begin begins another conversation. The one before stays open.
	Begin(ctx context.Context) error
	Turn(ctx context.Context, text string, to host.Audience) (host.TurnAnswer, error)
	Tools(ctx context.Context) ([]host.AgentTool, error)
}

// embeddedTalk is one in this process.
type embeddedTalk struct{ *host.Talk }

// With implements [Talk].
func (t embeddedTalk) With() host.Conversation { return t.Conversation }

// embeddedAgents are the agents of a host in this process.
type embeddedAgents struct{ host.Agents }

// Talk implements [Agents].
func (a embeddedAgents) Talk(ctx context.Context, id, session string, fresh bool) (Talk, error) {
	t, err := a.Agents.Talk(ctx, id, session, fresh)
	if err != nil {
		return nil, err
	}
	return embeddedTalk{t}, nil
}

// remoteTalk is one with an agent of a remote host.
type remoteTalk struct {
	agents
	with host.Conversation
}

// Talk implements [Agents].
func (a agents) Talk(ctx context.Context, id, session string, fresh bool) (Talk, error) {
	t := &remoteTalk{agents: a}
	t.with.Agent = id
	return t, t.open(ctx, rest.ConversationSpec{Conversation: session, Fresh: fresh})
}

func (t *remoteTalk) open(ctx context.Context, spec rest.ConversationSpec) error {
	var c rest.Conversation
	if err := t.post(ctx, spec, &c, "agents", t.with.Agent, "conversations"); err != nil {
		return err
	}
	t.with = conversationOf(c)
	return nil
}

// With implements [Talk].
func (t *remoteTalk) With() host.Conversation { return t.with }

// Begin implements [Talk].
func (t *remoteTalk) Begin(ctx context.Context) error {
	return t.open(ctx, rest.ConversationSpec{Fresh: true})
}

// Tools implements [Talk].
func (t *remoteTalk) Tools(ctx context.Context) ([]host.AgentTool, error) {
	var all rest.ConversationTools
	err := t.post(ctx, nil, &all, "agents", t.with.Agent, "conversations", t.with.Session+":tools")
	return each(all.Tools, func(o rest.ConversationTool) host.AgentTool {
		return host.AgentTool{Name: o.Name, Operation: o.Operation, Description: o.Description}
	}), err
}

// Turn implements [Talk]. The host waits for an approval that the caller may give, while they
// are asked here; who has no one to ask does not ask for that.
func (t *remoteTalk) Turn(ctx context.Context, text string, to host.Audience) (a host.TurnAnswer, err error) {
	var done rest.Turn
	err = t.stream(ctx, asking{
		path: at("agents", t.with.Agent, "conversations:talk"),
		body: rest.MessageSpec{Text: text, Conversation: t.with.Session, Ask: to.Ask != nil && t.who.Manner == OverSocket},
	}, func(event string, data jsontext.Value) error { return heard(event, data, to) }, &done)
	a.Text, a.Labels, a.Steps, a.Cut = done.Text, done.Labels, done.Steps, done.Cut
	return a, err
}

// heard passes an event of a turn on. Without anyone to ask, a question that stays open is told.
func heard(event string, data jsontext.Value, to host.Audience) error {
	if event == "text" {
		var said rest.TurnText
		err := json.Unmarshal(data, &said)
		if err == nil && to.Say != nil {
			to.Say(said.Text)
		}
		return err
	}
	var tool rest.TurnTool
	if err := json.Unmarshal(data, &tool); err != nil {
		return err
	}
	use := host.ToolUse{
		ID: tool.ID, Name: tool.Name, Operation: tool.Operation, CallID: tool.CallID, Input: tool.Input, Status: tool.Status, Approval: tool.Approval,
		Code: tool.Code, Text: tool.Text, Took: time.Duration(tool.Took) * time.Millisecond,
	}
	switch {
	case event == "tool_begins" && to.Using != nil:
		to.Using(use)
	case event == "tool" && to.Used != nil:
		to.Used(use)
	case event == "approval" && to.Ask != nil:
		_, err := to.Ask(use)
		return err
	case event == "approval" && to.Waits != nil:
		to.Waits(use)
	}
	return nil
}
