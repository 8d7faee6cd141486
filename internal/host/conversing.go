package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// A conversing ends sessions that may be conversations with an agent, whose plugins
// hear of it.
type conversing struct {
	g         *Guard
	engine    *agent.Agents
	sessions  *session.Sessions
	elsewhere func() bool // whether the host that serves may be another process
}

// hears makes sure that the next event of an agent has a listener: the serving
// host if there may be one, else an instance in this process.
func (c conversing) hears(ctx context.Context, id string) error {
	if c.elsewhere() {
		return nil
	}
	_, err := c.engine.Instance(ctx, c.g.Tenant, id)
	return err
}

// close lets nothing more be added to a session. One that is a conversation
// with an agent ends as such, and the agent's plugins hear of it.
func (c conversing) close(ctx context.Context, id string) error {
	row, err := c.in(ctx, id)
	if err != nil {
		return err
	}
	if row == nil || !row.Open {
		return c.sessions.Close(ctx, c.g.Tenant, id)
	}
	return c.end(ctx, row)
}

// drop deletes a session; a conversation ends before.
func (c conversing) drop(ctx context.Context, id string) error {
	row, err := c.in(ctx, id)
	if err == nil && row != nil && row.Open {
		err = c.end(ctx, row)
	}
	if err != nil {
		return err
	}
	return c.sessions.Delete(ctx, c.g.Tenant, id)
}

// in returns the conversation that a session is, nil where it is none.
func (c conversing) in(ctx context.Context, id string) (*conversationRow, error) {
	s, err := c.sessions.Get(ctx, c.g.Tenant, id)
	if err != nil {
		return nil, err
	}
	return c.g.Store.Conversation(ctx, c.g.Tenant, s.ID)
}

func (c conversing) end(ctx context.Context, row *conversationRow) error {
	if err := c.hears(ctx, row.Agent); err != nil && plugin.CodeOf(err) != plugin.CodeNotFound {
		return err
	}
	_, err := c.engine.End(ctx, row.Tenant, row.SessionID, "user")
	return err
}

// conversation returns a conversation of an agent; its id may be cut short.
func (c conversing) find(ctx context.Context, id, session string) (*conversationRow, error) {
	none := noConversation(id, session)
	s, err := c.sessions.Get(ctx, c.g.Tenant, session)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	row, err := c.g.Store.Conversation(ctx, c.g.Tenant, s.ID)
	if err == nil && (row == nil || row.Agent != id) {
		err = none
	}
	return row, err
}
