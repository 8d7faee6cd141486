package app

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/job"
)

// waitingConversations are those in which a message that came in by a channel
// waits for its turn.
type waitingConversations struct{ agents *agent.Agents }

var _ worker.Sweeper = waitingConversations{}

// Kind implements [worker.Sweeper].
func (waitingConversations) Kind() string { return job.Conversation }

// Due implements [worker.Sweeper].
func (w waitingConversations) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	rows, err := w.agents.Waiting(ctx, limit)
	return conversationItems(job.Conversation, rows), err
}

// Do implements [worker.Sweeper].
func (w waitingConversations) Do(ctx context.Context, item worker.Item) error {
	return w.agents.Advance(ctx, item.Tenant, item.ID)
}

func conversationItems(kind string, rows []store.ConversationRow) []worker.Item {
	items := make([]worker.Item, len(rows))
	for i, row := range rows {
		items[i] = worker.Item{Kind: kind, Tenant: row.Tenant, ID: row.SessionID}
	}
	return items
}

// conversationIdle is how long nothing happens in a conversation that is then
// closed. What is said there later begins a new one.
const conversationIdle = 24 * time.Hour

// idleConversations are those in which nothing happened for that long.
type idleConversations struct {
	agents *agent.Agents
	after  time.Duration
}

var _ worker.Sweeper = idleConversations{}

// Kind implements [worker.Sweeper]. No event wakes an idle conversation: only
// the sweep finds it.
func (idleConversations) Kind() string { return "idle" }

// Due implements [worker.Sweeper].
func (c idleConversations) Due(ctx context.Context, limit int) ([]worker.Item, error) {
	rows, err := c.agents.Idle(ctx, time.Now().UTC().Add(-c.after), limit)
	return conversationItems(c.Kind(), rows), err
}

// Do implements [worker.Sweeper].
func (c idleConversations) Do(ctx context.Context, item worker.Item) error {
	return c.agents.EndIdle(ctx, item.Tenant, item.ID, time.Now().UTC().Add(-c.after))
}
