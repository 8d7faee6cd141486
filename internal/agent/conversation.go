package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// Terminal is the channel of conversations at a terminal.
const Terminal = "terminal"

// Called is the channel of calls to an agent as an operation.
const Called = "call"

// Scheduled is the channel of turns that a schedule starts.
const Scheduled = "schedule"

// A Source is where a conversation takes place, and with whom.
type Source struct {
	Channel  string // a namespace; Terminal at a terminal, "schedule" for a turn that a schedule starts
	Kind     string // cli, api, channel, schedule
	Platform string // slack, telegram; "" for none
	Room     string // in which of its rooms, threads or issues; "" for none
	Peer     string // who it is with, as the channel names them; "" for all who are there
}

// Open begins a conversation, and tells the agent's plugins.
func (i *Instance) Open(ctx context.Context, s Source) (*ConversationRow, error) {
	return i.begun(ctx, s, func(Tx) (bool, error) { return true, nil })
}

// Next continues the open conversation of a source, or opens one: exactly one,
// for all concurrent callers on all nodes.
func (i *Instance) Next(ctx context.Context, s Source) (*ConversationRow, error) {
	for range 8 { // another caller was faster each time
		last, err := i.last(ctx, s, false)
		if err != nil || last != nil && last.Open {
			return last, err
		}
		// Of all that come after one conversation, only the first leaves a mark.
		mark := "first:" + s.Peer
		if s.Room != "" {
			mark = fmt.Sprintf("room:%q:%s", s.Room, s.Peer)
		}
		if last != nil {
			mark = "after:" + last.SessionID
		}
		place := i.key.Agent + "/" + s.Channel + "/conversations"
		row, err := i.begun(ctx, s, func(tx Tx) (bool, error) {
			return tx.InsertDelivery(i.key.Tenant, place, mark, i.agents.Now().UTC())
		})
		if row != nil || err != nil {
			return row, err
		}
	}
	return nil, plugin.Errorf(plugin.CodeUnavailable, "conversations with %s begin and end too fast; send it again", orUnknown(s.Peer))
}

// begun opens a conversation if may says so, in the transaction that does it; nil
// where it does not.
func (i *Instance) begun(ctx context.Context, s Source, may func(Tx) (bool, error)) (*ConversationRow, error) {
	id, err := i.agents.Options.Open(ctx, i.key.Tenant, nameOf(i.key.Agent, s))
	if err != nil {
		return nil, err
	}
	now := i.agents.Now().UTC().Truncate(time.Microsecond)
	row := ConversationRow{
		Tenant: i.key.Tenant, SessionID: id, Agent: i.key.Agent, Channel: s.Channel, Room: s.Room, Peer: s.Peer, CreatedAt: now, UpdatedAt: now, Open: true,
	}
	won := false
	err = i.agents.Store.Write(ctx, func(tx Tx) (err error) {
		if won, err = may(tx); err != nil || !won {
			return err
		}
		return tx.InsertConversation(row)
	})
	if err != nil || !won {
		return nil, errors.Join(err, i.agents.Closed(context.WithoutCancel(ctx), i.key.Tenant, id))
	}
	f := fields{"sessionId": id, "sessionType": kindOf(&row), "sourceKind": s.Kind, "sourcePlatform": s.Platform}
	if s.Peer != "" {
		f["participants"] = []string{s.Peer}
	}
	return &row, i.happened(ctx, event.SessionOpened, f)
}

// nameOf is what the session of a conversation is called: senders may have names
// that a session may not.
func nameOf(agent string, s Source) string {
	with := orUnknown(s.Peer)
	switch {
	case s.Room != "" && s.Peer == "":
		with = s.Room
	case s.Room != "":
		with += " in " + s.Room
	}
	name := []rune(agent + " with " + with)
	for n, r := range name {
		if !unicode.IsPrint(r) {
			name[n] = '?'
		}
	}
	return string(name[:min(len(name), 180)])
}

// kindOf returns what sort of conversation it is.
func kindOf(c *ConversationRow) string {
	if c.Channel == Scheduled {
		return "scheduled"
	}
	return "direct"
}

func orUnknown(peer string) string {
	if peer == "" {
		return "an unknown sender"
	}
	return peer
}

// Find returns the open conversation of a source, nil if there is none.
func (i *Instance) Find(ctx context.Context, s Source) (*ConversationRow, error) {
	return i.last(ctx, s, true)
}

// last returns the newest conversation of a source, or the newest that is open;
// nil if there is none.
func (i *Instance) last(ctx context.Context, s Source, open bool) (*ConversationRow, error) {
	rows, err := i.agents.Store.Conversations(ctx, ConversationFilter{
		Tenant: i.key.Tenant, Agent: i.key.Agent, Channel: s.Channel, Room: s.Room, NoRoom: s.Room == "", Peer: s.Peer, NoPeer: s.Peer == "", Open: open, Limit: 1,
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// End ends a conversation, and tells the agent's plugins why.
func (i *Instance) End(ctx context.Context, session, reason string) error {
	row, err := i.agents.Store.Conversation(ctx, i.key.Tenant, session)
	if err != nil {
		return err
	}
	if row == nil || row.Agent != i.key.Agent {
		return i.noConversation(session)
	}
	return i.end(ctx, session, reason, func(tx Tx) (bool, error) {
		return tx.CloseConversation(i.key.Tenant, session, i.agents.Now().UTC())
	})
}

func (i *Instance) noConversation(session string) error {
	return plugin.Errorf(plugin.CodeNotFound, "agent %s has no conversation %s", i.key.Agent, session)
}

func (i *Instance) end(ctx context.Context, session, reason string, by func(Tx) (bool, error)) error {
	ended, err := i.agents.close(ctx, i.key.Tenant, session, by)
	if err != nil || !ended {
		return err
	}
	return i.happened(ctx, event.SessionClosed, fields{"sessionId": session, "reason": reason})
}

// close closes a conversation, and the session that it is.
func (a *Agents) close(ctx context.Context, tenant, session string, by func(Tx) (bool, error)) (ended bool, err error) {
	err = a.Store.Write(ctx, func(tx Tx) (err error) {
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
func (a *Agents) Idle(ctx context.Context, since time.Time, limit int) ([]ConversationRow, error) {
	return a.Store.Conversations(ctx, ConversationFilter{Idle: since, Limit: limit})
}

// EndIdle ends such a conversation, unless something happened in it meanwhile.
// The plugins of an agent that is stopped, or is no more, do not hear of it.
func (a *Agents) EndIdle(ctx context.Context, tenant, session string, since time.Time) error {
	row, err := a.Store.Conversation(ctx, tenant, session)
	if err != nil || row == nil {
		return err
	}
	by := func(tx Tx) (bool, error) { return tx.CloseIdle(tenant, session, since, a.Now().UTC()) }
	agent, err := a.Store.Agent(ctx, tenant, row.Agent)
	if err != nil {
		return err
	}
	if agent == nil || agent.State != AgentRunning {
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

// keep adds a message to a conversation whose turn the lease holds, also after
// the caller has gone. also shares its transaction; it may be nil.
func (i *Instance) keep(ctx context.Context, session, lease string, m llm.Message, call string, labels []string, also func(tx Tx, n int64) error) error {
	body, err := json.Marshal(said{m.Text, m.Uses, m.Results})
	if err != nil {
		return err
	}
	n := int64(0)
	err = i.agents.Store.Write(context.WithoutCancel(ctx), func(tx Tx) (err error) {
		n, err = tx.InsertMessage(MessageRow{
			Tenant: i.key.Tenant, SessionID: session, Role: string(m.Role), Body: body, CallID: call, Labels: append([]string{}, labels...), At: i.agents.Now().UTC(),
		})
		if err != nil || n == 0 {
			return err
		}
		// A turn that lost its lease adds nothing to the turn of another.
		row, err := tx.Conversation(ctx, i.key.Tenant, session)
		if err != nil {
			return err
		}
		if row == nil || row.Lease != lease {
			return taken(session)
		}
		if also != nil {
			err = also(tx, n)
		}
		return err
	})
	if err == nil && n == 0 {
		err = i.noConversation(session)
	}
	return err
}

// maxHistoryBytes is how much of a conversation its brain is shown.
const maxHistoryBytes = 256 << 10

// history returns the last messages of a conversation, the oldest first, and the
// labels of what is in them: what an agent said has the labels of all that was
// said before. It begins with a message of the user: what a tool answered means
// nothing without the wish for it. However long the conversation is, no more is
// read of it than the last turn, and as much as is shown.
func (i *Instance) history(ctx context.Context, session string, most int) (messages []llm.Message, labels []string, err error) {
	const page = 64
	var all []llm.Message // the newest first
	var tainted [][]string
	from, size, before := 0, 0, int64(0) // from is how many are shown
read:
	for {
		rows, err := i.agents.Store.LastMessages(ctx, i.key.Tenant, session, before, page)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rows {
			before = r.N
			var s said
			if err := json.Unmarshal(r.Body, &s); err != nil {
				return nil, nil, plugin.Errorf(plugin.CodeInternal, "message %d of %s cannot be read: %w", r.N, session, err)
			}
			m := llm.Message{Role: llm.Role(r.Role), Text: s.Text, Uses: s.Uses, Results: s.Results}
			// One turn alone may be too long: it is shown whole, and the model's limit decides.
			if size += weight(&m); from > 0 && (size > maxHistoryBytes || len(all) >= most) {
				break read
			}
			all, tainted = append(all, m), append(tainted, r.Labels)
			if m.Role == llm.User {
				from = len(all)
			}
		}
		if len(rows) < page {
			break
		}
	}
	for n := from - 1; n >= 0; n-- {
		messages, labels = append(messages, all[n]), plugin.Labels(labels, tainted[n])
	}
	return messages, labels, nil
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
