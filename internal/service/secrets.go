package service

import (
	"context"
	"encoding/json"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	secretsName   = "secrets"
	secretsGet    = "secrets.get"
	secretsSet    = "secrets.set"
	secretsDelete = "secrets.delete"
	secretWrite   = "secret_write"
)

// Secrets are what plugins may read and set.
type Secrets interface {
	// Find returns a secret of the call's principal, or of the system where the
	// scope allows it, with the labels that it was kept with.
	Find(ctx context.Context, t *plugin.Target, call *plugin.Call, name, scope string) (value secret.Value, found bool, err error)
	// Ready is asked before Keep.
	Ready(ctx context.Context) error
	// Keep keeps a secret of the call's principal for the plugin alone.
	Keep(ctx context.Context, tx ledger.Tx, t *plugin.Target, call *plugin.Call, name string, value secret.Value) error
	// Drop deletes what Keep kept, and reports whether there was anything, and its
	// labels.
	Drop(ctx context.Context, tx ledger.Tx, t *plugin.Target, call *plugin.Call, name string) (found bool, labels []string, err error)
}

func secretGetTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		Name string `json:"name"`
	}
	if err := decode(secretsGet, args, &in); err != nil {
		return task{}, err
	}
	scope, err := g.secretScope(secretsGet, in.Name)
	if err != nil {
		return task{}, err
	}
	if g.broker.Secrets == nil {
		return task{}, nowhere(secretsGet)
	}
	return task{class: Read, do: func(ctx context.Context) (any, error) {
		if would, set := keptDry[drySecret](g, g.secretKey(in.Name)); set && would.value != nil && scope != plugin.SecretOfSystem {
			g.heard(would.labels)
			return stored{true, would.value}, nil
		}
		value, found, err := g.secret(ctx, in.Name, scope)
		if err != nil || !found {
			return stored{}, err
		}
		raw, err := json2.Marshal(value)
		return stored{true, json.RawMessage(raw)}, err
	}}, nil
}

// secret returns a secret. The caller's answer inherits its labels.
func (g *grant) secret(ctx context.Context, name, scope string) (value string, found bool, err error) {
	g.confided.Store(true)
	is, found, err := g.broker.Secrets.Find(ctx, g.target, g.call, name, scope)
	g.heard(is.Labels)
	return is.Text, found, err
}

// secretLabels are those of a secret that the call sets: its own, and those of all
// that it has heard.
func (g *grant) secretLabels() []string { return plugin.Labels(g.call.Labels, g.Labels()) }

func secretSetTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	if err := decode(secretsSet, args, &in); err != nil {
		return task{}, err
	}
	scope, err := g.secretScope(secretsSet, in.Name)
	if err != nil {
		return task{}, err
	}
	if scope == plugin.SecretOfSystem {
		return task{}, plugin.Errorf(plugin.CodeServiceDenied, "%s: %s is a secret of the system, which an administrator sets: mortise secrets set %s --system --plugin %s", secretsSet, in.Name, in.Name, g.target.Manifest.Name)
	}
	if g.broker.Secrets == nil || g.broker.Store == nil {
		return task{}, nowhere(secretsSet)
	}
	// A hash of the value would let an attacker confirm a guess.
	name, err := json2.Marshal(map[string]string{"name": in.Name})
	if err != nil {
		return task{}, err
	}
	return task{class: Local, effect: secretWrite, request: json.RawMessage(name),
		dry:    func(ctx context.Context) (any, *plugin.Change, error) { return g.setDry(ctx, in.Name, in.Value) },
		before: g.broker.Secrets.Ready,
		commit: func(ctx context.Context, tx ledger.Tx) (any, error) {
			return nothing{}, g.broker.Secrets.Keep(ctx, tx, g.target, g.call, in.Name, secret.Value{Text: in.Value, Labels: g.secretLabels()})
		}}, nil
}

// secretDeleteTask deletes what the plugin, or a person for it, set for the call's
// principal.
func secretDeleteTask(g *grant, args json.RawMessage) (task, error) {
	var in struct {
		Name string `json:"name"`
	}
	if err := decode(secretsDelete, args, &in); err != nil {
		return task{}, err
	}
	scope, err := g.secretScope(secretsDelete, in.Name)
	if err != nil {
		return task{}, err
	}
	if scope == plugin.SecretOfSystem {
		return task{}, plugin.Errorf(plugin.CodeServiceDenied, "%s: %s is a secret of the system, which an administrator deletes: mortise secrets delete %s --system --plugin %s", secretsDelete, in.Name, in.Name, g.target.Manifest.Name)
	}
	if g.broker.Secrets == nil || g.broker.Store == nil {
		return task{}, nowhere(secretsDelete)
	}
	return task{class: Local, effect: secretWrite,
		dry: func(ctx context.Context) (any, *plugin.Change, error) { return g.secretDeleteDry(ctx, in.Name) },
		commit: func(ctx context.Context, tx ledger.Tx) (any, error) {
			found, labels, err := g.broker.Secrets.Drop(ctx, tx, g.target, g.call, in.Name)
			g.heard(labels)
			return deletion{Deleted: found}, err
		}}, nil
}

// secretDeleteDry says whether a secret would be deleted.
func (g *grant) secretDeleteDry(ctx context.Context, name string) (any, *plugin.Change, error) {
	found, labels, err := g.secretDry(ctx, name, plugin.SecretOfUser)
	if err != nil {
		return nil, nil, err
	}
	g.heard(labels)
	if !found {
		return deletion{}, nil, nil
	}
	c := &plugin.Change{Target: name, Before: json.RawMessage(`"set"`), Summary: "deleted"}
	return deletion{Deleted: true}, c, g.keep(secretsDelete, g.secretKey(name), drySecret{}, 0)
}

// A drySecret is what a dry run would have set.
type drySecret struct {
	value  json.RawMessage // nil for nothing
	labels []string
}

// secretDry reports whether there is a secret as the dry run would have left it,
// and its labels.
func (g *grant) secretDry(ctx context.Context, name, scope string) (found bool, labels []string, err error) {
	if would, changed := keptDry[drySecret](g, g.secretKey(name)); changed {
		return would.value != nil, would.labels, nil
	}
	is, found, err := g.broker.Secrets.Find(ctx, g.target, g.call, name, scope)
	return found, is.Labels, err
}

// A secretKey names what a dry run would have set.
type secretKey struct{ tenant, plugin, subject, name string }

func (g *grant) secretKey(name string) secretKey {
	return secretKey{g.call.Tenant, g.target.Manifest.Name, g.subject(), name}
}

// secretBytes is how long a secret may be.
const secretBytes = 64 << 10

// setDry reports whether a secret would be set or changed, and never its value.
func (g *grant) setDry(ctx context.Context, name, value string) (any, *plugin.Change, error) {
	if value == "" || len(value) > secretBytes {
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: the value has %d bytes; it has 1 to %d", secretsSet, len(value), secretBytes)
	}
	if g.broker.Scrubber != nil {
		if err := g.broker.Scrubber.Keep(g.call.Tenant+"/"+g.target.Manifest.Name, value); err != nil {
			return nil, nil, err
		}
	}
	was, _, err := g.secretDry(ctx, name, plugin.SecretOfUser)
	if err != nil {
		return nil, nil, err
	}
	raw := shown(value)
	if err := g.keep(secretsSet, g.secretKey(name), drySecret{raw, g.secretLabels()}, len(raw)); err != nil {
		return nil, nil, err
	}
	c := &plugin.Change{Target: name, After: json.RawMessage(`"set"`), Summary: "set"}
	if was {
		c.Before, c.After, c.Summary = json.RawMessage(`"set"`), json.RawMessage(`"changed"`), "changed"
	}
	return nothing{}, c, nil
}

// secretScope returns the scope in which the operation may read a secret: what it
// says itself or, where another operation of the plugin speaks of it, the
// narrowest of what those say.
//
// Where the contract makes the capability the only gate, it may read any name, and
// what allowed_scope says counts before the call. A name that it does not declare is
// one that was set for this plugin, never one that is there for all.
func (g *grant) secretScope(method, name string) (string, error) {
	if g.target.Manifest.Contract.SecretsByCapability {
		for _, op := range g.target.Manifest.Operations {
			if _, declared := op.Secrets[name]; declared {
				return plugin.SecretOfSystemOrUser, nil
			}
		}
		return secret.Own, nil
	}
	if need, declared := g.target.Operation.Secrets[name]; declared {
		return scopeOr(need.AllowedScope), nil
	}
	scope := ""
	for _, op := range g.target.Manifest.Operations {
		need, declared := op.Secrets[name]
		if !declared {
			continue
		}
		switch s := scopeOr(need.AllowedScope); {
		case scope == "" || scope == plugin.SecretOfSystemOrUser || scope == s:
			scope = s
		case s != plugin.SecretOfSystemOrUser:
			return "", plugin.Errorf(plugin.CodeServiceDenied, "%s: %s has %.128q of two scopes in two operations and does not say which %s means", method, g.target.Manifest.Name, name, g.target.Name())
		}
	}
	if scope == "" {
		return "", plugin.Errorf(plugin.CodeServiceDenied, "%s: %s declares no secret %.128q; name it in its manifest, under op_auth: %s: secrets or, natively, operations: %s: secrets", method, g.target.Manifest.Name, name, g.target.Operation.Name, g.target.Operation.Name)
	}
	return scope, nil
}

func scopeOr(scope string) string {
	if scope == "" {
		return plugin.SecretOfSystemOrUser
	}
	return scope
}
