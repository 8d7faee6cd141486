package store

import "time"

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
