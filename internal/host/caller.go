package host

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/plugin"
)

// A Caller is who asks through a surface, as they were authenticated.
type Caller struct {
	Principal  plugin.Principal
	Asker      string   // the identity behind the principal; see [plugin.Call]
	Token      string   // the id of their token
	Scopes     []string // of [Scopes]
	Operations []string // what they may call, as plugin/operation or plugin/*; all if empty

	Expires time.Time // of a token that a provider signed

	Owns bool   // they are the user of the operating system that runs the host, on its owner's socket
	By   string // the owner, where they act on behalf of the principal

	Session    string    // the id of the session of their browser, where that is how they come
	SignedInAt time.Time // when they last proved who they are there; zero if that is not known
	Invited    bool      // the one who invited them has seen the secret by which the account became theirs

	hash string // of the secret that they presented
	home *Host  // of their tenant
}

// Tenant returns the name of the tenant that the credential of the caller is of, "" for who
// has none, who is of the site's own.
func (c *Caller) Tenant() string {
	if c.home == nil {
		return ""
	}
	return c.home.parts.Guard.Tenant
}

// SameRights reports whether two callers are one principal, who may do the same.
func (c *Caller) SameRights(as *Caller) bool {
	return principal.Key(c.Principal) == principal.Key(as.Principal) && slices.Equal(c.Scopes, as.Scopes) && slices.Equal(c.Operations, as.Operations)
}

// Owner returns the owner of the host, as the user of the operating system that runs this
// process is one: with all scopes.
func (h *Host) Owner() Caller {
	p := principal.Parse(h.parts.Guard.Owner)
	p.Scopes = []string{"*"}
	return Caller{Principal: p, Asker: OSUser(), Scopes: Scopes, Owns: true}
}

// OnBehalf returns the owner as they act on behalf of another principal, whom the
// configuration names. The record has both, and who asks stays the owner.
func (h *Host) OnBehalf(as string) (Caller, error) {
	c, g := h.Owner(), h.parts.Guard
	p, err := g.Member(as)
	if err != nil || g.administers(p) {
		return c, err
	}
	c.By, c.Principal = g.Owner, p
	return c, nil
}

// The scopes of tokens: what of a surface one may be used for. Policy decides beyond that.
const (
	ScopeRead      = "read"      // look
	ScopeRun       = "run"       // call operations, and end calls
	ScopeDecide    = "decide"    // ask before a tool of one's own runs, and say how it ended
	ScopeApprove   = "approve"   // decide about approvals
	ScopeConfigure = "configure" // change what the host has
	ScopeAdmin     = "admin"     // all of these
)

// Scopes are all scopes, the narrowest first.
var Scopes = []string{ScopeRead, ScopeRun, ScopeDecide, ScopeApprove, ScopeConfigure, ScopeAdmin}

// Has reports whether a caller has a scope.
func (c Caller) Has(scope string) bool {
	return slices.Contains(c.Scopes, scope) || slices.Contains(c.Scopes, ScopeAdmin)
}

// Covers reports whether a token is for an operation, plugin/operation, as far as its list
// of operations goes.
func (c Caller) Covers(operation string) bool {
	return len(c.Operations) == 0 || slices.ContainsFunc(c.Operations, func(glob string) bool { return pattern.Glob(glob, operation) })
}

// mayCall refuses a call that the token of the caller is not for, on the record. A
// reference that means nothing fits no list.
func (a API) mayCall(ctx context.Context, ref string, t *plugin.Target) error {
	name := ""
	if t != nil {
		name = t.Name()
	}
	return a.host.parts.Guard.covered(ctx, a.caller, ScopeRun, "call", ref, name)
}

// covered refuses what a token is not for, on the record: it has not the scope, or its list
// has not the operation, by name, that would run. ref is what the message says.
func (g *Guard) covered(ctx context.Context, c *Caller, scope, action, ref, name string) error {
	if c == nil || c.Has(scope) && c.Covers(name) {
		return nil
	}
	why := plugin.Errorf(plugin.CodePolicyDenied, "token %s is not for %.200s; create one that is, with --scope %s and --operation", c.Token, ref, scope)
	if c.Token == "" {
		why = plugin.Errorf(plugin.CodePolicyDenied, "what mortise.yaml has of this caller under server.machines is not for %.200s: it lacks the scope %s, or the operation", ref, scope)
	}
	return g.refuse(ctx, c.Principal, use{kind: plugin.EntryTokenRefused, subject: c.proof(), action: action}, why, plugin.Decision{})
}

// letsIn reports whether a caller may let others in as principals; see [Guard.letsIn]. A nil
// caller is the user of this process, and may.
func (c *Caller) letsIn() bool {
	return c == nil || c.Has(ScopeAdmin) && len(c.Operations) == 0
}

// maySetSenders refuses a caller who may not decide who the senders of a channel are. It takes the
// right to link identities, and lets others in.
func (g *Guard) maySetSenders(ctx context.Context, by plugin.Principal, c *Caller, u use) error {
	if err := g.authorise(ctx, by, g.part(IdentitiesPlugin), u); err != nil {
		return err
	}
	return g.letsIn(ctx, c, u)
}

// letsIn refuses, and records the refusal, unless the caller has the scope admin and no list of
// operations. It guards what lets a person or program act as a principal: users, invitations,
// identity links, channels and tokens. The scopes and operations of the caller's token do not
// limit them, and they remain when that token is revoked.
func (g *Guard) letsIn(ctx context.Context, c *Caller, u use) error {
	if c.letsIn() {
		return nil
	}
	why := plugin.Errorf(plugin.CodePolicyDenied, "%s is not for letting others in: %s takes the scope %s, without a list of operations", c.proof(), u.action, ScopeAdmin)
	return g.refuse(ctx, c.Principal, u, why, plugin.Decision{})
}

// proof names what a caller was authenticated by, for the record.
func (c Caller) proof() string { return cmp.Or(c.Token, c.Asker) }
