package secret

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what a [Vault] needs of the one that keeps secrets.
type Store interface {
	store.SecretReader
	Write(ctx context.Context, fn func(Tx) error) error
}

// A Tx is a transaction of the store, and a Name says which secret is meant.
type (
	Tx   = store.Tx
	Name = store.SecretName

	secretRow    = store.SecretRow
	secretKeyRow = store.SecretKeyRow
	secretFilter = store.SecretFilter
)

// keeping returns a context whose reads keep the rows from others until the transaction ends.
func keeping(ctx context.Context) context.Context { return store.Keeping(ctx) }
