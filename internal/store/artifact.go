package store

import (
	"context"
	"time"
)

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

// An ArtifactReader reads the artifacts of sessions.
type ArtifactReader interface {
	// Artifact returns the artifact of that id in a session.
	Artifact(ctx context.Context, tenant, session, id string) (*ArtifactRow, error)
	// Artifacts returns the artifacts of a session, in the order of registration.
	Artifacts(ctx context.Context, tenant, session string) ([]ArtifactRow, error)
	// ArtifactData returns the bytes of an artifact that are kept with it, nil
	// where they are elsewhere.
	ArtifactData(ctx context.Context, tenant, session, id string) ([]byte, error)
	// Registered reports whether an artifact of any tenant has these bytes
	// elsewhere.
	Registered(ctx context.Context, sha256 string) (bool, error)
	// ArtifactBytes returns how many bytes the artifacts of a session have, or of
	// all sessions of the tenant where session is empty.
	ArtifactBytes(ctx context.Context, tenant, session string) (int64, error)
	// ArtifactLabels returns the labels of those artifacts of a session that
	// there are, by their ids, and reads nothing else of them.
	ArtifactLabels(ctx context.Context, tenant, session string, ids []string) (map[string][]string, error)
}

// An ArtifactWriter is what a transaction may do to them.
type ArtifactWriter interface {
	// InsertArtifact adds an artifact to a session that is open, with the next
	// n and its labels to those of the session, and returns it. Its bytes are
	// kept with it where data is not nil, and row.Inline says nothing. If row is not
	// Promised and an equal one is there - same bytes, name, type, source and labels - that is prior and
	// nothing is written. open reports whether there was such a session; if
	// not, nothing is written and there is no prior.
	InsertArtifact(row ArtifactRow, data []byte) (inserted, prior *ArtifactRow, open bool, err error)
}
