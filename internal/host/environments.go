package host

import (
	"context"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/environment"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// Environment gives a plugin what its requirements.txt asks for, installed for it alone: from
// the wheels in the directory from, or where that is empty from where the configuration says.
// It may be called once the difference is approved, where an earlier version of it was.
// The configuration must allow it, and they must be ones who may configure the plugin.
func (p Plugins) Environment(ctx context.Context, ref, from string) (registry.Registered, error) {
	if err := p.mayFurnish(ctx, ref); err != nil {
		return registry.Registered{}, err
	}
	c, python := p.environments()
	if !c.Allow {
		u := use{kind: plugin.EntryPluginRefused, subject: ref, action: "install for"}
		return registry.Registered{}, p.g.refuse(ctx, p.by, u, plugin.Errorf(plugin.CodePolicyDenied,
			"nothing is installed for plugins here: plugins.environments.allow in mortise.yaml switches that on"), plugin.Decision{})
	}
	if from != "" && !filepath.IsAbs(from) {
		return registry.Registered{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is no absolute path", from)
	}
	o := environment.Options{Dir: from, Index: c.Index, Hosts: c.Hosts, Unhashed: c.Unhashed, Timeout: time.Duration(c.Timeout), MaxBytes: int64(c.Size), Python: python}
	if from == "" {
		o.Dir = c.Wheels
	}
	return p.registry.Environment(p.named(ctx), ref, func(ctx context.Context, requirements []byte, dir, temp string) (*plugin.Environment, error) {
		return environment.Build(ctx, o, requirements, dir, temp)
	})
}

// RemoveEnvironment takes away from a plugin what was installed for it. That needs no
// configuration: it takes nothing but files away, and is a change like any other.
func (p Plugins) RemoveEnvironment(ctx context.Context, ref string) (registry.Registered, error) {
	if err := p.mayFurnish(ctx, ref); err != nil {
		return registry.Registered{}, err
	}
	return p.registry.Environment(p.named(ctx), ref, nil)
}

func (p Plugins) mayFurnish(ctx context.Context, ref string) error {
	if err := p.MayChange(ctx, "install for", ref); err != nil {
		return err
	}
	return p.g.recent(ctx, p.caller, use{kind: plugin.EntryPluginRefused, subject: ref, action: "install for"})
}
