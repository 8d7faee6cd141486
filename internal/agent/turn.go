package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// A Message is one message to an agent.
type Message struct {
	Text     string
	From     plugin.Principal // whose rights the turn has
	Asker    string           // who is known to have sent it, see [plugin.Call]; required, but for a channel's sender
	Role     string           // what they are to the agent: owner, user, guest
	Channel  string           // the namespace it came by; "" for none
	Room     string           // in which of its rooms; "" for none
	Sender   string           // who sent it, as the channel names them
	Metadata json.RawMessage  // what the channel adds: an object, or nil
	Labels   []string
	Inbound  int64 // the n of the message as it came in; 0 for one that did not
	Ends     bool  // it ends the conversation, and has no turn
	Late     *Late // of the host, for the end of a call that outlived its turn
}

// asker is who is known to have sent the message: of a channel's, what the channel
// says.
func (m *Message) asker() string {
	if m.Asker != "" || m.Channel == "" {
		return m.Asker
	}
	return "channel:" + m.Channel + "/" + m.Sender
}

// An Audience receives the progress of a turn. Each of its functions may be
// nil.
type Audience struct {
	Say   func(text string)           // hears the answer as it comes
	Using func(u Use)                 // a tool is about to be used
	Used  func(u Use)                 // it was
	Ask   func(u Use) (*Reply, error) // a person is to say whether a tool may be used; without it the turn goes on, and the question stays open
	Waits func(u Use)                 // a tool waits for a person who is not here; called only without Ask
}

// A Reply is how a call ended that waited for a person.
type Reply struct {
	Result plugin.Result
	Err    error
}

// An Answer is what a turn came to.
type Answer struct {
	Text   string   `json:"text"`
	Uses   []Use    `json:"uses"`
	Labels []string `json:"labels"`
	Steps  int      `json:"steps"`
	Cut    bool     `json:"cut,omitzero"` // it stopped at the most moves that the agent may make
}

// MaxText is how long a message may be, in bytes.
const MaxText = 64 << 10

// Turn takes one message to one answer. A conversation has one turn at a time,
// across all callers and nodes.
func (i *Instance) Turn(ctx context.Context, session string, m Message, to Audience) (a Answer, err error) {
	if len(m.Text) > MaxText || strings.ContainsRune(m.Text, 0) {
		return a, plugin.Errorf(plugin.CodeInvalidInput, "a message has at most %d bytes and no NUL; this one has %d", MaxText, len(m.Text))
	}
	if m.asker() == "" {
		return a, plugin.Errorf(plugin.CodeInternal, "a message to agent %s names no asker, so no one could approve what its turn asks for", i.key.Agent)
	}
	// Turn: only this turn adds to the conversation until it is over.
	ctx, c, end, err := i.take(ctx, session)
	if err != nil {
		return a, err
	}
	defer end()
	if m.Inbound > 0 && m.Inbound <= c.Handled {
		return a, errHandled // by another host, while this one waited
	}
	if m.Inbound == 0 {
		if err := i.catchUp(ctx, c); err != nil {
			return a, err
		}
	}
	ctx, read := Tainting(ctx)
	// Refresh: plugins that it was given since, or lost.
	if err := i.refresh(ctx); err != nil {
		return a, err
	}
	// Receive: hooks may rewrite what was said before it is part of anything. What the
	// host says of a call they heard as tool.after@v1.
	if m.Late == nil {
		if m.Text, err = i.rewritten(ctx, event.SessionMessageReceived, "text", m.fields(session)); err != nil {
			return a, err
		}
	}
	m.Labels = plugin.Labels(m.Labels, read()) // of what hooks put into it
	handled := func(tx Tx, _ int64) error {
		if err := tx.Handled(i.key.Tenant, session, m.Inbound); err != nil || m.Inbound == 0 {
			return err
		}
		return i.insertReply(tx, reply{Session: session, Inbound: m.Inbound, Kind: replyBegun}, i.agents.Now().Add(turnLease))
	}
	if err := i.keep(ctx, session, c.Lease, llm.Message{Role: llm.User, Text: m.Text}, "", m.Labels, handled); err != nil {
		return a, err
	}
	// Think and act, until the brain asks for nothing more.
	t, err := i.begin(ctx, c, m, to)
	if err != nil {
		return a, err
	}
	t.read = read
	if t.settings.Brain != "" {
		err := t.propose(ctx)
		return t.answer, err
	}
	for t.answer.Steps = 1; ; t.answer.Steps++ {
		move, err := t.think(ctx)
		if err != nil {
			return t.answer, err
		}
		if len(move.Uses) == 0 {
			return t.answer, nil
		}
		last := t.answer.Steps == t.settings.MaxSteps
		if err := t.act(ctx, move.Uses, last); err != nil {
			return t.answer, err
		}
		if last {
			t.answer.Cut = true
			return t.answer, nil
		}
	}
}

// errHandled is why a message that came in has no turn: it has had one.
var errHandled = plugin.Errorf(plugin.CodeUnavailable, "the message has its turn behind it")

// errTaken is in every error of a turn that another host took over.
var errTaken = errors.New("another host has it now")

// taken is why a turn ends that was suspended for too long.
func taken(session string) error {
	return plugin.Errorf(plugin.CodeCancelled, "the turn of %s was taken over: %w", session, errTaken)
}

// ended is why a turn ends whose context did; nil while that has not.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return plugin.AsError(cause)
	}
	return nil
}

// fields are what hooks hear of a message.
func (m *Message) fields(session string) fields {
	f := fields{
		"sessionId": session, "text": m.Text, "channel": m.Channel, "senderUserId": m.From.ID, "senderRole": m.Role, "senderChannel": m.Sender,
	}
	if m.Metadata != nil {
		f["metadata"] = m.Metadata
	}
	return f
}

// turnLease is how long a turn is another's once its holder is silent.
const turnLease = 30 * time.Second

// take waits for the lease of the turn, and keeps it until end is called. If
// the lease is lost in between, because this process was suspended for too
// long, the turn is cancelled.
func (i *Instance) take(ctx context.Context, session string) (_ context.Context, c *ConversationRow, end func(), err error) {
	lease := uuid.NewString()
	st, key := i.agents.Store, i.key
	row, err := st.Conversation(ctx, key.Tenant, session)
	if err != nil {
		return nil, nil, nil, err
	}
	if row == nil || row.Agent != key.Agent {
		return nil, nil, nil, i.noConversation(session)
	}
	release, err := i.hold()
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if end == nil {
			release()
		}
	}()
	deadline := i.agents.Now().Add(turnLease)
	for {
		won := false
		err := st.Write(ctx, func(tx Tx) (err error) {
			now := i.agents.Now().UTC()
			won, err = tx.TakeTurn(key.Tenant, session, lease, now, now.Add(turnLease))
			return err
		})
		if err != nil {
			return nil, nil, nil, err
		}
		row, err := st.Conversation(ctx, key.Tenant, session)
		if err != nil {
			return nil, nil, nil, err
		}
		if won {
			c = row
			break
		}
		switch {
		case row == nil || !row.Open:
			return nil, nil, nil, plugin.Errorf(plugin.CodeDisabled, "the conversation %s has ended", session)
		case i.agents.Now().After(deadline):
			return nil, nil, nil, plugin.Errorf(plugin.CodeOverloaded, "another turn of %s is still going on; try again later", session)
		}
		select {
		case <-ctx.Done():
			return nil, nil, nil, plugin.Errorf(plugin.CodeCancelled, "the caller stopped waiting for the turn: %w", context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, i.agents.Options.Turn, plugin.Errorf(plugin.CodeTimeout, "the turn took longer than %s", i.agents.Options.Turn))
	ctx = context.WithValue(within(ctx, Scene{session, kindOf(c), c.Channel, c.Turns}), holderKey{}, i)
	ctx, lost := context.WithCancelCause(ctx)
	off := context.AfterFunc(i.ctx, func() { lost(context.Cause(i.ctx)) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(turnLease / 3):
			}
			held := true
			err := st.Write(ctx, func(tx Tx) (err error) {
				held, err = tx.KeepTurn(key.Tenant, session, lease, i.agents.Now().UTC().Add(turnLease))
				return err
			})
			if err == nil && !held {
				lost(taken(session))
				return
			}
		}
	}()
	return ctx, c, func() {
		defer release()
		off()
		lost(nil)
		cancel()
		<-done
		_ = st.Write(context.WithoutCancel(ctx), func(tx Tx) error {
			_, err := tx.EndTurn(key.Tenant, session, lease, i.agents.Now().UTC())
			return err
		})
	}, nil
}

// A turn is one turn of one conversation.
type turn struct {
	*Instance
	session  string
	message  Message
	audience Audience
	row      AgentRow
	settings Settings
	index    int64 // which turn of the conversation
	brain    brain
	call     plugin.Call // what its calls have in common
	tools    []Tool
	assigned []string
	usage    *llm.CallUsage
	lease    string
	said     int64           // the n of what the agent said last
	settled  []string        // calls that were owed, whose end is kept with the results of this move
	known    []MemoryRow     // what it remembers of what is talked about
	read     func() []string // the labels of what was read from its memory
	answer   Answer
}

// begin finds out what the agent has for this turn.
func (i *Instance) begin(ctx context.Context, c *ConversationRow, m Message, to Audience) (*turn, error) {
	row, session := i.agent(), c.SessionID
	t := &turn{Instance: i, session: session, message: m, audience: to, row: row, settings: full(&row), brain: chat{i.agents.Model}, usage: &llm.CallUsage{}}
	t.index, t.lease = c.Turns, c.Lease
	_, labels, err := i.history(ctx, session, t.settings.History)
	if err != nil {
		return nil, err
	}
	if t.known, err = (Memory{i.agents, i.key}).Recall(ctx, m.Text, shown); err != nil {
		return nil, err
	}
	t.answer.Uses, t.answer.Labels = []Use{}, plugin.Labels(labels, m.Labels)
	t.call = plugin.Call{
		Tenant: i.key.Tenant, Principal: m.From, Actor: "agent:" + i.key.Agent, Asker: m.asker(), Agent: i.key.Agent, Origin: plugin.OriginAgent, Session: session,
		Labels: t.answer.Labels, Trace: plugin.Trace{Correlation: session, Workflow: "agent/" + i.key.Agent, Step: uuid.Must(uuid.NewV7()).String()},
	}
	assigned, err := i.agents.Assignments(ctx, i.key.Tenant, i.key.Agent)
	if err != nil {
		return nil, err
	}
	for name := range assigned {
		t.assigned = append(t.assigned, name)
	}
	if t.settings.Brain != "" {
		return t, nil // it is told what it may propose
	}
	t.tools, err = i.agents.Plugins.Offer(ctx, Ask{Call: t.call, Plugins: t.assigned, Text: m.Text, Most: t.settings.MaxTools, Left: i.leftOut})
	return t, err
}

// think asks the brain, and keeps what it says.
func (t *turn) think(ctx context.Context) (llm.Move, error) {
	system, err := t.prompt(ctx)
	if err != nil {
		return llm.Move{}, err
	}
	messages, labels, err := t.history(ctx, t.session, t.settings.History)
	if err != nil {
		return llm.Move{}, err
	}
	if system, messages, err = t.before(ctx, system, messages); err != nil {
		return llm.Move{}, err
	}
	t.taint(plugin.Labels(labels, t.read()))
	started := t.agents.Now()
	move := t.brain.next(ctx, thought{
		call: t.call, agent: t.key.Agent, tier: t.row.Tier, system: system, messages: messages, tools: t.tools,
		tokens: t.settings.MaxTokens, usage: t.usage, say: t.audience.Say,
	})
	f := fields{
		"sessionId": t.session, "turnIndex": t.index, "durationMs": t.agents.Now().Sub(started).Milliseconds(), "ok": move.Err == nil, "text": move.Text,
	}
	if t.bus.Heard(event.ModelAfter) {
		f["messages"] = heardOf(system, messages, &move)
	}
	failure := problem(move)
	if failure != nil {
		f["error"] = plugin.AsError(failure).Message
	}
	if err := t.happened(ctx, event.ModelAfter, f); err != nil {
		return move, err
	}
	if failure != nil {
		if cause := ended(ctx); cause != nil && plugin.CodeOf(cause) != plugin.CodeInternal {
			failure = cause
		}
		return move, failure
	}
	t.taint(t.read()) // of what hooks put beside it
	t.answer.Text = move.Text
	also := func(tx Tx, n int64) error {
		if t.said = n; len(move.Uses) > 0 {
			return nil
		}
		return t.answered(tx, replyAnswer)
	}
	return move, t.keep(ctx, t.session, t.lease, llm.Message{Role: llm.Assistant, Text: move.Text, Uses: move.Uses}, t.call.Trace.Step, t.answer.Labels, also)
}

// answered owes the channel, in the transaction that ends the turn, what the agent
// said last.
func (t *turn) answered(tx Tx, kind string) error {
	if t.message.Inbound == 0 {
		return nil
	}
	return t.oweAnswer(tx, reply{Session: t.session, Inbound: t.message.Inbound, Kind: kind, Answer: t.said}, false)
}

// taint adds to the labels of the turn.
func (t *turn) taint(labels []string) {
	t.answer.Labels = plugin.Labels(t.answer.Labels, labels)
	t.call.Labels = t.answer.Labels
}

// act uses the tools that the brain asked for, one after another, and keeps what
// they answered. last is for the last move of a turn.
func (t *turn) act(ctx context.Context, uses []llm.ToolUse, last bool) error {
	results := make([]llm.ToolResult, 0, len(uses))
	var stop error
	for _, wish := range uses {
		if stop == nil {
			stop = ended(ctx)
		}
		u := Use{ID: wish.ID, Name: wish.Name, Input: wish.Input}
		if stop == nil {
			stop = t.use(ctx, &u, wish.Cut)
		} else {
			u.Code, u.Text = plugin.CodeCancelled, "the turn ended before it was used"
		}
		t.answer.Uses = append(t.answer.Uses, u)
		results = append(results, llm.ToolResult{ID: wish.ID, Name: wish.Name, Text: u.Text, Failed: u.Code != ""})
	}
	// What was asked for has an answer on record, however the turn ends.
	also := func(tx Tx, _ int64) error {
		for _, call := range t.settled {
			if _, err := t.forget(tx, call); err != nil {
				return err
			}
		}
		if last && stop == nil {
			return t.answered(tx, replyCut)
		}
		return nil
	}
	if err := t.keep(ctx, t.session, t.lease, llm.Message{Role: llm.ToolRole, Results: results}, t.call.Trace.Step, t.answer.Labels, also); err != nil && stop == nil {
		return err
	}
	t.settled = nil
	return stop
}
