package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// TenantsPlugin is what stands for the tenants of the site where policy is asked who may
// configure them: it is the site's owner alone, whatever policies say.
const TenantsPlugin = "mortise.tenants"

// maxTenants bounds the tenants of a site.
const maxTenants = 1000

// tenantName is what a tenant can be called: its name is that of a directory too.
var tenantName = pattern.New(`^[a-z0-9][a-z0-9-]{0,62}$`)

// TenantDir returns the directory in which a data directory has the configuration and the
// policies of a tenant beside the site's own.
func TenantDir(home, tenant string) string { return filepath.Join(home, "tenants", tenant) }

// A Tenant is a tenant of the site.
type Tenant struct {
	Name       string    `json:"name"`
	Site       bool      `json:"site"`         // it is the site's own, which is always there
	Directory  string    `json:"-"`            // of its configuration; the command line shows it
	By         string    `json:"by,omitempty"` // who created it
	CreatedAt  time.Time `json:"created_at,omitzero"`
	DisabledAt time.Time `json:"disabled_at,omitzero"` // since when it is not served
}

// Tenants are the tenants of the site, for its owner alone. What is refused is on the record.
type Tenants struct {
	g      *Guard
	by     plugin.Principal
	caller *Caller
	home   string
}

// Tenants returns the tenants of the site.
func (a API) Tenants() Tenants {
	return Tenants{a.host.parts.Guard, a.by, a.caller, a.host.parts.Home}
}

// may refuses everyone but the owner of the site's own tenant, and their tokens below
// admin or for some operations.
func (t Tenants) may(ctx context.Context, action, name string) error {
	u := use{plugin.EntryTenantRefused, name, action, action + " tenants"}
	if t.g.Divided || !t.g.administers(t.by) {
		why := plugin.Errorf(plugin.CodePolicyDenied, "%s may not %s tenants: that is the site's owner alone", principal.Name(t.by), action)
		return t.g.refuse(ctx, t.by, u, why, plugin.Decision{})
	}
	if err := t.g.covered(ctx, t.caller, ScopeAdmin, action+" tenants", "tenants", ""); err != nil {
		return err
	}
	if action == "list" || action == "show" {
		return nil
	}
	return t.g.recent(ctx, t.caller, u)
}

// List returns all tenants, the site's own first and the others by name.
func (t Tenants) List(ctx context.Context) ([]Tenant, error) {
	if err := t.may(ctx, "list", ""); err != nil {
		return nil, err
	}
	rows, err := t.g.Store.Tenants(ctx)
	all := []Tenant{{Name: t.g.Tenant, Site: true, Directory: t.home}}
	for i := range rows {
		all = append(all, t.of(&rows[i]))
	}
	return all, err
}

// Show returns a tenant: not_found where there is none of that name.
func (t Tenants) Show(ctx context.Context, name string) (Tenant, error) {
	if err := t.may(ctx, "show", name); err != nil {
		return Tenant{}, err
	}
	if name == t.g.Tenant {
		return Tenant{Name: name, Site: true, Directory: t.home}, nil
	}
	rows, err := t.g.Store.Tenants(ctx)
	if err != nil {
		return Tenant{}, err
	}
	row := tenantNamed(rows, name)
	if row == nil {
		return Tenant{}, missingTenant(name)
	}
	return t.of(row), nil
}

// Create makes a tenant, with its directory. Errors: policy_denied, invalid_input,
// limit_exceeded.
func (t Tenants) Create(ctx context.Context, name string) (Tenant, error) {
	if err := t.may(ctx, "create", name); err != nil {
		return Tenant{}, err
	}
	switch {
	case !tenantName.MatchString(name):
		return Tenant{}, plugin.Errorf(plugin.CodeInvalidInput, "%.64q is no name of a tenant; it has up to 63 of a-z, 0-9 and -, and does not begin with -", name)
	case name == t.g.Tenant:
		return Tenant{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is the site's own tenant, which is always there", name)
	}
	row := tenantRow{Name: name, By: principal.Name(t.by), CreatedAt: t.g.moment()}
	made := t.of(&row)
	if err := os.MkdirAll(made.Directory, 0o700); err != nil { // first: a tenant without its directory is not served
		return Tenant{}, err
	}
	err := t.g.Store.Write(everywhere(ctx), func(tx Tx) error {
		all, err := tx.Tenants(ctx)
		if err != nil {
			return err
		}
		if tenantNamed(all, name) != nil {
			return plugin.Errorf(plugin.CodeInvalidInput, "there is a tenant %s; 'mortise tenants show %s' shows it", name, name)
		}
		if len(all) >= maxTenants {
			return plugin.Errorf(plugin.CodeLimitExceeded, "there are %d tenants, which is the most that a site has", maxTenants)
		}
		if err := tx.PutTenant(row); err != nil {
			return err
		}
		return t.g.Note(tx, t.by, plugin.EntryTenantCreated, name, map[string]any{})
	})
	if err != nil {
		return Tenant{}, err
	}
	return made, nil
}

// Disable has no one served of a tenant any more: its tokens and sessions are refused, and
// nothing of it runs. What it has stays.
func (t Tenants) Disable(ctx context.Context, name string) (Tenant, error) {
	return t.edit(ctx, "disable", name, plugin.EntryTenantDisabled, func(row *tenantRow) {
		if row.DisabledAt.IsZero() {
			row.DisabledAt = t.g.moment()
		}
	})
}

// Enable has a tenant served again.
func (t Tenants) Enable(ctx context.Context, name string) (Tenant, error) {
	return t.edit(ctx, "enable", name, plugin.EntryTenantEnabled, func(row *tenantRow) { row.DisabledAt = time.Time{} })
}

func (t Tenants) edit(ctx context.Context, action, name string, kind plugin.EntryKind, do func(*tenantRow)) (Tenant, error) {
	if err := t.may(ctx, action, name); err != nil {
		return Tenant{}, err
	}
	if name == t.g.Tenant {
		return Tenant{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is the site's own tenant, which is always there", name)
	}
	var row tenantRow
	err := t.g.Store.Write(everywhere(ctx), func(tx Tx) error {
		row = tenantRow{}
		all, err := tx.Tenants(ctx)
		if err != nil {
			return err
		}
		found := tenantNamed(all, name)
		if found == nil {
			return missingTenant(name)
		}
		row = *found
		do(&row)
		if err := tx.PutTenant(row); err != nil {
			return err
		}
		return t.g.Note(tx, t.by, kind, name, map[string]any{})
	})
	return t.of(&row), err
}

func (t Tenants) of(row *tenantRow) Tenant {
	return Tenant{Name: row.Name, Directory: TenantDir(t.home, row.Name), By: row.By, CreatedAt: row.CreatedAt, DisabledAt: row.DisabledAt}
}

func tenantNamed(all []tenantRow, name string) *tenantRow {
	if i := slices.IndexFunc(all, func(row tenantRow) bool { return row.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func missingTenant(name string) *plugin.Error {
	return plugin.Errorf(plugin.CodeNotFound, "there is no tenant %.64s; 'mortise tenants list' shows those there are", name)
}

// ErrNotServed says that a tenant is not there, or is disabled: to who presents a credential
// of it the credential is not valid.
var ErrNotServed = ErrToken

// IsNotServed reports whether an error is [ErrNotServed].
func IsNotServed(err error) bool { return errors.Is(err, ErrToken) }
