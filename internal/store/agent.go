package store

import "time"

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

	Brain     string // the operation that decides, plugin/operation; "" for the built-in chat
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

// A ConversationRow is a session in which a person talks with an agent. The last group
// is what changes.
type ConversationRow struct {
	Tenant    string
	SessionID string
	Agent     string
	Channel   string // where it takes place: a namespace, "chat" at the terminal
	Room      string // in which room, thread or issue there; "" where the channel names none
	Peer      string // who it is with there; "" for all who are in the room
	CreatedAt time.Time
	MAC       string // of all of the above; the store gives it

	Open       bool
	Turns      int64
	Received   int64     // the n of the newest message that came in
	Handled    int64     // the n of the newest of these that has its turn behind it
	Lease      string    // of the holder of the turn; "" for none
	LeaseUntil time.Time // by the clock of the host that took it
	UpdatedAt  time.Time
}

// A ConversationFilter says which conversations are wanted. Empty fields ask for
// nothing.
type ConversationFilter struct {
	Tenant  string
	Agent   string
	Channel string
	Peer    string
	NoPeer  bool // those whose peer the channel does not name
	Room    string
	NoRoom  bool // those in no room
	Open    bool
	Waiting bool      // open ones, in which a message waits for its turn; the longest waiting first
	Running bool      // those of agents that run
	Idle    time.Time // open ones of which nothing was heard since, and where nothing waits; the longest idle first
	Limit   int
}

// Inbound is the role of a message as it came in. Once its turn has begun there
// is one of the user for it.
const Inbound = "inbound"

// A MessageRow is one message of a conversation. It never changes.
type MessageRow struct {
	Tenant    string
	SessionID string
	N         int64  // from 1, in their order; InsertMessage gives it
	Role      string // inbound, user, assistant, tool
	Body      []byte // JSON
	CallID    string // the call it is about or comes from
	Labels    []string
	At        time.Time
	MAC       string
}

// A MemoryRow is something that an agent remembers.
type MemoryRow struct {
	Tenant    string
	Agent     string
	Key       string
	Content   string
	Labels    []string
	UpdatedAt time.Time
	MAC       string
}

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
