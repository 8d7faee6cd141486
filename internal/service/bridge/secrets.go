package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// A Vault answers plugins out of the host's vault.
type Vault struct{ Of *secret.Vault }

var _ service.Secrets = Vault{}

// Find implements [service.Secrets].
func (s Vault) Find(ctx context.Context, t *plugin.Target, call *plugin.Call, name, scope string) (secret.Value, bool, error) {
	return s.Of.Get(ctx, secret.NeedOf(call.Tenant, t.Manifest.Name, call.Principal, name, scope))
}

// Ready implements [service.Secrets].
func (s Vault) Ready(ctx context.Context) error { return s.Of.Ready(ctx) }

// Keep implements [service.Secrets].
func (s Vault) Keep(ctx context.Context, tx secret.Tx, t *plugin.Target, call *plugin.Call, name string, value secret.Value) error {
	place, by, err := ownSecret(t, call, name)
	if err != nil {
		return err
	}
	return s.Of.PutIn(ctx, tx, place, value, by)
}

// Drop implements [service.Secrets].
func (s Vault) Drop(ctx context.Context, tx secret.Tx, t *plugin.Target, call *plugin.Call, name string) (bool, []string, error) {
	place, by, err := ownSecret(t, call, name)
	if err != nil {
		return false, nil, err
	}
	return s.Of.DeleteIn(ctx, tx, place, by)
}

// ownSecret is where a plugin keeps a secret of the call's principal.
func ownSecret(t *plugin.Target, call *plugin.Call, name string) (secret.Name, secret.By, error) {
	subject := secret.Subject(call.Principal)
	if subject == "" {
		return secret.Name{}, secret.By{}, errors.New("a call without a principal changes a secret")
	}
	return secret.Name{Tenant: call.Tenant, Owner: t.Manifest.Name, Scope: secret.User, Subject: subject, Name: name},
		secret.By{Principal: principal.Name(call.Principal), Plugin: fmt.Sprintf("%s@%s", t.Manifest.Name, t.Manifest.Version), Call: call.ID}, nil
}
