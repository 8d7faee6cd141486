package installed

import (
	"context"

	"github.com/mortise-dev/mortise/internal/store"
)

// A Store is what [Records] and packages are kept in.
type Store interface {
	store.BodyGetter
	Snapshot(ctx context.Context, fn func(reader) error) error
	Write(ctx context.Context, fn func(Tx) error) error
}

type (
	reader = store.Reader
	Tx     = store.Tx

	packageRow  = store.PackageRow
	pluginRow   = store.PluginRow
	pluginState = store.PluginState
	entryFilter = store.EntryFilter
)
