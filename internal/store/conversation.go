package store

import (
	"context"
	"time"
)

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

// A ConversationReader reads conversations and what came into them.
type ConversationReader interface {
	// Conversation returns the conversation that a session is.
	Conversation(ctx context.Context, tenant, session string) (*ConversationRow, error)
	// Conversations returns conversations, newest first.
	Conversations(ctx context.Context, filter ConversationFilter) ([]ConversationRow, error)
	// Messages returns the messages of a conversation after one of them, in
	// their order.
	Messages(ctx context.Context, tenant, session string, after int64, limit int) ([]MessageRow, error)
	// LastMessages returns the messages of a conversation before one of them, the
	// newest first, and the last of all where before is 0. Those that only came in
	// are not among them.
	LastMessages(ctx context.Context, tenant, session string, before int64, limit int) ([]MessageRow, error)
	// Delivered reports whether something came in at a place already.
	Delivered(ctx context.Context, tenant, place, mark string) (bool, error)
	// DeliveredBefore returns tenants of which something came in before then.
	DeliveredBefore(ctx context.Context, before time.Time, limit int) (tenants []string, err error)
}

// A ConversationWriter is what a transaction may do to them.
type ConversationWriter interface {
	// InsertConversation adds a conversation.
	InsertConversation(row ConversationRow) error
	// TakeTurn gives the turn in an open conversation to a lease, if the turn is free or
	// its lease has expired, and reports whether it did.
	TakeTurn(tenant, session, lease string, now, until time.Time) (won bool, err error)
	// KeepTurn lengthens a lease and reports whether it was still held.
	KeepTurn(tenant, session, lease string, until time.Time) (held bool, err error)
	// EndTurn gives a turn back and reports whether the lease was still held.
	EndTurn(tenant, session, lease string, now time.Time) (held bool, err error)
	// CloseConversation reports whether there was such an open one.
	CloseConversation(tenant, session string, now time.Time) (found bool, err error)
	// CloseIdle is CloseConversation for one in which no message waits, no lease holds the
	// turn, and nothing happened since.
	CloseIdle(tenant, session string, since, now time.Time) (found bool, err error)
	// InsertMessage adds a message with the next n, and returns that; 0 where
	// there is no such conversation, or it is closed and the message came in.
	InsertMessage(row MessageRow) (n int64, err error)
	// Handled says that the messages that came in up to n have their turns behind
	// them.
	Handled(tenant, session string, n int64) error
	// InsertDelivery takes note that something came in at a place, and reports
	// whether it is the first time.
	InsertDelivery(tenant, place, mark string, at time.Time) (fresh bool, err error)
	// DeleteDeliveries forgets what came in before then, so many at a time, and
	// reports whether there was anything.
	DeleteDeliveries(tenant string, before time.Time, limit int) (found bool, err error)
}
