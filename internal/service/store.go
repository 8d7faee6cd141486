package service

import (
	"context"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what a [Broker] needs of the one that keeps what plugins keep.
type Store interface {
	store.KVReader
	store.IdentityReader
	Write(ctx context.Context, fn func(ledger.Tx) error) error
}

type (
	kvKey       = store.KVKey
	kvRow       = store.KVRow
	identityRow = store.IdentityRow
)
