package adapter

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what an [Inbound] needs of the one that keeps links of identities.
type Store interface {
	Identity(ctx context.Context, tenant, provider, externalID string) (*identityRow, error)
	Write(ctx context.Context, fn func(Tx) error) error
}

type (
	Tx          = store.Tx
	identityRow = store.IdentityRow
)
