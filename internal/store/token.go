package store

import (
	"context"
	"time"
)

// A TokenRow is an API token: who presents its secret acts as a principal.
type TokenRow struct {
	Tenant        string
	ID            string // the public part of the token
	Hash          string // SHA-256 of the secret, in hexadecimal
	Name          string // what it is for
	PrincipalType string // user or service
	PrincipalID   string
	Scopes        []string // what of the API it may be used for
	Operations    []string // the operations it may call, as plugin/operation or plugin/*; all if empty
	By            string   // the principal that created it
	Asker         string   // the authenticated users who have seen the secret; see [plugin.Call]
	CreatedAt     time.Time
	ExpiresAt     time.Time // zero if it does not expire
	RevokedAt     time.Time // zero while it is in force
	UsedAt        time.Time // zero until it is used; not signed
	UsedFrom      string    // the address of that use; not signed
}

// A TokenReader reads API tokens.
type TokenReader interface {
	// Token returns the token of an id, which belongs to one tenant alone.
	Token(ctx context.Context, id string) (*TokenRow, error)
	// Tokens returns all tokens of a tenant, by id.
	Tokens(ctx context.Context, tenant string) ([]TokenRow, error)
}

// A TokenWriter is what a transaction may do to them.
type TokenWriter interface {
	// PutToken keeps a token, in place of an earlier one of its id and tenant. The last
	// use stays as it is.
	PutToken(row TokenRow) error
	// UseToken records the last use of a token.
	UseToken(tenant, id string, at time.Time, from string) error
}
