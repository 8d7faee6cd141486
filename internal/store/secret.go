package store

import (
	"context"
	"time"
)

// A SecretRow is a secret, encrypted.
type SecretRow struct {
	SecretName
	Ciphertext []byte
	Key        int64 // the N of the key it is encrypted with
	UpdatedAt  time.Time
}

// A SecretName says which secret is meant, and whose it is.
type SecretName struct {
	Tenant  string
	Owner   string // the plugin that it is for, or * for all
	Scope   string // user or system
	Subject string // the user; empty for one of the system
	Name    string
}

// A SecretKeyRow is a key that secrets are encrypted with, itself encrypted with
// one that is kept outside the database.
type SecretKeyRow struct {
	N         int64  // from 1; the last is used for new secrets
	Master    string // the fingerprint of the key outside
	Wrapped   []byte
	CreatedAt time.Time
}

// A SecretFilter says which secrets are listed; what is empty does not narrow.
type SecretFilter struct {
	Tenant string
	Before int64 // only those whose key is an earlier one; 0 for any
	Limit  int   // 0 for all
}

// A SecretReader reads secrets and their keys.
type SecretReader interface {
	// Secret returns a secret as it is kept: encrypted.
	Secret(ctx context.Context, name SecretName) (*SecretRow, error)
	// Secrets returns secrets by tenant and name.
	Secrets(ctx context.Context, filter SecretFilter) ([]SecretRow, error)
	// SecretKeys returns the keys of secrets, the first one first.
	SecretKeys(ctx context.Context) ([]SecretKeyRow, error)
}

// A SecretWriter is what a transaction may do to them.
type SecretWriter interface {
	// PutSecret adds a secret or replaces it, if the key that it is encrypted with
	// is the last one there is, and reports whether it is; if not, nothing is
	// written.
	PutSecret(row SecretRow) (current bool, err error)
	// DeleteSecret reports whether there was such a secret to delete.
	DeleteSecret(name SecretName) (found bool, err error)
	// InsertSecretKey adds a key, unless there is one of its number.
	InsertSecretKey(row SecretKeyRow) (added bool, err error)
	// RewrapSecretKey encrypts key n with another one from outside, and reports
	// whether from was what it was encrypted with; if not, nothing is written.
	RewrapSecretKey(n int64, from, master string, wrapped []byte) (won bool, err error)
	// DeleteSecretKeys deletes the keys before one that no secret is encrypted
	// with any more, and reports whether there were any.
	DeleteSecretKeys(before int64) (found bool, err error)
}
