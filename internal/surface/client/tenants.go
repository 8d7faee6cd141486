package client

import (
	"context"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Tenants are [host.Tenants].
type Tenants interface {
	List(ctx context.Context) ([]host.Tenant, error)
	Show(ctx context.Context, name string) (host.Tenant, error)
	Create(ctx context.Context, name string) (host.Tenant, error)
	Disable(ctx context.Context, name string) (host.Tenant, error)
	Enable(ctx context.Context, name string) (host.Tenant, error)
}

// Tenants implements [Host].
func (e embedded) Tenants() Tenants { return e.API.Tenants() }

// Tenants implements [Host].
func (r *remote) Tenants() Tenants { return remoteTenants{r} }

type remoteTenants struct{ *remote }

func tenantOf(t rest.Tenant) host.Tenant {
	return host.Tenant{Name: t.Name, Site: t.Site, Directory: t.Directory, By: t.By, CreatedAt: t.CreatedAt, DisabledAt: t.DisabledAt}
}

// List implements [Tenants].
func (r remoteTenants) List(ctx context.Context) ([]host.Tenant, error) {
	var all rest.Tenants
	err := r.get(ctx, &all, nil, "tenants")
	return each(all.Tenants, tenantOf), err
}

// Show implements [Tenants].
func (r remoteTenants) Show(ctx context.Context, name string) (host.Tenant, error) {
	var t rest.Tenant
	err := r.get(ctx, &t, nil, "tenants", name)
	return tenantOf(t), err
}

// Create implements [Tenants].
func (r remoteTenants) Create(ctx context.Context, name string) (host.Tenant, error) {
	return r.changed(ctx, map[string]string{"name": name}, "tenants")
}

// Disable implements [Tenants].
func (r remoteTenants) Disable(ctx context.Context, name string) (host.Tenant, error) {
	return r.changed(ctx, nil, "tenants", name+":disable")
}

// Enable implements [Tenants].
func (r remoteTenants) Enable(ctx context.Context, name string) (host.Tenant, error) {
	return r.changed(ctx, nil, "tenants", name+":enable")
}

func (r remoteTenants) changed(ctx context.Context, body any, path ...string) (host.Tenant, error) {
	var t rest.Tenant
	err := r.post(ctx, body, &t, path...)
	return tenantOf(t), err
}
