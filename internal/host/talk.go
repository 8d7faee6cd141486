package host

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// A Talk is a conversation of one person with an agent, at a terminal. Those may
// have one that may configure the agents, and principals that policy lets run agent.chat/turn.
// The agent need not be started: this process has an instance of its own.
type Talk struct {
	Conversation
	of       Agents
	instance *agent.Instance
}

// Talk goes on with a conversation of theirs: the one that is named, else the
// newest that is open, else a new one, as always where fresh is set.
func (r Agents) Talk(ctx context.Context, id, session string, fresh bool) (*Talk, error) {
	if err := r.mayTalk(ctx, id); err != nil {
		return nil, err
	}
	if err := r.g.covered(ctx, r.caller, ScopeRun, "talk to", agent.TurnOperation, agent.TurnOperation); err != nil {
		return nil, err
	}
	if _, err := r.row(ctx, r.g.Store, id); err != nil {
		return nil, err
	}
	t := &Talk{of: r}
	var err error
	var row *conversationRow
	if session != "" {
		if row, err = r.conversation(ctx, "go on with a conversation of another with", id, session); err != nil {
			return nil, err
		}
		switch {
		case row.Channel != agent.Terminal || row.Peer != principal.Name(r.by):
			return nil, r.g.refuse(ctx, r.by, r.use("go on with a conversation of another with", id), plugin.Errorf(plugin.CodePolicyDenied, "the conversation %s belongs to another principal or channel; 'mortise agents conversations %s %s' shows it", row.SessionID, id, row.SessionID), plugin.Decision{})
		case !row.Open:
			return nil, plugin.Errorf(plugin.CodeDisabled, "the conversation %s has ended; without --session a new one begins", row.SessionID)
		}
	}
	if t.instance, err = r.engine.Instance(ctx, r.g.Tenant, id); err != nil {
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

func (r Agents) source() agent.Source {
	return agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: principal.Name(r.by)}
}

// Begin begins another conversation. The one before stays open.
func (t *Talk) Begin(ctx context.Context) error {
	row, err := t.instance.Open(ctx, t.of.source())
	if err == nil {
		t.Conversation = conversationOf(row)
	}
	return err
}

// Turn takes one message to one answer, with the rights of the principal in the
// conversation.
func (t *Talk) Turn(ctx context.Context, text string, to agent.Audience) (agent.Answer, error) {
	by, role := t.of.by, "user"
	if principal.Name(by) == t.of.g.Owner {
		role = "owner"
	}
	return t.instance.Turn(ctx, t.Session, agent.Message{Text: text, From: by, Asker: t.of.asker(), Role: role}, to)
}

// Tools returns all operations that the agent has and the principal may see. In
// a turn the model is offered the few of them that fit.
func (t *Talk) Tools(ctx context.Context) ([]agent.Tool, error) {
	assigned, err := t.of.engine.Assignments(ctx, t.of.g.Tenant, t.Agent)
	if err != nil {
		return nil, err
	}
	call := plugin.Call{Tenant: t.of.g.Tenant, Principal: t.of.by, Actor: "agent:" + t.Agent, Agent: t.Agent, Origin: plugin.OriginAgent, Session: t.Session}
	return t.of.offer(ctx, agent.Ask{Call: call, Plugins: slices.Collect(maps.Keys(assigned)), Most: math.MaxInt})
}

// mayTalk refuses a principal that may not talk to an agent, and records the
// refusal.
func (r Agents) mayTalk(ctx context.Context, id string) error {
	if r.g.right(AgentsPlugin, r.by).Verdict == plugin.Allow {
		return nil
	}
	t, err := r.registry.Resolve(ctx, agent.TurnOperation)
	if err != nil {
		return err
	}
	call := r.g.call(r.by)
	if call.Input, err = json.Marshal(map[string]string{"agent": id}); err != nil {
		return err
	}
	return r.g.require(ctx, r.by, r.use("talk to", id), r.g.Policy.Decide(t, call))
}

// End ends a conversation with an agent: the one that is named, by its id or a
// prefix of it, else the principal's newest open conversation at the terminal.
// A principal that may configure mortise.agents may end any; others, only their
// own.
func (r Agents) End(ctx context.Context, id, session string) (Conversation, error) {
	var row *conversationRow
	var err error
	if session == "" {
		if err := r.mayTalk(ctx, id); err != nil {
			return Conversation{}, err
		}
		source := r.source()
		rows, err := r.g.Store.Conversations(ctx, ConversationFilter{
			Tenant: r.g.Tenant, Agent: id, Channel: source.Channel, Peer: source.Peer, Open: true, Limit: 1,
		})
		if err != nil {
			return Conversation{}, err
		}
		if len(rows) == 0 {
			return Conversation{}, plugin.Errorf(plugin.CodeNotFound, "you have no open conversation with agent %.80s; 'mortise agents conversations %s' shows those it has", id, id)
		}
		row = &rows[0]
	} else {
		if err := r.mayTalk(ctx, id); err != nil {
			return Conversation{}, err
		}
		if row, err = r.conversation(ctx, "end conversations of", id, session); err != nil {
			return Conversation{}, err
		}
	}
	if !row.Open {
		return conversationOf(row), plugin.Errorf(plugin.CodeDisabled, "the conversation %s has ended already", row.SessionID)
	}
	if err := r.conversing.end(ctx, row); err != nil {
		return conversationOf(row), err
	}
	if row, err = r.g.Store.Conversation(ctx, row.Tenant, row.SessionID); err != nil || row == nil {
		return Conversation{}, err
	}
	return conversationOf(row), nil
}
