package store

import (
	"context"
	"time"
)

// An OutboxFilter says of which webhooks the next event is wanted. Empty fields
// ask for nothing.
type OutboxFilter struct {
	Tenant string
	Agent  string
	Plugin string
	Due    time.Time // by when it is to be tried
	Limit  int
}

// An OutboxRow is an event on its way to a webhook. The last group is what
// changes.
type OutboxRow struct {
	Tenant    string
	ID        string
	Agent     string
	Plugin    string
	Event     string
	Body      []byte // as it is sent
	CreatedAt time.Time

	Attempt int64
	NextAt  time.Time // zero once no further attempt is due
	Problem string    // of the last attempt
}

// An OutboxReader reads events on their way to webhooks.
type OutboxReader interface {
	// Outbox returns the one event for each agent's webhook that is to be sent
	// next: the one with the lowest id. What is due first comes first.
	Outbox(ctx context.Context, filter OutboxFilter) ([]OutboxRow, error)
}

// An OutboxWriter is what a transaction may do to them.
type OutboxWriter interface {
	// InsertOutbox adds an event for a webhook, unless that many of the agent
	// wait for it already, and returns how many did.
	InsertOutbox(row OutboxRow, most int) (waiting int, err error)
	// UpdateOutbox gives an event the changeable values of row if it still has
	// that attempt, and reports whether it had.
	UpdateOutbox(attempt int64, row OutboxRow) (won bool, err error)
	// DeleteOutbox reports whether there was such an event.
	DeleteOutbox(tenant, id string) (found bool, err error)
}
