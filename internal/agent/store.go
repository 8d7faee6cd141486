package agent

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what [Agents] need of the one that keeps agents.
type Store interface {
	store.AgentReader
	store.ConversationReader
	store.KVReader
	store.OutboxReader
	store.Clock
	Call(ctx context.Context, tenant, id string) (*store.CallRow, error)
	Write(ctx context.Context, fn func(Tx) error) error
}

// A Tx is a transaction of the store.
type Tx = store.Tx

// The rows of agents, as they are kept; see package store.
type (
	AgentRow           = store.AgentRow
	AssignmentRow      = store.AssignmentRow
	ConversationRow    = store.ConversationRow
	ConversationFilter = store.ConversationFilter
	MessageRow         = store.MessageRow
	MemoryRow          = store.MemoryRow
	memoryQuery        = store.MemoryQuery
	OutboxRow          = store.OutboxRow
	outboxFilter       = store.OutboxFilter
	callRow            = store.CallRow
	kvKey              = store.KVKey
	kvRow              = store.KVRow
)

const (
	// AgentRunning is the state of an agent that takes part.
	AgentRunning = store.AgentRunning
	// EveryAgent is the subject of what all agents have.
	EveryAgent = store.EveryAgent

	inbound = store.Inbound
)
