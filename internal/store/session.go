package store

import (
	"context"
	"time"
)

// A SessionState is whether more may be added to a session.
type SessionState string

// The states of a session.
const (
	SessionOpen   SessionState = "open"
	SessionClosed SessionState = "closed" // it can be read, and nothing be added
)

// A SessionRow is an investigation: what its artifacts and calls have in
// common. The last group is what changes.
type SessionRow struct {
	Tenant    string
	ID        string
	Name      string
	Kind      string
	Owner     string // the principal that began it, as the configuration writes it; "" where that is not known
	CreatedAt time.Time

	Pillar    string
	State     SessionState
	Labels    []string // those of all its artifacts; they only grow
	Artifacts int64    // how many it has
	UpdatedAt time.Time
	MAC       string // of whose it is and what its labels are, with the host's key; the store gives it
}

// A SessionFilter says which sessions are wanted. Empty fields ask for nothing.
type SessionFilter struct {
	Tenant string
	Prefix string // of the id
	Limit  int
}

// A SessionReader reads sessions.
type SessionReader interface {
	// Session returns the session of that id.
	Session(ctx context.Context, tenant, id string) (*SessionRow, error)
	// Sessions returns sessions, newest first.
	Sessions(ctx context.Context, filter SessionFilter) ([]SessionRow, error)

	// Owned returns how many of a kind an owner in a tenant has; most are counted.
	Owned(ctx context.Context, kind Kind, tenant string, most int, owner ...string) (int, error)
}

// A SessionWriter is what a transaction may do to them.
type SessionWriter interface {
	// InsertSession adds a session.
	InsertSession(row SessionRow) error
	// SetSessionState moves a session that is in state from and reports whether
	// it was.
	SetSessionState(tenant, id string, from, to SessionState, at time.Time) (won bool, err error)
	// SetSessionPillar reports whether there was such a session to change.
	SetSessionPillar(tenant, id, pillar string, at time.Time) (found bool, err error)
	// DeleteSession deletes a session with its artifacts and returns the hashes
	// of those whose bytes are elsewhere, which others may have too.
	DeleteSession(tenant, id string) (hashes []string, found bool, err error)
}
