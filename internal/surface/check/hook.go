package check

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// hooks checks that a plugin that runs as a process answers each event that it
// hears, within its deadline, as an agent would ask it.
func (c *checker) hooks(ctx context.Context, s registry.Shown) error {
	if s.Manifest.Runner.Kind != "process" || len(s.Manifest.Hooks) == 0 {
		return nil
	}
	t, err := c.host.Registry.Find(ctx, s.Name+"@"+s.Version)
	if err != nil {
		return err
	}
	opened, err := c.host.Agents.Plugins.Hook(ctx, agent.Owner{Tenant: c.host.Config.Tenant, Agent: "support"}, agent.Hooked{Plugin: s.Name, Target: t})
	if err != nil {
		return err
	}
	h := handlers{c, s.Name, packageOf(s).Dir, opened.Subscriptions(), &journal{}}
	if err := h.check(ctx); err != nil {
		return err
	}
	return opened.Close()
}

// unsaid returns an error if the code has a hook that the manifest does not
// name: the host would never call it.
func unsaid(m *plugin.Manifest, d contract.Described) error {
	for _, said := range d.Hooks {
		if !slices.ContainsFunc(m.Hooks, func(h plugin.Hook) bool { return h.Event == said.Event }) {
			return plugin.Errorf(plugin.CodeInvalidInput, "the code has a hook of %s and the manifest does not name it, so it would never hear of one: add it under hooks", said.Event)
		}
	}
	return nil
}
