package toolset

import (
	"context"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/service/mount"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// mounted returns the runner of mounted servers.
func (e *Toolset) mounted() *mount.Runner {
	return mount.New(mount.Options{
		Processes: e.Runner, Check: e.Check, Egress: e.Egress, Roots: e.Roots, Log: e.Log, Recheck: e.Recheck, Drifted: e.drifted,
		Secret: func(ctx context.Context, tenant, of, name string) (string, bool, error) {
			return e.Vault.Find(ctx, secret.Need{Tenant: tenant, Plugin: of, Name: name, Scope: plugin.SecretOfSystem})
		},
	})
}

// drifted keeps what a mounted server says of its tools now, for a person to look at.
func (e *Toolset) drifted(ctx context.Context, _ string, m *plugin.Manifest, definition []byte) {
	one, err := e.Registry.Repin(registry.By(ctx, "mortise"), m.Name+"@"+m.Version, definition)
	switch {
	case err != nil:
		e.Log.Warn("what a mounted server says of its tools now could not be kept", "plugin", m.Name, "cause", err.Error())
	case one.Held || one.State == registry.Quarantined:
		e.Log.Warn("a mounted server says something else of its tools than was approved", "plugin", m.Name, "next", "mortise plugins diff "+m.Name)
	}
}
