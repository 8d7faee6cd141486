package store

import (
	"context"
	"time"
)

// An AgentState is whether an agent takes part in anything.
type AgentState string

// The states of an agent.
const (
	AgentStopped AgentState = "stopped" // as every new one is
	AgentRunning AgentState = "running"
)

// An AgentRow is an agent: what its instances are made from. The last group is
// what changes.
type AgentRow struct {
	Tenant    string
	ID        string
	CreatedBy string
	CreatedAt time.Time

	Brain     string // not used: the settings name the operation that decides
	Tier      string // of models; "" for the dispatcher's choice
	Prompt    string // who it is, in its own prompt
	Settings  string // JSON: its limits and channels
	State     AgentState
	UpdatedAt time.Time
}

// An AssignmentRow says whether an agent has a plugin.
type AssignmentRow struct {
	Tenant    string
	Subject   string // an agent's id, or * for all there are and will be
	Plugin    string
	Versions  string // a constraint; "" for any
	Enabled   bool   // one that is not takes from an agent what all others have
	By        string
	UpdatedAt time.Time
}

// EveryAgent is the subject of what all agents have.
const EveryAgent = "*"

// A MemoryRow is something that an agent remembers.
type MemoryRow struct {
	Tenant    string
	Agent     string
	Key       string
	Content   string
	Labels    []string
	UpdatedAt time.Time
	MAC       string

	Terms string // the words by which it is found, with spaces between them; only where it is put
}

// A MemoryQuery asks for the memories of an agent that fit some words best.
type MemoryQuery struct {
	Tenant string
	Agent  string
	Terms  []string // letters and digits only; one of them is enough
	Limit  int
}

// An AgentReader reads agents, what they have and what they remember.
type AgentReader interface {
	// Agent returns the agent of that id.
	Agent(ctx context.Context, tenant, id string) (*AgentRow, error)
	// Agents returns the agents of a tenant, or of all, by id.
	Agents(ctx context.Context, tenant string) ([]AgentRow, error)
	// Assignments returns which plugins the agents of a tenant have, by plugin.
	Assignments(ctx context.Context, tenant string) ([]AssignmentRow, error)
	// Memory returns what an agent remembers under a key.
	Memory(ctx context.Context, tenant, agent, key string) (*MemoryRow, error)
	// Memories returns what an agent remembers, the newest first.
	Memories(ctx context.Context, tenant, agent string, limit int) ([]MemoryRow, error)
	// SearchMemories returns the memories that fit best, the best first.
	SearchMemories(ctx context.Context, q MemoryQuery) ([]MemoryRow, error)
	// CountMemories returns how many things an agent remembers.
	CountMemories(ctx context.Context, tenant, agent string) (int64, error)
}

// An AgentWriter is what a transaction may do to them.
type AgentWriter interface {
	// InsertAgent adds an agent, and reports whether its id was free.
	InsertAgent(row AgentRow) (fresh bool, err error)
	// UpdateAgent gives an agent the changeable values of row (see [AgentRow])
	// and reports whether there was such an agent.
	UpdateAgent(row AgentRow) (found bool, err error)
	// DeleteAgent deletes an agent with all that is its own, but for what was
	// said with it, and reports whether there was such an agent.
	DeleteAgent(tenant, id string) (found bool, err error)
	// PutAssignment says whether an agent has a plugin, or changes that.
	PutAssignment(row AssignmentRow) error
	// DeleteAssignment reports whether there was such an assignment to delete.
	DeleteAssignment(tenant, subject, plugin string) (found bool, err error)
	// PutMemory has an agent remember something, in place of what it had under
	// that key.
	PutMemory(row MemoryRow) error
	// DeleteMemory reports whether there was something to forget.
	DeleteMemory(tenant, agent, key string) (found bool, err error)
}
