package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/plugin"
)

// What an agent answers to a channel is a row of the outbox (transactional outbox).
// It is written when the turn of a message begins, in the transaction that counts
// the message as handled, and becomes the answer in the transaction that ends the
// turn. So a crash at any point leaves either a message that has its turn ahead, or
// a reply that some host sends. The row only says which reply it is: what is sent,
// to whom and with which labels is read from the signed messages of the
// conversation.

// replyTo begins what stands in the outbox where a webhook's plugin has its name.
// Its rest is the conversation: the replies of one go out in their order.
const replyTo = "/reply/"

// IsReply reports whether a row of the outbox is a reply to a channel.
func IsReply(row *OutboxRow) bool { return strings.HasPrefix(row.Plugin, replyTo) }

// maxReplies is how many replies wait in one conversation.
const maxReplies = 1000

// What a reply says.
const (
	replyBegun       = "turn"        // nothing yet: its turn goes on, or was interrupted
	replyAnswer      = "answer"      // what the agent said last
	replyCut         = "cut"         // what it said last, or that it took too many steps
	replyFailed      = "failed"      // that it did not work
	replyInterrupted = "interrupted" // that the host went down in the middle
	replyEnded       = "ended"       // that the conversation has ended, because the sender said so
	replyNote        = "note"        // how a call ended that outlived its turn
)

// A reply is what is owed to a channel for one message that came in.
type reply struct {
	Session string `json:"session"`
	Inbound int64  `json:"inbound"`          // the n of that message
	Kind    string `json:"kind"`             // what it says
	Answer  int64  `json:"answer,omitempty"` // the n of the message that has the text; 0 where the kind has it
}

// id is that of the row. Replies are in the order of their messages, and the one that
// was begun has an id of its own: who found that has not found what came of it.
func (r *reply) id() string {
	state := 1
	if r.Kind == replyBegun {
		state = 0
	}
	return fmt.Sprintf("%s/%012d/%d", r.Session, r.Inbound, state)
}

// oweAnswer puts a reply in the outbox in place of the one that was begun. Where
// that is gone another host has answered, unless the turn never began.
func (i *Instance) oweAnswer(tx Tx, r reply, unbegun bool) error {
	begun := reply{Session: r.Session, Inbound: r.Inbound, Kind: replyBegun}
	found, err := tx.DeleteOutbox(i.key.Tenant, begun.id())
	if err != nil || !found && !unbegun {
		return err
	}
	return i.insertReply(tx, r, i.agents.Now())
}

func (i *Instance) insertReply(tx Tx, r reply, at time.Time) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	waiting, err := tx.InsertOutbox(OutboxRow{
		Tenant: i.key.Tenant, ID: r.id(), Agent: i.key.Agent, Plugin: replyTo + r.Session, Event: event.ChannelMessageOut, Body: body,
		CreatedAt: i.agents.Now().UTC().Truncate(time.Microsecond), NextAt: at.UTC().Truncate(time.Microsecond),
	}, maxReplies)
	if err == nil && waiting >= maxReplies {
		err = plugin.Errorf(plugin.CodeLimitExceeded, "%d replies wait in the conversation %s", waiting, r.Session)
	}
	return err
}

// converse gives one message that came in its turn, and sends the answer.
func (i *Instance) converse(ctx context.Context, session string, m Message) error {
	if m.Ends {
		if err := i.endBy(ctx, session, &m); err != nil {
			return err
		}
		return i.sendReplies(ctx, session)
	}
	if !i.talks(&m) {
		if err := i.note(ctx, session, &m); err != nil || m.Channel == "" {
			return err
		}
		return i.sendReplies(ctx, session)
	}
	_, err := i.Turn(ctx, session, m, Audience{})
	if errors.Is(err, errHandled) {
		return nil
	}
	log := i.agents.Log.With("agent", i.key.Agent, "session", session, "message", m.Inbound)
	switch code := plugin.CodeOf(err); {
	case err == nil:
	case code == plugin.CodeOverloaded || errors.Is(err, errStopped):
		return err // it goes on waiting
	default:
		now, failure := i.agents.Store.Conversation(context.WithoutCancel(ctx), i.key.Tenant, session)
		if failure != nil || now == nil {
			return failure
		}
		if ctx.Err() != nil && now.Handled < m.Inbound {
			return err // its turn had not begun: it goes on waiting
		}
		log.Error("a turn failed", "code", code, "cause", err.Error())
		if errors.Is(err, errTaken) {
			return nil // the host that took it over sees to the reply
		}
		if err := i.agents.Store.Write(context.WithoutCancel(ctx), func(tx Tx) error {
			if err := tx.Handled(i.key.Tenant, session, m.Inbound); err != nil {
				return err
			}
			return i.oweAnswer(tx, reply{Session: session, Inbound: m.Inbound, Kind: replyFailed}, now.Handled < m.Inbound)
		}); err != nil {
			return err
		}
	}
	return i.sendReplies(ctx, session)
}

// sendReplies sends what is due of the replies of a conversation, also while the host
// shuts down. What cannot be sent now, a sweep tries again.
func (i *Instance) sendReplies(ctx context.Context, session string) error {
	on, err := true, error(nil)
	for n := 0; on && n < maxReplies; n++ {
		if on, err = i.agents.sendNext(context.WithoutCancel(ctx), i.key, session); err != nil {
			i.agents.Log.Error("an answer could not be sent", "agent", i.key.Agent, "session", session, "code", plugin.CodeOf(err), "cause", err.Error())
		}
	}
	return nil
}

// sendNext sends what is next of the replies of a conversation.
func (a *Agents) sendNext(ctx context.Context, key Key, session string) (on bool, err error) {
	rows, err := a.Store.Outbox(ctx, outboxFilter{Tenant: key.Tenant, Agent: key.Agent, Plugin: replyTo + session, Due: a.Now().UTC(), Limit: 1})
	if err != nil || len(rows) == 0 {
		return false, err
	}
	return a.SendReply(ctx, rows[0])
}

const (
	// replyTime is how long sending an answer may take.
	replyTime = time.Minute
	// replyLease is after how long another host sends what one died of.
	replyLease = 2 * time.Minute
)

// replyWaits are how long it takes from one attempt to send a reply to the next.
// After the last of them it is given up: the log says so, and the conversation has
// what the agent said.
var replyWaits = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}

// SendReply tries once to send a reply that is due, and reports whether the next one
// of its conversation can go on. The reply is delivered at least once, by a call with
// the same key each time: the host makes one effect of that, and the operation reads
// the key and can have its channel do the same.
func (a *Agents) SendReply(ctx context.Context, row OutboxRow) (on bool, err error) {
	var r reply
	if err := json.Unmarshal(row.Body, &r); err != nil {
		return true, errors.Join(err, a.dropOutbox(ctx, &row))
	}
	log := a.Log.With("agent", row.Agent, "session", r.Session, "message", r.Inbound)
	if r.Kind == replyBegun {
		return a.interrupted(ctx, &row, &r)
	}
	had := row.Attempt
	row.Attempt, row.NextAt, row.Problem = had+1, a.Now().UTC().Add(replyLease).Truncate(time.Microsecond), "it was being sent"
	if won, err := a.updateOutbox(ctx, had, &row); err != nil || !won {
		return false, err
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	err = a.sendReply(sending, Key{row.Tenant, row.Agent}, &r)
	code := plugin.CodeOf(err)
	if err != nil && code.Passes() && had < int64(len(replyWaits)) {
		row.NextAt, row.Problem = a.Now().UTC().Add(replyWaits[had]).Truncate(time.Microsecond), plugin.AsError(err).Message
		log.Warn("an answer could not be sent; it is tried again", "attempt", row.Attempt, "in", replyWaits[had], "code", code, "cause", err.Error())
		_, err := a.updateOutbox(ctx, had+1, &row)
		return false, err
	}
	if err != nil {
		log.Error("an answer could not be sent", "code", code, "attempts", row.Attempt, "cause", err.Error())
	}
	return true, a.dropOutbox(ctx, &row)
}

// interrupted looks at a reply whose turn has not ended. While another holds the
// turn, it waits; else the host that did went down, and the sender is told so. The
// turn is not repeated: its tools would have their effects twice.
func (a *Agents) interrupted(ctx context.Context, row *OutboxRow, r *reply) (on bool, err error) {
	key, lease := Key{row.Tenant, row.Agent}, row.ID
	now := a.Now().UTC().Truncate(time.Microsecond)
	i := &Instance{agents: a, key: key}
	err = a.Store.Write(ctx, func(tx Tx) error {
		c, err := tx.Conversation(ctx, key.Tenant, r.Session)
		if err != nil {
			return err
		}
		if c != nil && c.Lease != "" && !c.LeaseUntil.Before(now) {
			held := *row
			held.Attempt, held.NextAt = row.Attempt+1, now.Add(turnLease)
			_, err := tx.UpdateOutbox(row.Attempt, held)
			return err
		}
		// Fence: a host that was only suspended finds that its turn is another's.
		if c != nil && c.Lease != "" {
			if _, err := tx.TakeTurn(key.Tenant, r.Session, lease, now, now); err != nil {
				return err
			}
			if _, err := tx.EndTurn(key.Tenant, r.Session, lease, now); err != nil {
				return err
			}
		}
		// Of all hosts that find it, one takes it away and says so.
		return i.oweAnswer(tx, reply{Session: r.Session, Inbound: r.Inbound, Kind: replyInterrupted}, false)
	})
	return err == nil, err
}

func (a *Agents) updateOutbox(ctx context.Context, attempt int64, row *OutboxRow) (won bool, err error) {
	err = a.Store.Write(context.WithoutCancel(ctx), func(tx Tx) (err error) {
		won, err = tx.UpdateOutbox(attempt, *row)
		return err
	})
	return won, err
}

func (a *Agents) dropOutbox(ctx context.Context, row *OutboxRow) error {
	return a.Store.Write(context.WithoutCancel(ctx), func(tx Tx) error {
		_, err := tx.DeleteOutbox(row.Tenant, row.ID)
		return err
	})
}

// sendReply reads what a reply says, and sends it.
func (a *Agents) sendReply(ctx context.Context, key Key, r *reply) error {
	row, err := a.Store.Conversation(ctx, key.Tenant, r.Session)
	if err != nil || row == nil || row.Agent != key.Agent {
		return err // it was deleted meanwhile
	}
	in, err := a.incoming(ctx, key.Tenant, r.Session, r.Inbound)
	if err != nil || in == nil {
		return err
	}
	answer := Answer{Labels: in.Labels}
	if r.Answer > 0 {
		m, err := a.message(ctx, key.Tenant, r.Session, r.Answer)
		if err != nil || m == nil || m.Role != string(llm.Assistant) {
			return err
		}
		var s said
		if err := json.Unmarshal(m.Body, &s); err != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "message %d of %s cannot be read: %w", m.N, r.Session, err)
		}
		answer.Text, answer.Labels = s.Text, plugin.Labels(m.Labels, in.Labels)
	}
	switch {
	case in.Late != nil && r.Kind != replyAnswer && answer.Text == "": // whatever became of the turn about it
		answer.Text = in.Late.Line
	case r.Kind == replyFailed:
		answer.Text = "That did not work; the people who run this agent can see why."
	case r.Kind == replyEnded:
		answer.Text = "This conversation has ended."
	case r.Kind == replyInterrupted:
		answer.Text = "That was interrupted, and it may be half done; please ask again."
	case r.Kind == replyCut && answer.Text == "":
		answer.Text = "That took too many steps, and did not come to an end."
	}
	i, err := a.Instance(ctx, key.Tenant, key.Agent)
	if err != nil {
		return err
	}
	agent := i.agent()
	s := full(&agent)
	return i.reply(ctx, r.Session, s.Channels[in.Channel], *in, answer)
}

// message returns one message of a conversation, nil where there is no such.
func (a *Agents) message(ctx context.Context, tenant, session string, n int64) (*MessageRow, error) {
	rows, err := a.Store.Messages(ctx, tenant, session, n-1, 1)
	if err != nil || len(rows) == 0 || rows[0].N != n {
		return nil, err
	}
	return &rows[0], nil
}

// incoming returns a message as it came in, with the rights that its sender has now.
func (a *Agents) incoming(ctx context.Context, tenant, session string, n int64) (*Message, error) {
	row, err := a.message(ctx, tenant, session, n)
	if err != nil || row == nil || row.Role != inbound {
		return nil, err
	}
	in := &Incoming{}
	if err := json.Unmarshal(row.Body, in); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "message %d of %s cannot be read: %w", n, session, err)
	}
	m := &Message{Text: in.Text, Channel: in.Channel, Room: in.Room, Sender: in.Sender, Metadata: in.Metadata, Labels: row.Labels, Inbound: n, Late: in.Late, Ends: in.Ends}
	if in.Channel != "" {
		m.From, m.Role, m.Asker, err = a.Sender(ctx, tenant, in.Channel, in.Sender)
	}
	return m, err
}

// reply sends an answer by the channel's own operation: an ordinary call, with
// whatever policy and approval that needs.
func (i *Instance) reply(ctx context.Context, session string, c Channel, m Message, answer Answer) error {
	ctx, read := Tainting(ctx)
	text, err := i.rewritten(ctx, event.ChannelMessageOut, "text", fields{
		"sessionId": session, "channel": m.Channel, "direction": "out", "text": answer.Text, "metadata": orNil(m.Metadata),
	})
	if err != nil || c.Reply == "" || text == "" {
		return err
	}
	input := map[string]any{"channel": m.Channel, "to": m.Sender, "text": text, "session": session}
	if m.Metadata != nil {
		if input["metadata"], err = exactNumbers(m.Metadata); err != nil {
			return err
		}
	}
	if m.Room != "" && c.Scheme == webhook.Standard { // a platform's own are in the metadata
		input["room"] = m.Room
	}
	raw, err := json.Marshal(input)
	if err != nil {
		return err
	}
	res, err := i.agents.Kernel.Call(ctx, plugin.Call{
		Tenant: i.key.Tenant, Principal: m.From, Actor: "agent:" + i.key.Agent, Asker: m.asker(), Agent: i.key.Agent, Origin: plugin.OriginAgent, Session: session,
		Labels:    plugin.Labels(plugin.Labels(answer.Labels, m.Labels), read()), // whom it goes to is the sender's word too
		Operation: c.Reply, Input: raw, Key: fmt.Sprintf("reply:%s:%d", session, m.Inbound), KeyOf: plugin.KeyOfReply, Trace: plugin.Trace{Correlation: session},
	})
	if plugin.CodeOf(err) == plugin.CodeKeyConflict {
		return nil // it was sent by a host that died then, as hooks wrote it for that one
	}
	if err == nil && res.Status == plugin.PendingApproval {
		i.agents.Log.Info("an answer waits for a person", "agent", i.key.Agent, "session", session, "approval", res.Approval.ID)
	}
	return err
}
