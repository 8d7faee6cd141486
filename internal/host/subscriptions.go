package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/plugin"
)

// A subscription is a principal's word that a plugin may act for them: with their accounts
// and their secrets. Without a word they have it, unless the configuration asks for one.

// personal reports whether a plugin acts with what is a principal's own, so that they may
// subscribe to it.
func personal(m *plugin.Manifest) bool {
	return len(m.Identities) > 0 || slices.ContainsFunc(m.Operations, func(op *plugin.Operation) bool {
		return op.Auth != nil || slices.ContainsFunc(bridge.SecretNeeds(m, op), func(need bridge.SecretNeed) bool { return need.AllowedScope != plugin.SecretOfSystem })
	})
}

// asked reports whether the configuration has principals subscribe to a plugin first.
func (g *Guard) askedToSubscribe(name string) bool {
	return slices.ContainsFunc(g.Subscribe, func(one string) bool { return one == "*" || strings.EqualFold(one, name) })
}

func (g *Guard) subscriptionKey(by plugin.Principal, name string) kvKey {
	return kvKey{Tenant: g.Tenant, Owner: ":host", Scope: "subscriptions", Namespace: principal.Name(by), Key: strings.ToLower(name)}
}

// subscribed reports whether a plugin may act for a principal.
func (g *Guard) subscribed(ctx context.Context, by plugin.Principal, m *plugin.Manifest) (bool, error) {
	asked := g.askedToSubscribe(m.Name)
	if !asked && !personal(m) {
		return true, nil
	}
	row, err := g.Store.KV(ctx, g.subscriptionKey(by, m.Name))
	if err != nil || row == nil {
		return !asked, err
	}
	return string(row.Value) == "on", nil
}

// Subscribed refuses a call of a plugin that may not act for its principal: they unsubscribed
// from it, or have not subscribed where the configuration has them do so first. It holds for
// calls that others make in their name too: feeds, agents and plans.
func (g *Guard) Subscribed(ctx context.Context, t *plugin.Target, call *plugin.Call) error {
	on, err := g.subscribed(ctx, call.Principal, t.Manifest)
	if err != nil || on {
		return err
	}
	e := plugin.Errorf(plugin.CodeDisabled, "%s is not subscribed to %s; 'mortise plugins subscribe %s' lets it act in that name", principal.Name(call.Principal), t.Manifest.Name, t.Manifest.Name)
	e.Details = json.RawMessage(fmt.Sprintf(`{"reason":%q}`, plugin.ReasonSubscription))
	return e
}

// Subscribe lets a plugin act for them, with their accounts and secrets.
func (p Plugins) Subscribe(ctx context.Context, name string) (PluginNeeds, error) {
	return p.subscribe(ctx, name, "on")
}

// Unsubscribe keeps a plugin from acting for them: calls in their name are refused, those
// that others make too. Those that were begun go on.
func (p Plugins) Unsubscribe(ctx context.Context, name string) (PluginNeeds, error) {
	return p.subscribe(ctx, name, "off")
}

func (p Plugins) subscribe(ctx context.Context, name, word string) (PluginNeeds, error) {
	shown, err := p.show(ctx, name, "subscribe to")
	if err != nil {
		return PluginNeeds{}, err
	}
	if !personal(shown.Manifest) && !p.g.askedToSubscribe(shown.Name) {
		return PluginNeeds{}, plugin.Errorf(plugin.CodeInvalidInput, "%s acts with no account and no secret of yours: there is nothing to subscribe to", shown.Name)
	}
	err = p.g.Store.Write(ctx, func(tx Tx) error {
		if err := tx.PutKV(kvRow{KVKey: p.g.subscriptionKey(p.by, shown.Name), Value: []byte(word), UpdatedAt: p.g.moment()}); err != nil {
			return err
		}
		return p.g.Note(tx, p.by, plugin.EntrySubscription, shown.Name, map[string]any{"subscribed": word == "on"})
	})
	if err != nil {
		return PluginNeeds{}, err
	}
	return p.Needs(ctx, name)
}

// PluginNeeds are what a plugin needs of one principal and of the host before it can do all it
// does. No value of a secret is among them.
type PluginNeeds struct {
	Subscribed    bool          `json:"subscribed"`    // it may act for them
	Subscription  string        `json:"subscription"`  // none, where there is nothing to subscribe to; optional; required
	Secrets       []SecretState `json:"secrets"`       // and whether they are there
	Accounts      []AccountNeed `json:"accounts"`      // likewise
	Permissions   []string      `json:"permissions"`   // scopes that they lack
	Configuration []string      `json:"configuration"` // what an administrator has yet to do, in words
}

// An AccountNeed is an account that operations of a plugin act with.
type AccountNeed struct {
	Operation string   `json:"operation"` // "" for the plugin as a whole
	Provider  string   `json:"provider"`
	Mode      string   `json:"mode,omitempty"`
	Scopes    []string `json:"scopes"`
	Optional  bool     `json:"optional"`
	Problem   string   `json:"problem,omitempty"` // why a call would be refused for it, and what to do
}

// Ready reports whether nothing is missing that is not optional.
func (n *PluginNeeds) Ready() bool {
	missing := slices.ContainsFunc(n.Secrets, func(s SecretState) bool { return s.There == "" && !s.Optional })
	missing = missing || slices.ContainsFunc(n.Accounts, func(a AccountNeed) bool { return a.Problem != "" && !a.Optional })
	return n.Subscribed && !missing && len(n.Permissions)+len(n.Configuration) == 0
}

// Needs returns what a plugin needs before it can do for them all that they may see of it.
func (p Plugins) Needs(ctx context.Context, name string) (PluginNeeds, error) {
	n := PluginNeeds{Subscription: "none", Secrets: []SecretState{}, Accounts: []AccountNeed{}, Permissions: []string{}, Configuration: []string{}}
	shown, err := p.show(ctx, name, "see")
	if err != nil {
		return n, err
	}
	m := shown.Manifest
	switch {
	case p.g.askedToSubscribe(m.Name):
		n.Subscription = "required"
	case personal(m):
		n.Subscription = "optional"
	}
	if n.Subscribed, err = p.g.subscribed(ctx, p.by, m); err != nil {
		return n, err
	}
	for _, op := range m.Operations {
		for _, scope := range op.Permissions {
			if !slices.Contains(p.by.Scopes, scope) && !slices.Contains(p.by.Scopes, "*") && !slices.Contains(n.Permissions, scope) {
				n.Permissions = append(n.Permissions, scope)
			}
		}
		states, err := secretStates(ctx, p.parts.Vault, p.g.Tenant, p.by, m, op)
		if err != nil {
			return n, err
		}
		n.Secrets = append(n.Secrets, states...)
		if op.Auth != nil {
			n.Accounts = append(n.Accounts, p.account(ctx, m, op, *op.Auth))
		}
		if op.NeedsModel && !p.models {
			n.Configuration = append(n.Configuration, op.Name+" asks a language model, and none is configured (models in mortise.yaml)")
		}
	}
	for _, auth := range m.Identities {
		n.Accounts = append(n.Accounts, p.account(ctx, m, &plugin.Operation{}, auth))
	}
	for _, tool := range m.Requires.Tools {
		if _, err := p.registry.Find(ctx, strings.SplitN(tool, "/", 2)[0]); err != nil {
			n.Configuration = append(n.Configuration, "it calls "+tool+": "+plugin.AsError(err).Message)
		}
	}
	return n, nil
}

// account says whether an account is there. Nothing is asked of its provider but a renewal.
func (p Plugins) account(ctx context.Context, m *plugin.Manifest, op *plugin.Operation, auth plugin.Auth) AccountNeed {
	a := AccountNeed{Operation: op.Name, Provider: auth.Provider, Mode: auth.Mode, Scopes: append([]string{}, auth.Scopes...), Optional: auth.Optional}
	one := auth
	one.Optional = false
	t := &plugin.Target{Manifest: &plugin.Manifest{Name: m.Name, Version: m.Version, Contract: m.Contract}, Operation: &plugin.Operation{Name: op.Name, Auth: &one}}
	if err := bridge.CheckAccounts(ctx, p.parts.Accounts, t, p.g.call(p.by)); err != nil {
		a.Problem = plugin.AsError(err).Message
	}
	return a
}
