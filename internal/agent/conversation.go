package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise/internal/event"
	"github.com/mortise-dev/mortise/internal/llm"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// Terminal is the channel of whoever talks to an agent at a terminal.
const Terminal = "terminal"

// Called is the channel of whoever calls an agent like an operation.
const Called = "call"

// Scheduled is the channel of what nobody said, but a schedule.
const Scheduled = "schedule"

// A Source is where a conversation takes place, and with whom.
type Source struct {
	Channel  string // a namespace; Terminal at a terminal, "schedule" for what nobody said
	Kind     string // cli, api, channel, schedule
	Platform string // slack, telegram; "" for none
	Peer     string // who it is with, as the channel names them
}

// Open begins a conversation, and tells the agent's plugins.
func (i *Instance) Open(ctx context.Context, s Source) (*store.ConversationRow, error) {
	id, err := i.agents.Options.Open(ctx, i.key.Tenant, i.key.Agent+" with "+orNobody(s.Peer))
	if err != nil {
		return nil, err
	}
	now := i.agents.Now().UTC().Truncate(time.Microsecond)
	row := store.ConversationRow{
		Tenant: i.key.Tenant, SessionID: id, Agent: i.key.Agent, Channel: s.Channel, Peer: s.Peer, CreatedAt: now, UpdatedAt: now, Open: true,
	}
	if err := i.agents.Store.Write(ctx, func(tx store.Tx) error { return tx.InsertConversation(row) }); err != nil {
		return nil, err
	}
	f := fields{"sessionId": id, "sessionType": kindOf(&row), "sourceKind": s.Kind, "sourcePlatform": s.Platform}
	if s.Peer != "" {
		f["participants"] = []string{s.Peer}
	}
	return &row, i.emit(ctx, event.SessionOpened, f)
}

// kindOf returns what sort of conversation it is.
func kindOf(c *store.ConversationRow) string {
	if c.Channel == Scheduled {
		return "scheduled"
	}
	return "direct"
}

func orNobody(peer string) string {
	if peer == "" {
		return "nobody"
	}
	return peer
}

// Find returns the open conversation of a source, nil if there is none.
func (i *Instance) Find(ctx context.Context, s Source) (*store.ConversationRow, error) {
	rows, err := i.agents.Store.Conversations(ctx, store.ConversationFilter{
		Tenant: i.key.Tenant, Agent: i.key.Agent, Channel: s.Channel, Peer: s.Peer, Open: true, Limit: 1,
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// End ends a conversation, and tells the agent's plugins why.
func (i *Instance) End(ctx context.Context, session, reason string) error {
	return i.end(ctx, session, reason, func(tx store.Tx) (bool, error) {
		return tx.CloseConversation(i.key.Tenant, session, i.agents.Now().UTC())
	})
}

func (i *Instance) end(ctx context.Context, session, reason string, by func(store.Tx) (bool, error)) error {
	ended, err := i.agents.close(ctx, i.key.Tenant, session, by)
	if err != nil || !ended {
		return err
	}
	return i.emit(ctx, event.SessionClosed, fields{"sessionId": session, "reason": reason})
}

// close closes a conversation, and the session that it is.
func (a *Agents) close(ctx context.Context, tenant, session string, by func(store.Tx) (bool, error)) (ended bool, err error) {
	err = a.Store.Write(ctx, func(tx store.Tx) (err error) {
		ended, err = by(tx)
		return err
	})
	if err != nil || !ended {
		return false, err
	}
	return true, a.Closed(ctx, tenant, session)
}

// Idle returns open conversations of which nothing was heard since then, and in
// which nothing waits.
func (a *Agents) Idle(ctx context.Context, since time.Time, limit int) ([]store.ConversationRow, error) {
	return a.Store.Conversations(ctx, store.ConversationFilter{Idle: since, Limit: limit})
}

// EndIdle ends such a conversation, unless something happened in it meanwhile.
// The plugins of an agent that is stopped, or is no more, do not hear of it.
func (a *Agents) EndIdle(ctx context.Context, tenant, session string, since time.Time) error {
	row, err := a.Store.Conversation(ctx, tenant, session)
	if err != nil || row == nil {
		return err
	}
	by := func(tx store.Tx) (bool, error) { return tx.CloseIdle(tenant, session, since, a.Now().UTC()) }
	agent, err := a.Store.Agent(ctx, tenant, row.Agent)
	if err != nil {
		return err
	}
	if agent == nil || agent.State != store.AgentRunning {
		_, err := a.close(ctx, tenant, session, by)
		return err
	}
	i, err := a.Instance(ctx, tenant, row.Agent)
	if err != nil {
		return err
	}
	return i.end(ctx, session, "idle", by)
}

// A said is a message as it is kept.
type said struct {
	Text    string           `json:"text"`
	Uses    []llm.ToolUse    `json:"uses,omitempty"`
	Results []llm.ToolResult `json:"results,omitempty"`
}

// keep adds a message to a conversation. also shares its transaction; it may be
// nil.
func (i *Instance) keep(ctx context.Context, session string, m llm.Message, call string, labels []string, also func(store.Tx) error) error {
	body, err := json.Marshal(said{m.Text, m.Uses, m.Results})
	if err != nil {
		return err
	}
	n := int64(0)
	err = i.agents.Store.Write(ctx, func(tx store.Tx) (err error) {
		n, err = tx.InsertMessage(store.MessageRow{
			Tenant: i.key.Tenant, SessionID: session, Role: string(m.Role), Body: body, CallID: call, Labels: append([]string{}, labels...), At: i.agents.Now().UTC(),
		})
		if err == nil && n > 0 && also != nil {
			err = also(tx)
		}
		return err
	})
	if err == nil && n == 0 {
		err = plugin.Errorf(plugin.CodeNotFound, "there is no conversation %s", session)
	}
	return err
}

// maxHistoryBytes is how much of a conversation its brain is shown.
const maxHistoryBytes = 256 << 10

// history returns the last messages of a conversation, the oldest first, and the
// labels of all that was said in it. It begins with a message of the user: what a
// tool answered means nothing without the wish for it.
func (i *Instance) history(ctx context.Context, session string, most int) (messages []llm.Message, labels []string, err error) {
	after, size := int64(0), 0
	for {
		rows, err := i.agents.Store.Messages(ctx, i.key.Tenant, session, after, 500)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rows {
			after = r.N
			labels = plugin.Labels(labels, r.Labels)
			if r.Role == store.Inbound {
				continue
			}
			var s said
			if err := json.Unmarshal(r.Body, &s); err != nil {
				return nil, nil, plugin.Errorf(plugin.CodeInternal, "message %d of %s cannot be read: %w", r.N, session, err)
			}
			messages = append(messages, llm.Message{Role: llm.Role(r.Role), Text: s.Text, Uses: s.Uses, Results: s.Results})
		}
		if len(rows) < 500 {
			break
		}
	}
	from := len(messages)
	for n := len(messages) - 1; n >= 0; n-- {
		if size += weight(&messages[n]); size > maxHistoryBytes || len(messages)-n > most {
			break
		}
		if messages[n].Role == llm.User {
			from = n
		}
	}
	if from == len(messages) && from > 0 { // one turn alone is too long: it is shown whole, and the model's limit decides
		for from = len(messages) - 1; from > 0 && messages[from].Role != llm.User; from-- {
		}
	}
	return messages[from:], labels, nil
}

func weight(m *llm.Message) int {
	n := len(m.Text)
	for _, u := range m.Uses {
		n += len(u.Input)
	}
	for _, r := range m.Results {
		n += len(r.Text)
	}
	return n
}
