package store

import (
	"cmp"
	"context"
	"net/url"
	"time"
)

// An IdentityRow maps an account of another system to a principal of this host.
type IdentityRow struct {
	Tenant        string
	Provider      string // slack, github, ...
	ExternalID    string // what that system calls them
	PrincipalType string // user, service or agent
	PrincipalID   string
	Scopes        []string // what may be done in their name that way
	Adapter       string   // the one adapter that may speak of them; "" for none
	By            string   // who linked them
	Asker         string   // who that is known to be, see [plugin.Call]; "" in links of a release before
	At            time.Time
}

// Linker returns who linked them, as an asker.
func (r *IdentityRow) Linker() string {
	return cmp.Or(r.Asker, "user:"+url.PathEscape(r.By))
}

// An IdentityReader reads links of accounts elsewhere to principals.
type IdentityReader interface {
	// Identity returns the principal that an account of another system belongs to.
	Identity(ctx context.Context, tenant, provider, externalID string) (*IdentityRow, error)
	// Identities returns all links of a tenant, by provider and external id.
	Identities(ctx context.Context, tenant string) ([]IdentityRow, error)
	// IdentitiesOf returns what links one principal, by provider and external id.
	IdentitiesOf(ctx context.Context, tenant, principalType, principalID string) ([]IdentityRow, error)
}

// An IdentityWriter is what a transaction may do to them.
type IdentityWriter interface {
	// PutIdentity links an account of another system, or changes the link.
	PutIdentity(row IdentityRow) error
	// DeleteIdentity reports whether there was such a link to delete.
	DeleteIdentity(tenant, provider, externalID string) (found bool, err error)
}
