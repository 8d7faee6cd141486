package toolset

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what [Webhooks] keep their events in until they are delivered.
type Store interface {
	store.OutboxReader
	store.Clock
	Write(ctx context.Context, fn func(agent.Tx) error) error
}

type outboxFilter = store.OutboxFilter
