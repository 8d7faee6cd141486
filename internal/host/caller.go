package host

import (
	"context"
	"path"
	"slices"

	"github.com/mortise-dev/mortise/plugin"
)

// A Caller is who asks through a surface, as they were authenticated.
type Caller struct {
	Principal  plugin.Principal
	Asker      string   // the identity behind the principal; see [plugin.Call]
	Token      string   // the id of their token
	Scopes     []string // of [Scopes]
	Operations []string // what they may call, as plugin/operation or plugin/*; all if empty
}

// The scopes of tokens: what of a surface one may be used for. Policy decides beyond that.
const (
	ScopeRead      = "read"      // look
	ScopeRun       = "run"       // call operations, and end calls
	ScopeApprove   = "approve"   // decide about approvals
	ScopeConfigure = "configure" // change what the host has
	ScopeAdmin     = "admin"     // all of these
)

// Scopes are all scopes, the narrowest first.
var Scopes = []string{ScopeRead, ScopeRun, ScopeApprove, ScopeConfigure, ScopeAdmin}

// Has reports whether a caller has a scope.
func (c Caller) Has(scope string) bool {
	return slices.Contains(c.Scopes, scope) || slices.Contains(c.Scopes, ScopeAdmin)
}

// Covers reports whether a token is for an operation, plugin/operation, as far as its list
// of operations goes.
func (c Caller) Covers(operation string) bool {
	return len(c.Operations) == 0 || slices.ContainsFunc(c.Operations, func(pattern string) bool {
		fits, err := path.Match(pattern, operation)
		return err == nil && fits
	})
}

// mayCall refuses a call that the token of the caller is not for, on the record. A
// reference that means nothing fits no list.
func (a API) mayCall(ctx context.Context, ref string, t *plugin.Target) error {
	if a.caller == nil {
		return nil
	}
	name := ""
	if t != nil {
		name = t.Name()
	}
	if a.caller.Has(ScopeRun) && a.caller.Covers(name) {
		return nil
	}
	why := plugin.Errorf(plugin.CodePolicyDenied, "token %s is not for calls of %.200s; create one that is, with --scope run and --operation", a.caller.Token, ref)
	return a.host.parts.Guard.refuse(ctx, a.by, use{kind: plugin.EntryTokenRefused, subject: a.caller.Token, action: "call"}, why, plugin.Decision{})
}
