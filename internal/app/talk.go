package app

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A Talk is a conversation of one person with an agent, at a terminal. Those may
// have one who may configure the agents, and whom policy lets run agent.chat/turn.
// The agent need not be started: this process has an instance of its own.
type Talk struct {
	Conversation
	roster   Roster
	instance *agent.Instance
}

// Talk goes on with a conversation of theirs: the one that is named, else the
// newest that is open, else a new one, as always where fresh is set.
func (r Roster) Talk(ctx context.Context, id, session string, fresh bool) (*Talk, error) {
	if err := r.mayTalk(ctx, id); err != nil {
		return nil, err
	}
	if _, err := r.row(ctx, r.app.Store, id); err != nil {
		return nil, err
	}
	t := &Talk{roster: r}
	var err error
	var row *store.ConversationRow
	if session != "" {
		if row, err = r.conversation(ctx, "go on with a conversation of another with", id, session); err != nil {
			return nil, err
		}
		switch {
		case row.Channel != agent.Terminal || row.Peer != MemberName(r.by):
			return nil, r.app.refuse(ctx, r.by, r.use("go on with a conversation of another with", id), plugin.Errorf(plugin.CodePolicyDenied, "the conversation %s belongs to another principal or channel; 'mortise agents conversations %s %s' shows it", row.SessionID, id, row.SessionID), plugin.Decision{})
		case !row.Open:
			return nil, plugin.Errorf(plugin.CodeDisabled, "the conversation %s has ended; without --session a new one begins", row.SessionID)
		}
	}
	if t.instance, err = r.app.Agents.Instance(ctx, r.app.Config.Tenant, id); err != nil {
		return nil, err
	}
	if row == nil && !fresh {
		if row, err = t.instance.Find(ctx, r.source()); err != nil {
			return nil, err
		}
	}
	if row == nil {
		return t, t.Begin(ctx)
	}
	t.Conversation = conversationOf(row)
	return t, nil
}

func (r Roster) source() agent.Source {
	return agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: MemberName(r.by)}
}

// Begin begins another conversation. The one before stays open.
func (t *Talk) Begin(ctx context.Context) error {
	row, err := t.instance.Open(ctx, t.roster.source())
	if err == nil {
		t.Conversation = conversationOf(row)
	}
	return err
}

// Turn takes one message to one answer, with the rights of the principal in the
// conversation.
func (t *Talk) Turn(ctx context.Context, text string, to agent.Audience) (agent.Answer, error) {
	by, role := t.roster.by, "user"
	if MemberName(by) == t.roster.app.Config.Principal {
		role = "owner"
	}
	return t.instance.Turn(ctx, t.Session, agent.Message{Text: text, From: by, Asker: OSUser(), Role: role}, to)
}

// Tools returns all operations that the agent has and the principal may see. In
// a turn the model is offered the few of them that fit.
func (t *Talk) Tools(ctx context.Context) ([]agent.Tool, error) {
	app := t.roster.app
	assigned, err := app.Agents.Assignments(ctx, app.Config.Tenant, t.Agent)
	if err != nil {
		return nil, err
	}
	call := plugin.Call{Tenant: app.Config.Tenant, Principal: t.roster.by, Actor: "agent:" + t.Agent, Agent: t.Agent, Origin: plugin.OriginAgent, Session: t.Session}
	return toolset{app}.Offer(ctx, agent.Ask{Call: call, Plugins: slices.Collect(maps.Keys(assigned)), Most: math.MaxInt})
}

// mayTalk refuses a principal that may not talk to an agent, and records the
// refusal.
func (r Roster) mayTalk(ctx context.Context, id string) error {
	if r.app.Policy.May(policy.Configure, hostTarget(AgentsPlugin), r.app.call(r.by)).Verdict == plugin.Allow {
		return nil
	}
	t, err := r.app.Registry.Resolve(ctx, turnOperation)
	if err != nil {
		return err
	}
	call := r.app.call(r.by)
	if call.Input, err = json.Marshal(map[string]string{"agent": id}); err != nil {
		return err
	}
	return r.app.require(ctx, r.by, r.use("talk to", id), r.app.Policy.Decide(t, call))
}
