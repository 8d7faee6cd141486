package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const (
	conversationColumns = `tenant, session_id, agent, channel, peer, created_at, open, turns, received, handled, lease, lease_until, updated_at, room, mac`
	messageColumns      = `tenant, session_id, n, role, body, call_id, labels, at, mac`
	outboxColumns       = `tenant, id, agent, plugin, event, body, created_at, attempt, next_at, problem`
)

// Conversation implements [store.Reader].
func (r *reader) Conversation(ctx context.Context, tenant, session string) (*store.ConversationRow, error) {
	q := selectFrom(conversationColumns, "conversations")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", session)
	return one(rows(ctx, r, q, scanConversation))
}

// Conversations implements [store.Reader].
func (r *reader) Conversations(ctx context.Context, f store.ConversationFilter) ([]store.ConversationRow, error) {
	q := selectFrom(conversationColumns, "conversations")
	q.of(ctx, r, f.Tenant)
	q.equal("agent", f.Agent)
	q.equal("channel", f.Channel)
	q.equal("peer", f.Peer)
	if f.NoPeer {
		q.where("peer = ''")
	}
	q.equal("room", f.Room)
	if f.NoRoom {
		q.where("room = ''")
	}
	if f.Open {
		q.where("open = 1")
	}
	if f.Running {
		q.where("EXISTS (SELECT 1 FROM agents WHERE agents.tenant = conversations.tenant AND agents.id = conversations.agent AND agents.state = ?)", string(store.AgentRunning))
	}
	switch {
	case f.Waiting:
		q.where("handled < received AND open = 1")
		q.orderBy("updated_at, session_id")
	case !f.Idle.IsZero():
		q.where("handled >= received AND open = 1 AND updated_at < ?", micros(f.Idle))
		q.orderBy("updated_at, session_id")
	default:
		q.orderBy("created_at DESC, session_id DESC")
	}
	q.limit(f.Limit)
	return all(rows(ctx, r, q, scanConversation))
}

// InsertConversation implements [store.Tx].
func (t *tx) InsertConversation(r store.ConversationRow) error {
	key, err := t.signer()
	if err != nil {
		return t.fail(err)
	}
	_, err = t.Exec(`INSERT INTO conversations (`+conversationColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Tenant, r.SessionID, r.Agent, r.Channel, r.Peer, micros(r.CreatedAt), flag(r.Open), r.Turns, r.Received, r.Handled, r.Lease, micros(r.LeaseUntil), micros(r.UpdatedAt), r.Room,
		key.SignKept(r.Digest()))
	return err
}

// TakeTurn implements [store.Tx].
func (t *tx) TakeTurn(tenant, session, lease string, now, until time.Time) (bool, error) {
	return t.Exec(`UPDATE conversations SET lease = ?, lease_until = ?, updated_at = ? WHERE tenant = ? AND session_id = ? AND open = 1 AND (lease = '' OR lease_until < ?)`,
		lease, micros(until), micros(now), tenant, session, micros(now))
}

// KeepTurn implements [store.Tx].
func (t *tx) KeepTurn(tenant, session, lease string, until time.Time) (bool, error) {
	return t.Exec(`UPDATE conversations SET lease_until = ? WHERE tenant = ? AND session_id = ? AND lease = ?`, micros(until), tenant, session, lease)
}

// EndTurn implements [store.Tx].
func (t *tx) EndTurn(tenant, session, lease string, now time.Time) (bool, error) {
	return t.Exec(`UPDATE conversations SET lease = '', lease_until = 0, turns = turns + 1, updated_at = ? WHERE tenant = ? AND session_id = ? AND lease = ?`,
		micros(now), tenant, session, lease)
}

// CloseConversation implements [store.Tx].
func (t *tx) CloseConversation(tenant, session string, now time.Time) (bool, error) {
	return t.Exec(`UPDATE conversations SET open = 0, updated_at = ? WHERE tenant = ? AND session_id = ? AND open = 1`, micros(now), tenant, session)
}

// CloseIdle implements [store.Tx].
func (t *tx) CloseIdle(tenant, session string, since, now time.Time) (bool, error) {
	return t.Exec(`UPDATE conversations SET open = 0, updated_at = ?
		WHERE tenant = ? AND session_id = ? AND open = 1 AND handled >= received AND updated_at < ? AND (lease = '' OR lease_until < ?)`,
		micros(now), tenant, session, micros(since), micros(now))
}

// Messages implements [store.Reader].
func (r *reader) Messages(ctx context.Context, tenant, session string, after int64, limit int) ([]store.MessageRow, error) {
	q := selectFrom(messageColumns, "messages")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", session)
	q.where("n > ?", after)
	q.orderBy("n")
	q.limit(limit)
	return all(rows(ctx, r, q, scanMessage))
}

// LastMessages implements [store.Reader].
func (r *reader) LastMessages(ctx context.Context, tenant, session string, before int64, limit int) ([]store.MessageRow, error) {
	q := selectFrom(messageColumns, "messages")
	q.where("tenant = ?", tenant)
	q.where("session_id = ?", session)
	q.where("role <> ?", store.Inbound)
	if before > 0 {
		q.where("n < ?", before)
	}
	q.orderBy("n DESC")
	q.limit(limit)
	return all(rows(ctx, r, q, scanMessage))
}

// InsertMessage implements [store.Tx].
func (t *tx) InsertMessage(r store.MessageRow) (int64, error) {
	labels, err := t.array(r.Labels)
	if err != nil {
		return 0, err
	}
	// The conversation first: a concurrent writer to it waits here.
	found, err := t.Exec(`UPDATE conversations SET updated_at = ? WHERE tenant = ? AND session_id = ? AND open >= ?`,
		micros(r.At), r.Tenant, r.SessionID, flag(r.Role == store.Inbound))
	if err != nil || !found {
		return 0, err
	}
	if _, err := t.Row([]any{&r.N}, `SELECT coalesce(max(n), 0) + 1 FROM messages WHERE tenant = ? AND session_id = ?`, r.Tenant, r.SessionID); err != nil {
		return 0, err
	}
	key, err := t.signer()
	if err != nil {
		return 0, t.fail(err)
	}
	_, err = t.Exec(`INSERT INTO messages (`+messageColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Tenant, r.SessionID, r.N, r.Role, r.Body, r.CallID, labels, micros(r.At), key.SignKept(r.Digest()))
	if err == nil && r.Role == store.Inbound {
		_, err = t.Exec(`UPDATE conversations SET received = ? WHERE tenant = ? AND session_id = ?`, r.N, r.Tenant, r.SessionID)
	}
	return r.N, err
}

// Handled implements [store.Tx].
func (t *tx) Handled(tenant, session string, n int64) error {
	_, err := t.Exec(`UPDATE conversations SET handled = ? WHERE tenant = ? AND session_id = ? AND handled < ?`, n, tenant, session, n)
	return err
}

// Outbox implements [store.Reader].
func (r *reader) Outbox(ctx context.Context, f store.OutboxFilter) ([]store.OutboxRow, error) {
	q := selectFrom(outboxColumns, "outbox")
	q.of(ctx, r, f.Tenant)
	q.equal("agent", f.Agent)
	q.equal("plugin", f.Plugin)
	q.where("next_at > 0")
	if !f.Due.IsZero() {
		q.where("next_at <= ?", micros(f.Due))
	}
	q.where(`NOT EXISTS (SELECT 1 FROM outbox AS earlier WHERE earlier.tenant = outbox.tenant AND earlier.agent = outbox.agent
		AND earlier.plugin = outbox.plugin AND earlier.id < outbox.id AND earlier.next_at > 0)`)
	q.orderBy("next_at, id")
	q.limit(f.Limit)
	return all(rows(ctx, r, q, func(rows *record, o *store.OutboxRow) error {
		var created, next int64
		err := rows.Scan(&o.Tenant, &o.ID, &o.Agent, &o.Plugin, &o.Event, &o.Body, &created, &o.Attempt, &next, &o.Problem)
		o.CreatedAt, o.NextAt = fromMicros(created), fromMicros(next)
		return err
	}))
}

// InsertOutbox implements [store.Tx].
func (t *tx) InsertOutbox(r store.OutboxRow, most int) (waiting int, err error) {
	n := int64(0)
	if _, err := t.Row([]any{&n}, `SELECT count(*) FROM (SELECT 1 FROM outbox WHERE tenant = ? AND agent = ? AND plugin = ? AND next_at > 0 LIMIT ?) AS waiting`,
		r.Tenant, r.Agent, r.Plugin, int64(most)); err != nil || n >= int64(most) {
		return int(n), err
	}
	_, err = t.Exec(`INSERT INTO outbox (`+outboxColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.Tenant, r.ID, r.Agent, r.Plugin, r.Event, r.Body, micros(r.CreatedAt), r.Attempt, micros(r.NextAt), r.Problem)
	return int(n), err
}

// UpdateOutbox implements [store.Tx].
func (t *tx) UpdateOutbox(attempt int64, r store.OutboxRow) (bool, error) {
	return t.Exec(`UPDATE outbox SET attempt = ?, next_at = ?, problem = ? WHERE tenant = ? AND id = ? AND attempt = ?`,
		r.Attempt, micros(r.NextAt), r.Problem, r.Tenant, r.ID, attempt)
}

// DeleteOutbox implements [store.Tx].
func (t *tx) DeleteOutbox(tenant, id string) (bool, error) {
	return t.Exec(`DELETE FROM outbox WHERE tenant = ? AND id = ?`, tenant, id)
}

func scanConversation(rows *record, r *store.ConversationRow) error {
	var created, open, until, updated int64
	err := rows.Scan(&r.Tenant, &r.SessionID, &r.Agent, &r.Channel, &r.Peer, &created, &open, &r.Turns, &r.Received, &r.Handled, &r.Lease, &until, &updated, &r.Room, &r.MAC)
	r.CreatedAt, r.Open, r.LeaseUntil, r.UpdatedAt = fromMicros(created), open != 0, fromMicros(until), fromMicros(updated)
	return err
}

func scanMessage(rows *record, r *store.MessageRow) error {
	var labels string
	var at int64
	if err := rows.Scan(&r.Tenant, &r.SessionID, &r.N, &r.Role, &r.Body, &r.CallID, &labels, &at, &r.MAC); err != nil {
		return err
	}
	var err error
	if r.Labels, err = fromArray(labels); err != nil {
		return fmt.Errorf("labels of message %d of session %s: %w", r.N, r.SessionID, err)
	}
	r.At = fromMicros(at)
	return nil
}
