package app

import (
	"context"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/plugin"
)

// Agents are what a kernel asks about the calls of agents.
type Agents = kernel.Agents

// A Variation is what a kernel has in place of the host's own parts, so that a
// plugin can be seen where the host does not stand in front of it.
type Variation struct {
	Target func(t *plugin.Target) // changes what a reference was resolved to; nothing where it is nil
	Agents Agents                 // the host's own where it is nil
}

// Varied returns a kernel like the host's own, but for v. Its calls pass the
// same stages and stand in the same ledger.
func (a *App) Varied(v Variation) *kernel.Kernel {
	o := a.Kernel.Options
	if v.Target != nil {
		o.Registry = varied{o.Registry, v.Target}
	}
	if v.Agents != nil {
		o.Agents = v.Agents
	}
	return kernel.New(o)
}

// A varied registry resolves as another does, and changes what it found: in a
// copy, for what it found is everybody's.
type varied struct {
	kernel.Registry
	change func(t *plugin.Target)
}

func (r varied) Resolve(ctx context.Context, ref string) (*plugin.Target, error) {
	return r.changed(r.Registry.Resolve(ctx, ref))
}

func (r varied) ResolveFor(ctx context.Context, ref string, sees registry.Sees) (*plugin.Target, error) {
	return r.changed(r.Registry.ResolveFor(ctx, ref, sees))
}

func (r varied) changed(found *plugin.Target, err error) (*plugin.Target, error) {
	if err != nil {
		return nil, err
	}
	t, op := *found, *found.Operation
	t.Operation = &op
	r.change(&t)
	return &t, nil
}
