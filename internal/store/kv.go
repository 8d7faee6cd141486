package store

import (
	"context"
	"time"
)

// A KVRow is a value that a plugin keeps under a key.
type KVRow struct {
	KVKey
	Value     []byte
	Labels    []string  // what it is tainted with
	ExpiresAt time.Time // zero for one that is kept for good
	UpdatedAt time.Time
	MAC       string // "" for those of which the ledger signs the table; see [KVKey.OfHost]
}

// A KVKey says where a value is kept.
type KVKey struct {
	Tenant    string
	Owner     string // the plugin
	Scope     string // for whom it keeps this
	Namespace string
	Key       string
}

// A KVReader reads values under keys.
type KVReader interface {
	// KV returns what is kept under a key. Whether it has expired is the caller's
	// to judge.
	KV(ctx context.Context, key KVKey) (*KVRow, error)
}

// A KVWriter is what a transaction may do to them.
type KVWriter interface {
	// PutKV keeps a value under a key, in place of an earlier one.
	PutKV(row KVRow) error
	// DeleteKV reports whether there was something under the key.
	DeleteKV(key KVKey) (found bool, err error)
	// DeleteKVs deletes everything whose key begins as that of begin, and is the
	// same as it otherwise, and reports whether there was anything.
	DeleteKVs(begin KVKey) (found bool, err error)
}
