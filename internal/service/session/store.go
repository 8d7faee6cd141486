package session

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what [Sessions] are kept in.
type Store interface {
	reader
	Write(ctx context.Context, fn func(Tx) error) error
}

// A Tx is a transaction of the store.
type Tx = store.Tx

type reader interface {
	store.SessionReader
	store.ArtifactReader
}

type (
	sessionRow    = store.SessionRow
	sessionFilter = store.SessionFilter
	sessionState  = store.SessionState
	artifactRow   = store.ArtifactRow
)

const (
	sessionOpen   = store.SessionOpen
	sessionClosed = store.SessionClosed
)

const ownedSessions = store.OwnedSessions
