package agent

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// errMore is why a conversation is looked at again before it ends: more came in.
var errMore = errors.New("more has come in")

// endBy ends a conversation because a message says so. What came in after that message
// is put into the next conversation, in the same transaction: no message is lost.
func (i *Instance) endBy(ctx context.Context, session string, m *Message) error {
	ctx, c, release, err := i.take(ctx, session)
	if err != nil {
		return err
	}
	defer release()
	if m.Inbound <= c.Handled {
		return nil // by another host, while this one waited
	}
	ctx = context.WithoutCancel(ctx)
	next := ""
	for err = errMore; errors.Is(err, errMore); {
		next, err = i.endAndMove(ctx, c, m, next)
	}
	if err != nil {
		return err
	}
	err = i.agents.Closed(ctx, i.key.Tenant, session)
	if failure := i.happened(ctx, event.SessionClosed, fields{"sessionId": session, "reason": "user"}); err == nil {
		err = failure
	}
	if err != nil || next == "" {
		return err
	}
	f := fields{"sessionId": next, "sessionType": kindOf(c), "sourceKind": "channel"}
	if c.Peer != "" {
		f["participants"] = []string{c.Peer}
	}
	err = i.happened(ctx, event.SessionOpened, f)
	if i.agents.Wake != nil {
		i.agents.Wake(ctx, i.key.Tenant, next)
	}
	return err
}

// endAndMove ends a conversation with message m, and begins the next with what came in
// after it, if anything did. The error is errMore where more comes in meanwhile. next is
// a session that an earlier attempt has made; the one that it used is returned.
func (i *Instance) endAndMove(ctx context.Context, c *ConversationRow, m *Message, next string) (string, error) {
	tenant := i.key.Tenant
	var later []MessageRow
	for after := m.Inbound; ; {
		rows, err := i.agents.Store.Messages(ctx, tenant, c.SessionID, after, 100)
		if err != nil {
			return next, err
		}
		for _, row := range rows {
			if after = row.N; row.Role == inbound {
				later = append(later, row)
			}
		}
		if len(rows) < 100 {
			break
		}
	}
	newest := m.Inbound
	if len(later) > 0 {
		newest = later[len(later)-1].N
		if next == "" {
			id, err := i.agents.Options.Open(ctx, tenant, nameOf(i.key.Agent, Source{Channel: c.Channel, Room: c.Room, Peer: c.Peer}))
			if err != nil {
				return next, err
			}
			next = id
		}
	}
	now := i.agents.Now().UTC().Truncate(time.Microsecond)
	return next, i.agents.Store.Write(ctx, func(tx Tx) error {
		seen, err := tx.Conversation(ctx, tenant, c.SessionID)
		switch {
		case err != nil:
			return err
		case seen == nil || seen.Lease != c.Lease:
			return taken(c.SessionID)
		case seen.Received != newest:
			return errMore
		}
		if err := tx.Handled(tenant, c.SessionID, newest); err != nil {
			return err
		}
		if _, err := tx.CloseConversation(tenant, c.SessionID, now); err != nil {
			return err
		}
		if err := i.insertReply(tx, reply{Session: c.SessionID, Inbound: m.Inbound, Kind: replyEnded}, now); err != nil || len(later) == 0 {
			return err
		}
		if err := tx.InsertConversation(ConversationRow{
			Tenant: tenant, SessionID: next, Agent: c.Agent, Channel: c.Channel, Room: c.Room, Peer: c.Peer, CreatedAt: now, UpdatedAt: now, Open: true,
		}); err != nil {
			return err
		}
		for _, row := range later {
			row.SessionID, row.MAC = next, ""
			if _, err := tx.InsertMessage(row); err != nil {
				return err
			}
		}
		return nil
	})
}
