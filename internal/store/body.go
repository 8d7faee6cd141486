package store

import (
	"context"
	"fmt"
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

// An EntryBodyRow says that an entry of the ledger names a body, which no other row does.
type EntryBodyRow struct {
	Tenant, Hash string
	Subject      string    // of the entry: a call, or policy:NAME, or agent:ID
	Principal    string    // for whom a model was asked; empty for all other entries
	ExpiresAt    time.Time // zero for never
}

// A BodyReader reads payloads by their hash.
type BodyReader interface {
	// Body returns the bytes of that hash, nil where there are none or they
	// were erased; a [BodyError] where they have another hash. What [Key.Seal] made of
	// them is returned as it is: it opens only at its place.
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
	// NameBody says that an entry of the ledger names a body. The body stays until expires, or for
	// good if that is zero, or until the call that is its subject, or its principal, is removed.
	NameBody(row EntryBodyRow) error
}

// A BodyError says that what is kept under a hash is not what was put there, or that it
// is gone while something still rests on it.
type BodyError struct {
	Hash string
	Gone bool
}

// Error says what to do as well.
func (e *BodyError) Error() string {
	if e.Gone {
		return fmt.Sprintf("what was kept under %s is gone from the database; nothing that rests on it is used: restore a backup, or deny what waits for it", e.Hash)
	}
	return fmt.Sprintf("what is kept under %s was changed in the database: it no longer has that hash; 'mortise ledger verify' checks all that is kept", e.Hash)
}

// Unwrap makes it one of the ways of tampering.
func (*BodyError) Unwrap() error { return ErrTampered }

// A BodyGetter has the bytes of a hash.
type BodyGetter interface {
	Body(ctx context.Context, tenant, hash string) ([]byte, error)
}

// NeededBody returns the body of a hash, which has to be there; nil for no hash.
func NeededBody(ctx context.Context, r BodyGetter, tenant, hash string) ([]byte, error) {
	if hash == "" {
		return nil, nil
	}
	data, err := r.Body(ctx, tenant, hash)
	if err == nil && data == nil {
		err = &BodyError{hash, true}
	}
	return data, err
}

// Preview returns what approvers are shown with a question, nil where that is nothing.
// It has to be there for as long as the answer may still have an effect.
func Preview(ctx context.Context, r BodyGetter, row *ApprovalRow) ([]byte, error) {
	if row.PreviewHash == "" || !row.State.Closed() {
		return NeededBody(ctx, r, row.Tenant, row.PreviewHash)
	}
	return r.Body(ctx, row.Tenant, row.PreviewHash)
}
