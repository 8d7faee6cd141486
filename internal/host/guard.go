package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// A use is one use of the host's own surface by a principal: what is refused of
// it leaves an entry.
type use struct {
	kind    plugin.EntryKind // of the entry
	subject string           // of the entry
	action  string           // the verb, for the record
	what    string           // what the principal may not do, for the message
}

// Bounds of what an entry of a refusal repeats, which may be unchecked input.
const (
	maxRefusedSubject = 512
	recordTime        = 10 * time.Second
)

// A Guard stands before what a host offers of its own: it asks policy whether a
// principal may use it, and what it refuses leaves an entry.
type Guard struct {
	MostSecrets, MostTokens int // of one principal; any number where it is 0

	Tenant string
	Owner  string         // the principal that the configuration acts for
	Names  []string       // of all principals that the configuration knows; see [Guard.Adopt]
	Self   string         // the principal that the user of this process is; see [Guard.AtTerminal]
	Policy *policy.Engine // of the host; it may be set after the guard was made
	Store  Store

	// Divided is true for a tenant beside the site's own: what is the site's is not there
	// for anyone of it.
	Divided bool

	Subscribe []string // plugins that act for a principal once they have subscribed, * for all; likewise

	OwnApproval bool // the owner may agree to what they asked for, at a terminal; likewise

	SignInAge time.Duration // of what takes a recent sign-in; [SignInAge] if 0; likewise
	Providers []Provider    // with whom people sign in; likewise, and none for a tenant beside the site's own

	adopted atomic.Pointer[adopted]
}

// adopted is what came in the place of fields of a guard that is in use.
type adopted struct {
	names     []string
	signInAge time.Duration
	providers []Provider
	own       bool
}

// Adopt puts other values in the place of Names, SignInAge, Providers and OwnApproval, which no
// one may write while the guard is in use.
func (g *Guard) Adopt(names []string, signInAge time.Duration, providers []Provider, ownApproval bool) {
	g.adopted.Store(&adopted{names, signInAge, providers, ownApproval})
}

// now returns what is in the place of Names, SignInAge, Providers and OwnApproval.
func (g *Guard) now() adopted {
	if a := g.adopted.Load(); a != nil {
		return *a
	}
	return adopted{g.Names, g.SignInAge, g.Providers, g.OwnApproval}
}

// call is who asks, in a host's own words.
func (g *Guard) call(by plugin.Principal) *plugin.Call {
	return &plugin.Call{Tenant: g.Tenant, Principal: by, Origin: plugin.OriginCLI}
}

// administers reports whether a principal is the host's administrator: who runs
// the program on this data directory under no other name, and so has all of it.
func (g *Guard) administers(by plugin.Principal) bool {
	return principal.Name(by) == principal.Name(principal.Parse(g.Owner))
}

// Known reports whether the configuration names a principal of a tenant.
func (g *Guard) Known(tenant string, who plugin.Principal) bool {
	return tenant == g.Tenant && slices.ContainsFunc(g.now().names, func(name string) bool { return principal.Name(principal.Parse(name)) == principal.Name(who) })
}

// Member returns a principal that the configuration names.
func (g *Guard) Member(name string) (plugin.Principal, error) { return memberOf(g.now().names, name) }

// right is what policy says of the use of a part of the host.
func (g *Guard) right(target string, by plugin.Principal) plugin.Decision {
	if d, site := g.ofSite(target); site {
		return d
	}
	return g.Policy.May(policy.Configure, g.part(target), g.call(by))
}

// siteParts are the parts of a host that are of the site as a whole. The owner of the
// site's own tenant has them, and no one of another.
var siteParts = []string{BackupPlugin, MetricsPlugin, RecoveryPlugin, TenantsPlugin}

// ofSite denies a part of the site to who is of another tenant.
func (g *Guard) ofSite(target string) (d plugin.Decision, site bool) {
	if !g.Divided || !slices.Contains(siteParts, target) {
		return d, false
	}
	return plugin.Decision{Verdict: plugin.Deny, Reasons: []string{target + " is the site's, and not of a tenant"}}, true
}

// authorise returns nil where policy lets a principal configure target. Otherwise
// it records the refusal and returns it.
func (g *Guard) authorise(ctx context.Context, by plugin.Principal, target *plugin.Target, u use) error {
	if d, site := g.ofSite(target.Manifest.Name); site {
		return g.require(ctx, by, u, d)
	}
	return g.require(ctx, by, u, g.Policy.May(policy.Configure, target, g.call(by)))
}

// require returns nil where a decision allows the use. Otherwise it records the
// refusal and returns it: nothing waits for an approval here.
func (g *Guard) require(ctx context.Context, by plugin.Principal, u use, d plugin.Decision) error {
	if d.Verdict == plugin.Allow {
		return nil
	}
	return g.refuse(ctx, by, u, refusalOf(by, u.what, d), d)
}

// refuse records that a use was refused, and returns why. Where that cannot be
// recorded it returns the reason for that instead; the use is refused all the same.
// A caller who goes away meanwhile does not prevent the entry.
func (g *Guard) refuse(ctx context.Context, by plugin.Principal, u use, why *plugin.Error, d plugin.Decision) error {
	ctx, cancel := context.WithTimeout(expectNothing(context.WithoutCancel(ctx)), recordTime)
	defer cancel()
	body := map[string]any{"action": u.action, "code": why.Code, "message": secret.Untold(why.Message)}
	if d.Policy != "" {
		body["policy"] = d.Policy
	}
	if why.Code == plugin.CodeNotFound && len(d.Reasons) > 0 { // the caller does not hear this
		body["reason"] = d.Reasons[0]
	}
	err := g.Store.Write(ctx, func(tx Tx) error { return g.Note(tx, by, u.kind, refusedSubject(u.subject), body) })
	if err != nil {
		return err
	}
	return why
}

// refusedSubject returns a subject that no one has checked yet as an entry can
// have it.
func refusedSubject(text string) string {
	text = secret.Untold(text)
	if len(text) > maxRefusedSubject {
		text = text[:maxRefusedSubject]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", "?"), "?")
}

// part stands for a part of the host, such as mortise.agents, where policy is asked
// who may configure it.
func (g *Guard) part(name string) *plugin.Target {
	return &plugin.Target{Manifest: &plugin.Manifest{Name: name, Version: version.Host, Dialect: "native"}}
}

// Note appends an entry about the host itself.
func (g *Guard) Note(tx Tx, by plugin.Principal, kind plugin.EntryKind, subject string, body map[string]any) error {
	raw, err := canonical(body)
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: g.Store.Now().UTC(), Tenant: g.Tenant, Kind: kind, Subject: subject, Principal: principal.Name(by), Body: raw})
	return nil
}

// canonical returns the body of an entry.
func canonical(body map[string]any) (json.RawMessage, error) {
	raw, err := json2.Marshal(body, json2.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("recording it: %w", err)
	}
	return json.RawMessage(raw), nil
}

// refusalOf says that a principal may not do something of the host's own. Such
// things are done or refused at once: nothing waits for a person here.
func refusalOf(by plugin.Principal, what string, d plugin.Decision) *plugin.Error {
	reason := d.Reasons[0]
	if d.Verdict == plugin.AllowWithApproval {
		reason = "it would take an approval, and this cannot wait for one: " + reason
	}
	return plugin.Errorf(plugin.CodePolicyDenied, "%s may not %s: %s", principal.Name(by), what, reason)
}
