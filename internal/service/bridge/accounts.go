package bridge

import (
	"context"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// An AccountKeeper keeps accounts in the host's vault.
type AccountKeeper struct{ Of *secret.Vault }

var _ account.Keeper = AccountKeeper{}

func accountName(k account.Key) secret.Name {
	return secret.Name{Tenant: k.Tenant, Owner: account.SecretOwner, Scope: secret.User, Subject: k.Subject, Name: k.Provider}
}

// Account implements [account.Keeper].
func (s AccountKeeper) Account(ctx context.Context, k account.Key) (string, bool, error) {
	return s.Of.Find(ctx, secret.Need{Tenant: k.Tenant, Plugin: account.SecretOwner, Subject: k.Subject, Name: k.Provider, Scope: plugin.SecretOfUser})
}

// Keep implements [account.Keeper].
func (s AccountKeeper) Keep(ctx context.Context, k account.Key, value string) error {
	return s.Of.Put(ctx, accountName(k), value, secret.By{Principal: principal.Name(principal.Parse(k.Subject))})
}

// Replace implements [account.Keeper].
func (s AccountKeeper) Replace(ctx context.Context, k account.Key, was, value string) (bool, error) {
	return s.Of.Replace(ctx, accountName(k), was, value, secret.By{Principal: principal.Name(principal.Parse(k.Subject))})
}

// Forget implements [account.Keeper].
func (s AccountKeeper) Forget(ctx context.Context, k account.Key) (bool, error) {
	return s.Of.Delete(ctx, accountName(k), secret.By{Principal: principal.Name(principal.Parse(k.Subject))})
}

// Secret implements [account.Keeper].
func (s AccountKeeper) Secret(ctx context.Context, tenant, name string) (string, bool, error) {
	return s.Of.Find(ctx, secret.Need{Tenant: tenant, Plugin: account.SecretsOwner, Name: name, Scope: plugin.SecretOfSystem})
}

// useOf is what a call's plugin declares of accounts, and what was chosen for it.
func useOf(t *plugin.Target, call *plugin.Call) account.Use {
	return account.Use{Tenant: call.Tenant, Subject: secret.Subject(call.Principal), Name: t.Name(),
		Operation: t.Operation.Auth, Identities: t.Manifest.Identities, Overlay: call.Overlay}
}

// CheckAccounts refuses a call whose accounts are not there, as [Filler.Fill] does.
func CheckAccounts(ctx context.Context, all *account.Accounts, t *plugin.Target, call *plugin.Call) error {
	if t.Operation.Auth == nil && len(t.Manifest.Identities) == 0 && len(call.Overlay) == 0 {
		return nil
	}
	return all.Check(ctx, requiredOf(t, call))
}

// requiredOf is what a call cannot do without. Of a Shu plugin that is what its
// operation says of the caller's own account; required_identities tells people
// what to connect.
func requiredOf(t *plugin.Target, call *plugin.Call) account.Use {
	use := useOf(t, call)
	if t.Manifest.Contract.OwnAccountsOnly {
		use.Identities, use.OwnOnly = nil, true
	}
	return use
}

// Connected answers plugins out of the host's accounts.
type Connected struct{ Of *account.Accounts }

var _ service.Accounts = Connected{}

// Resolve implements [service.Accounts].
func (c Connected) Resolve(ctx context.Context, t *plugin.Target, call *plugin.Call, ask service.AccountAsk) (service.AccountToken, error) {
	answer, err := c.Of.Resolve(ctx, useOf(t, call), account.Ask(ask))
	return service.AccountToken(answer), err
}

// Connected implements [service.Accounts]. An account that is of no use any more,
// or cannot be read, is none.
func (c Connected) Connected(ctx context.Context, call *plugin.Call) ([]service.ConnectedAccount, error) {
	var all []service.ConnectedAccount
	for _, p := range c.Of.Providers {
		found, err := c.Of.Find(ctx, account.Key{Tenant: call.Tenant, Subject: secret.Subject(call.Principal), Provider: p.Name})
		switch {
		case plugin.CodeOf(err) == plugin.CodeUnavailable:
			continue
		case err != nil:
			return nil, err
		case found == nil || found.Gone != "":
			continue
		}
		one := service.ConnectedAccount{Provider: p.Name, Subject: found.Subject, Scopes: found.Scopes}
		if found.Verified {
			one.Email = found.Email
		}
		all = append(all, one)
	}
	return all, nil
}
