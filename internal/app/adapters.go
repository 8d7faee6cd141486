package app

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/plugin"
)

// openAdapters returns what takes events from outside.
func (a *App) openAdapters() *adapter.Inbound {
	return adapter.New(adapter.Options{
		Registry: a.Registry, Kernel: a.Kernel, Plans: a.Plans, Store: a.Store, Agent: a.Config.Intents.Agent, Known: a.known,
	})
}

// known reports whether the configuration names the principal. It covers
// only the configuration's own tenant.
func (a *App) known(tenant string, who plugin.Principal) bool {
	name := MemberName(who)
	return tenant == a.Config.Tenant && slices.ContainsFunc(Names(a.Config), func(known string) bool { return MemberName(ParseMember(known)) == name })
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
