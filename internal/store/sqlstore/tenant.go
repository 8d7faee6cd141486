package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

const tenantPluginColumns = `tenant, ` + pluginColumns

const putTenant = `INSERT INTO tenants (name, created_by, created_at, disabled_at) VALUES (?, ?, ?, ?)
	ON CONFLICT (name) DO UPDATE SET created_by = excluded.created_by, created_at = excluded.created_at, disabled_at = excluded.disabled_at`

const putTenantPlugin = `INSERT INTO tenant_plugins (` + tenantPluginColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (tenant, name, version) DO UPDATE SET package_digest = excluded.package_digest, path = excluded.path, manifest = excluded.manifest,
		state = excluded.state, approved_by = excluded.approved_by, dev = excluded.dev, registered_at = excluded.registered_at`

// Tenants implements [store.Reader].
func (r *reader) Tenants(ctx context.Context) ([]store.TenantRow, error) {
	q := selectFrom("name, created_by, created_at, disabled_at", "tenants")
	q.orderBy("name")
	return all(rows(ctx, r, q, func(rows *record, t *store.TenantRow) error {
		var created, disabled int64
		err := rows.Scan(&t.Name, &t.By, &created, &disabled)
		t.CreatedAt, t.DisabledAt = fromMicros(created), fromMicros(disabled)
		return err
	}))
}

// TenantPlugins implements [store.Reader].
func (r *reader) TenantPlugins(ctx context.Context, tenant string) ([]store.PluginRow, error) {
	q := selectFrom(pluginColumns, "tenant_plugins")
	q.where("tenant = ?", tenant)
	q.orderBy("name, registered_at, version")
	return all(rows(ctx, r, q, scanPlugin))
}

// PackageHeld implements [store.Reader]. A package is the site's: which tenant has it does
// not matter.
func (r *reader) PackageHeld(ctx context.Context, digest string) (bool, error) {
	for _, table := range [...]string{"plugins", "tenant_plugins"} {
		q := selectFrom("name", table)
		q.where("package_digest = ?", digest)
		q.where("dev = 0")
		q.limit(1)
		name, err := one(rows(store.Everywhere(ctx), r, q, func(rows *record, name *string) error { return rows.Scan(name) }))
		if err != nil || name != nil {
			return name != nil, err
		}
	}
	return false, nil
}

// PutTenant implements [store.Tx].
func (t *tx) PutTenant(r store.TenantRow) error {
	_, err := t.Exec(putTenant, r.Name, r.By, micros(r.CreatedAt), micros(r.DisabledAt))
	return err
}

// PutTenantPlugin implements [store.Tx].
func (t *tx) PutTenantPlugin(tenant string, r store.PluginRow) error {
	_, err := t.Exec(putTenantPlugin, tenant, r.Name, r.Version, r.PackageDigest, r.Path, string(r.Manifest), string(r.State), r.ApprovedBy,
		flag(r.Dev), micros(r.RegisteredAt))
	return err
}

// SetTenantPluginState implements [store.Tx].
func (t *tx) SetTenantPluginState(tenant, name, version string, state store.PluginState) (bool, error) {
	return t.Exec(`UPDATE tenant_plugins SET state = ? WHERE tenant = ? AND name = ? AND version = ?`, string(state), tenant, name, version)
}

// DeleteTenantPlugin implements [store.Tx].
func (t *tx) DeleteTenantPlugin(tenant, name, version string) (bool, error) {
	return t.Exec(`DELETE FROM tenant_plugins WHERE tenant = ? AND name = ? AND version = ?`, tenant, name, version)
}

// within returns ctx with whose rows a question is about: a tenant's, or all where it is
// for work of the site.
func within(ctx context.Context, tenant string) context.Context {
	if store.TenantOf(ctx) == store.AllTenants {
		return ctx
	}
	return store.InTenant(ctx, tenant)
}

// of bounds a query to the rows of the tenant that is asked for. Where none is, it is bound to
// that of the part of the store that is asked; work of the site has the rows of all.
func (q *query) of(ctx context.Context, r *reader, tenant string) {
	if tenant == "" && r.part != nil && store.TenantOf(ctx) != store.AllTenants {
		tenant = r.part()
	}
	if tenant != "" && tenant != store.AllTenants {
		q.where("tenant = ?", tenant)
	}
}

// A division is a store as one tenant sees it.
type division struct {
	reader
	of     *Store
	tenant string
}

// For implements [store.Divisible].
func (s *Store) For(tenant string) store.Store {
	d := &division{reader: s.reader, of: s, tenant: tenant}
	d.part = func() string { return tenant }
	d.query = func(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
		return s.query(within(ctx, tenant), query, args...)
	}
	return d
}

// Now implements [store.Clock].
func (d *division) Now() time.Time { return d.of.Now() }

// Write implements [store.Store].
func (d *division) Write(ctx context.Context, fn func(store.Tx) error) error {
	fn, settle := store.Expecting(ctx, fn)
	err := d.of.write(&request{ctx: ctx, fn: fn, tenant: store.TenantOf(within(ctx, d.tenant))})
	settle(err)
	return err
}

// WriteLast implements [store.Store]. The process is done when the store of the site is.
func (d *division) WriteLast(ctx context.Context, fn func(store.Tx) error) error {
	if fn == nil {
		return nil
	}
	return d.Write(ctx, fn)
}

// Snapshot implements [store.Store].
func (d *division) Snapshot(ctx context.Context, fn func(store.Reader) error) error {
	return d.of.snapshot(ctx, d.tenant, fn)
}

// Recover implements [store.Store]. Nodes are the site's.
func (d *division) Recover(context.Context, func(store.Tx, store.NodeRow) error) (int, error) {
	return 0, nil
}

// Watch implements [store.Store].
func (d *division) Watch(fn func()) (stop func(), all bool) { return d.of.Watch(fn) }

// Node implements [store.Store].
func (d *division) Node() string { return d.of.Node() }

// Close implements [store.Store]. The store of the site is closed by who opened it.
func (d *division) Close() error { return nil }
