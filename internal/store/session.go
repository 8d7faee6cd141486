package store

import "time"

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

// An ArtifactRow is a file that was registered in a session. It never changes
// and goes with its session.
type ArtifactRow struct {
	Tenant     string
	SessionID  string
	ID         string // unique within its session
	N          int64  // from 1, in the order of registration; InsertArtifact gives it
	Type       string
	Name       string
	SHA256     string // of its bytes, in hexadecimal
	Size       int64
	SourceTool string   // the tool that made it; "" for a person's file
	SourceCall string   // the call that registered it
	Parents    []string // the artifacts it was made from
	Labels     []string
	Metadata   string // JSON
	StorageURI string // where its bytes are, if that is an object store
	CreatedAt  time.Time
	Promised   bool   // its id was given out before it was inserted: an equal one is another; it is not kept
	MAC        string // of all of this with the host's key; the store gives it
	Inline     bool   // its bytes are kept with it; else they are elsewhere, under their hash
}
