package host

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// SignInAge is how old the sign-in of a browser may be for what takes a recent one, where
// the configuration does not say otherwise.
const SignInAge = 15 * time.Minute

// People returns what gives all identities of one person one name, for approvals. An
// identity that is no user's keeps its own. Of a person's are also the tokens of their
// principal, and the identities that were unlinked.
func (g *Guard) People(ctx context.Context, tenant string) (func(identity string) string, error) {
	rows, err := g.Store.Users(ctx, tenant)
	if err != nil {
		return nil, err
	}
	people := map[string]string{}
	for i := range rows {
		one := "person:" + rows[i].ID
		people[userAsker(personOf(&rows[i]))] = one
		for _, id := range rows[i].Identities {
			people[id.Asker] = one
		}
	}
	owner := userAsker(principal.Parse(g.Owner))
	if people[owner] == "" {
		people[owner] = "person:" + owner
	}
	if own := OSUser(); isOSUser(own) && people[own] == "" { // who runs a host is its owner
		people[own] = people[owner]
	}
	return func(identity string) string {
		if one, known := people[identity]; known {
			return one
		}
		return identity
	}, nil
}

// AtTerminal returns who acts at the command line: the owner, or the user whose user of the
// operating system runs this process. With as, the owner acts on behalf of another
// principal; no other user does.
func (g *Guard) AtTerminal(ctx context.Context, as string) (plugin.Principal, error) {
	rows, err := g.Store.Users(ctx, g.Tenant)
	if err != nil {
		return plugin.Principal{}, err
	}
	g.Self = g.Owner
	asker, shared := OSUser(), false
	for i := range rows {
		for _, id := range rows[i].Identities {
			if g.administers(personOf(&rows[i])) {
				continue
			}
			shared = shared || isOSUser(id.Asker)
			if id.Asker != asker {
				continue
			}
			g.Self = principal.Name(personOf(&rows[i]))
			if !id.UnlinkedAt.IsZero() {
				return plugin.Principal{}, plugin.Errorf(plugin.CodeUnauthenticated, "%s is not %s any more, and is no one else", asker, g.Self)
			}
			if !rows[i].DisabledAt.IsZero() {
				return plugin.Principal{}, plugin.Errorf(plugin.CodeUnauthenticated, "%s is disabled; the owner's 'mortise users enable %s' changes that", g.Self, g.Self)
			}
			if as != "" && principal.Name(principal.Parse(as)) != g.Self {
				why := plugin.Errorf(plugin.CodePolicyDenied, "%s may not act on behalf of %.255s: --as is the owner's", g.Self, as)
				return plugin.Principal{}, g.refuse(ctx, personOf(&rows[i]), use{plugin.EntryUserRefused, as, "act", ""}, why, plugin.Decision{})
			}
			return g.Member(g.Self)
		}
	}
	if shared && !isOSUser(asker) { // it could be one of them
		return plugin.Principal{}, plugin.Errorf(plugin.CodeUnauthenticated, "who runs this command is not known: %s; users of the operating system are users of this host, so it has to be", asker)
	}
	return g.Member(cmp.Or(as, g.Owner))
}

// AtTenant returns who acts at the command line for another tenant: the owner of the site
// alone.
func (g *Guard) AtTenant(ctx context.Context, tenant string) (plugin.Principal, error) {
	who, err := g.AtTerminal(ctx, "")
	if err == nil && !g.administers(who) {
		why := plugin.Errorf(plugin.CodePolicyDenied, "%s may not act for tenant %.63s: --tenant is the site's owner's", principal.Name(who), tenant)
		err = g.refuse(ctx, who, use{plugin.EntryTenantRefused, tenant, "act", ""}, why, plugin.Decision{})
	}
	return who, err
}

// onBehalf returns the principal who acts on behalf of another, ""
// where they act for themselves.
func (a API) onBehalf() string {
	if a.caller != nil {
		return a.caller.By
	}
	self := a.host.parts.Guard.Self
	if self == "" || principal.Name(principal.Parse(self)) == principal.Name(a.by) {
		return ""
	}
	return self
}

// recent refuses, on the record, a caller in a browser who signed in too long ago.
func (g *Guard) recent(ctx context.Context, c *Caller, u use) error {
	if why := g.stale(c); why != nil {
		return g.refuse(ctx, c.Principal, u, why, plugin.Decision{})
	}
	return nil
}

// stale is [Guard.recent] without a record.
func (g *Guard) stale(c *Caller) *plugin.Error {
	age := g.now().signInAge
	if age == 0 {
		age = SignInAge
	}
	if c == nil || c.Session == "" || g.Store.Now().Sub(c.SignedInAt) < age {
		return nil
	}
	return plugin.Errorf(plugin.CodeSignInRequired, "this takes a sign-in of the last %s; sign in again at /auth/sign-in?prompt=login&next=PATH", age)
}

// RightsNow returns the owner with those of its scopes that it still has, and
// the zero Principal if the configuration no longer names it.
func (g *Guard) RightsNow(_ context.Context, tenant string, owner plugin.Principal) plugin.Principal {
	if !g.Known(tenant, owner) {
		return plugin.Principal{}
	}
	now, err := g.Member(principal.Name(owner))
	if err != nil {
		return plugin.Principal{}
	}
	switch {
	case slices.Contains(now.Scopes, "*"):
	case slices.Contains(owner.Scopes, "*"):
		owner.Scopes = now.Scopes
	default:
		owner.Scopes = slices.DeleteFunc(slices.Clone(owner.Scopes), func(scope string) bool { return !slices.Contains(now.Scopes, scope) })
	}
	return owner
}
