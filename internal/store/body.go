package store

import (
	"context"
	"iter"
	"time"
)

// A BodyRow is a payload kept under the hash of its bytes, so that rows and
// entries can name it and outlive it.
type BodyRow struct {
	Tenant    string
	Hash      string // sha256:<hex>
	Data      []byte
	ExpiresAt time.Time // zero for never
}

// A BodyReader reads payloads by their hash.
type BodyReader interface {
	// Body returns the bytes of that hash, nil where there are none or they
	// were erased.
	Body(ctx context.Context, tenant, hash string) ([]byte, error)
	// Bodies yields all bodies that are there, of all tenants.
	Bodies(ctx context.Context) iter.Seq2[BodyRow, error]
}

// A BodyWriter is what a transaction may do to them.
type BodyWriter interface {
	// PutBody keeps data until expires, or for good where that is zero, and
	// returns its hash. The same bytes are kept once, for the longest time
	// that was asked.
	PutBody(tenant string, data []byte, expires time.Time) (hash string, err error)
	// PutSealedBody keeps in the place of the bytes of a hash what they became by
	// [Key.Seal], also where they are there.
	PutSealedBody(tenant, hash string, sealed []byte, expires time.Time) error
}
