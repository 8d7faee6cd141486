package store

import "time"

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
