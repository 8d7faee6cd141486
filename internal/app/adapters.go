package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// openAdapters returns what takes events from outside.
func (a *App) openAdapters() *adapter.Inbound {
	return adapter.New(adapter.Options{
		Registry: a.Registry, Policy: a.Policy, Kernel: a.Kernel, Plans: a.Plans, Store: a.own, Agent: a.Config.Intents.Agent, Known: a.guard.Known,
	})
}

// kind returns the kind of the operation that a call means, "" where it means
// none; hidden is what its principal hears of one that they do not see.
func (a *App) kind(ctx context.Context, call *plugin.Call) (kind plugin.Kind, hidden error) {
	t, err := a.Registry.Resolve(ctx, call.Operation)
	if err != nil {
		return "", nil
	}
	if t.Operation.Kind != plugin.Operator { // no operator is refused for its kind
		_, hidden = a.Registry.ResolveFor(ctx, call.Operation, a.seesOf(call))
	}
	return t.Operation.Kind, hidden
}

// seesOf returns what the caller of a call may see.
func (a *App) seesOf(call *plugin.Call) registry.Sees {
	return func(m *plugin.Manifest) ([]*plugin.Operation, bool) { return a.Policy.Visible(m, call) }
}
