package toolset

import (
	"context"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/service/mount"
	"github.com/mortise-dev/mortise/internal/service/mount/oauth"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// mounted returns the runner of mounted servers.
func (e *Toolset) mounted() *mount.Runner {
	return mount.New(mount.Options{
		Processes: e.Runner, Check: e.Check, Egress: e.Egress, Roots: e.Roots, Log: e.Log, Recheck: e.Recheck, Refused: e.Refused, Drifted: e.drifted, Grants: grants{e},
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

// grants keep in the vault what signing in to mounted servers resulted in.
type grants struct{ *Toolset }

var _ mount.Grants = grants{}

// Grant implements [mount.Grants].
func (g grants) Grant(ctx context.Context, tenant, of string) (string, bool, error) {
	return g.Vault.Find(ctx, secret.Need{Tenant: tenant, Plugin: oauth.SecretOwner, Name: of, Scope: secret.Own})
}

// Keep implements [mount.Grants].
func (g grants) Keep(ctx context.Context, tenant, of, was, text string) (bool, error) {
	return g.Vault.Replace(ctx, secret.Name{Tenant: tenant, Owner: oauth.SecretOwner, Scope: secret.System, Name: of}, was, text, secret.By{Principal: "mortise"})
}

// Hide implements [mount.Grants].
func (g grants) Hide(values ...string) error { return g.Vault.Learn(values...) }

// Lock implements [mount.Grants].
func (g grants) Lock(ctx context.Context, tenant, of string) (release func(), err error) {
	return g.Toolset.Lock(ctx, tenant+"\x00"+oauth.SecretOwner+"\x00"+of)
}
