package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/plugin"
)

// openAdapters returns what takes events from outside.
func (a *App) openAdapters() *adapter.Inbound {
	return adapter.New(adapter.Options{
		Registry: a.Registry, Kernel: a.Kernel, Plans: a.Plans, Store: a.Store, Agent: a.Config.Intents.Agent, Known: a.guard.Known,
	})
}

// kind returns the kind of the operation that a reference means, "" where it
// means none.
func (a *App) kind(ctx context.Context, ref string) plugin.Kind {
	t, err := a.Registry.Resolve(ctx, ref)
	if err != nil {
		return ""
	}
	return t.Operation.Kind
}
