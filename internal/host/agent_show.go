package host

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// An AgentShown is an agent with what it has.
type AgentShown struct {
	Agent
	Plugins       []Assignment    `json:"plugins"` // that it has, each by what counts
	Channels      []ChannelPlace  `json:"channels"`
	LeftOut       []agent.LeftOut `json:"left_out"` // operations that it has and its model is not offered in a conversation with this principal
	Memories      int             `json:"memories"`
	Conversations int             `json:"open_conversations"`
}

// A ChannelPlace is a channel, and where its deliveries go.
type ChannelPlace struct {
	Namespace string         `json:"namespace"`
	Scheme    webhook.Scheme `json:"scheme"`
	Secret    string         `json:"secret"` // its name
	Reply     string         `json:"reply,omitempty"`
	Path      string         `json:"path"`
}

// Get returns an agent, without what it has.
func (r Agents) Get(ctx context.Context, id string) (Agent, error) {
	if err := r.may(ctx, "see", id); err != nil {
		return Agent{}, err
	}
	row, err := r.row(ctx, r.g.Store, id)
	if err != nil {
		return Agent{}, err
	}
	return agentOf(row), nil
}

// Show returns an agent with what it has.
func (r Agents) Show(ctx context.Context, id string) (AgentShown, error) {
	if err := r.may(ctx, "see", id); err != nil {
		return AgentShown{}, err
	}
	row, err := r.row(ctx, r.g.Store, id)
	if err != nil {
		return AgentShown{}, err
	}
	s := AgentShown{Agent: agentOf(row), Plugins: []Assignment{}, Channels: []ChannelPlace{}, LeftOut: []agent.LeftOut{}}
	assigned, err := r.assignments(ctx, id)
	if err != nil {
		return s, err
	}
	for _, name := range slices.Sorted(maps.Keys(assigned)) {
		if one := assigned[name]; one.Enabled {
			s.Plugins = append(s.Plugins, one)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings.Channels)) {
		c := s.Settings.Channels[name]
		s.Channels = append(s.Channels, ChannelPlace{name, c.Scheme, c.Secret, c.Reply, "/api/agents/" + id + "/channels/" + name + "/webhook"})
	}
	_, err = r.offer(ctx, agent.Ask{Call: r.asAgent(id), Plugins: slices.Collect(maps.Keys(enabledOf(assigned))), Most: math.MaxInt, Left: func(l agent.LeftOut) {
		s.LeftOut = append(s.LeftOut, l)
	}})
	if err != nil {
		return s, err
	}
	memories, err := r.engine.Memory(row.Tenant, id).List(ctx, agent.MaxMemories)
	if err != nil {
		return s, err
	}
	open, err := r.g.Store.Conversations(ctx, ConversationFilter{Tenant: row.Tenant, Agent: id, Open: true, Limit: maxConversations})
	s.Memories, s.Conversations = len(memories), len(open)
	return s, err
}

// enabledOf returns the assignments that give something.
func enabledOf(assigned map[string]Assignment) map[string]Assignment {
	given := maps.Clone(assigned)
	maps.DeleteFunc(given, func(_ string, a Assignment) bool { return !a.Enabled })
	return given
}

// asAgent returns the fields common to all calls that an agent makes in a
// conversation with the principal.
func (r Agents) asAgent(id string) plugin.Call {
	return plugin.Call{Tenant: r.g.Tenant, Principal: r.by, Actor: "agent:" + id, Agent: id, Origin: plugin.OriginAgent}
}

// A Memory is something that an agent remembers, as people see it.
type Memory struct {
	Key       string    `json:"key"`
	Content   string    `json:"content"`
	Labels    []string  `json:"labels"` // what it is tainted with, and what recalls it; never nil
	UpdatedAt time.Time `json:"updated_at"`
}

// Memories returns what an agent remembers, the newest first; or, where words are
// looked for, what has most of them.
func (r Agents) Memories(ctx context.Context, id, words string, limit int) ([]Memory, error) {
	if err := r.mayOf(ctx, "see the memory of", id); err != nil {
		return nil, err
	}
	of, limit := r.engine.Memory(r.g.Tenant, id), min(limit, agent.MaxMemories)
	var rows []memoryRow
	var err error
	if words == "" {
		rows, err = of.List(ctx, limit)
	} else {
		rows, err = of.Search(ctx, words, limit)
	}
	all := make([]Memory, len(rows))
	for i, row := range rows {
		all[i] = Memory{row.Key, row.Content, append([]string{}, row.Labels...), row.UpdatedAt}
	}
	return all, err
}

// A Conversation is one with an agent, as it is shown.
type Conversation struct {
	Session   string    `json:"session"`
	Agent     string    `json:"agent"`
	Channel   string    `json:"channel"`
	Room      string    `json:"room,omitempty"` // in which room, thread or issue there
	Peer      string    `json:"peer,omitempty"` // who it is with there
	Open      bool      `json:"open"`
	Turns     int64     `json:"turns"`
	Waiting   bool      `json:"waiting"` // a message has not had its turn yet
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func conversationOf(row *conversationRow) Conversation {
	return Conversation{
		Session: row.SessionID, Agent: row.Agent, Channel: row.Channel, Room: row.Room, Peer: row.Peer, Open: row.Open, Turns: row.Turns,
		Waiting: row.Open && row.Handled < row.Received, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}
}

// Conversations returns the last conversations with an agent, the newest first.
func (r Agents) Conversations(ctx context.Context, id string, limit int) ([]Conversation, error) {
	if err := r.mayOf(ctx, "see the conversations of", id); err != nil {
		return nil, err
	}
	rows, err := r.g.Store.Conversations(ctx, ConversationFilter{Tenant: r.g.Tenant, Agent: id, Limit: limit})
	all := make([]Conversation, len(rows))
	for i := range rows {
		all[i] = conversationOf(&rows[i])
	}
	return all, err
}

// A Spoken is one message of a conversation.
type Spoken struct {
	N       int64          `json:"n"`
	Role    string         `json:"role"` // inbound, user, assistant, tool
	Text    string         `json:"text,omitempty"`
	Sender  string         `json:"sender,omitempty"` // of what came in by a channel
	Uses    []SpokenUse    `json:"uses,omitempty"`
	Results []SpokenResult `json:"results,omitempty"`
	Labels  []string       `json:"labels"`
	At      time.Time      `json:"at"`
}

// A SpokenUse is the wish for a tool.
type SpokenUse struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input,omitzero"`
}

// A SpokenResult is what a tool answered.
type SpokenResult struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitzero"`
}

// Messages returns a conversation with its last messages, the oldest first. The
// session's id may be cut short.
func (r Agents) Messages(ctx context.Context, id, session string, limit int) (Conversation, []Spoken, error) {
	if err := r.mayOf(ctx, "see the conversations of", id); err != nil {
		return Conversation{}, nil, err
	}
	row, err := r.conversing.find(ctx, id, session)
	if err != nil {
		return Conversation{}, nil, err
	}
	var last []messageRow
	for after := int64(0); ; {
		rows, err := r.g.Store.Messages(ctx, row.Tenant, row.SessionID, after, 500)
		if err != nil {
			return Conversation{}, nil, err
		}
		last = append(last, rows...)
		last = last[max(0, len(last)-limit):]
		if len(rows) < 500 {
			break
		}
		after = rows[len(rows)-1].N
	}
	said := make([]Spoken, len(last))
	for i, m := range last {
		if err := json.Unmarshal(m.Body, &said[i]); err != nil {
			return Conversation{}, nil, plugin.Errorf(plugin.CodeInternal, "message %d of %s cannot be read: %w", m.N, row.SessionID, err)
		}
		said[i].N, said[i].Role, said[i].Labels, said[i].At = m.N, m.Role, append([]string{}, m.Labels...), m.At
	}
	return conversationOf(row), said, nil
}

func noConversation(id, session string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "agent %s has no conversation %.80s; 'mortise agents conversations %s' shows those it has", id, session, id)
}

// conversation returns a conversation of an agent that is theirs to go on with, or any
// where they may configure mortise.agents. To others one of another is not there.
func (r Agents) conversation(ctx context.Context, what, id, session string) (*conversationRow, error) {
	row, err := r.conversing.find(ctx, id, session)
	d := r.g.right(AgentsPlugin, r.by)
	switch {
	case d.Verdict == plugin.Allow || plugin.CodeOf(err) == plugin.CodeInternal:
		return row, err
	case err != nil: // one that may be several is of others too
		return nil, noConversation(id, session)
	case row.Channel == agent.Terminal && row.Peer == principal.Name(r.by):
		return row, nil
	}
	return nil, r.g.refuse(ctx, r.by, r.use(what, id), noConversation(id, session), d)
}
