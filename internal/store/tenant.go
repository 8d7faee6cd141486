package store

import (
	"context"
	"time"
)

// A TenantRow is a tenant beside the one that the configuration of the site names.
type TenantRow struct {
	Name       string
	By         string // the principal that created it
	CreatedAt  time.Time
	DisabledAt time.Time // zero while it is served
}

// A TenantReader reads tenants, and which plugins each of them has.
type TenantReader interface {
	// Tenants returns all tenants that were created, by name.
	Tenants(ctx context.Context) ([]TenantRow, error)
	// TenantPlugins returns all versions of all plugins of a tenant that was created, by
	// name and then in the order they were registered. Those of the site's own tenant are
	// in [PluginReader].
	TenantPlugins(ctx context.Context, tenant string) ([]PluginRow, error)
	// PackageHeld reports whether a plugin that is installed has a package, in any tenant.
	PackageHeld(ctx context.Context, digest string) (bool, error)
}

// A TenantWriter is what a transaction may do to them.
type TenantWriter interface {
	// PutTenant adds a tenant, or replaces what is known of it.
	PutTenant(row TenantRow) error
	// PutTenantPlugin adds a version of a plugin of a tenant, or replaces it.
	PutTenantPlugin(tenant string, row PluginRow) error
	// SetTenantPluginState reports whether there was such a version to change.
	SetTenantPluginState(tenant, name, version string, state PluginState) (found bool, err error)
	// DeleteTenantPlugin reports whether there was such a version to delete.
	DeleteTenantPlugin(tenant, name, version string) (found bool, err error)
}

// AllTenants is what stands in place of a tenant's name for work of the site as a whole.
// No tenant has that name.
const AllTenants = "*"

type tenantKey struct{}

// InTenant returns a context in which the rows of one tenant alone are there, where the
// database keeps tenants apart by itself.
func InTenant(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, tenantKey{}, tenant)
}

// Everywhere returns a context for work of the site as a whole: what is due, recovery,
// verification, and what the heads of the ledger sign. Every use of it names that work.
func Everywhere(ctx context.Context) context.Context { return InTenant(ctx, AllTenants) }

// TenantOf returns what [InTenant] put into a context, "" where nothing did.
func TenantOf(ctx context.Context) string {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	return tenant
}

// A Divisible store can be seen as one tenant sees it.
type Divisible interface {
	// For returns the store for the work of one tenant. In PostgreSQL the rows of others
	// are not there, whatever a statement asks for; in SQLite the statements alone keep
	// tenants apart. It is closed with the store that it is of.
	For(tenant string) Store
}
