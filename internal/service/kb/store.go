package kb

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what [Bases] are kept in.
type Store interface {
	store.KBReader
	store.KVReader
	Write(ctx context.Context, fn func(Tx) error) error
}

// A Tx is a transaction of the store.
type Tx = store.Tx

type (
	kbRow            = store.KBRow
	documentRow      = store.DocumentRow
	documentFilter   = store.DocumentFilter
	chunkRow         = store.ChunkRow
	chunkQuery       = store.ChunkQuery
	chunkHit         = store.ChunkHit
	passageRow       = store.PassageRow
	unembeddedFilter = store.UnembeddedFilter
	vectorRow        = store.VectorRow
	kvKey            = store.KVKey
	kvRow            = store.KVRow
)

const ownedKnowledge = store.OwnedKnowledge
