package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// accountsOwner is for whom connected accounts are kept among the secrets. No
// plugin has such a name, and no command shows or sets what is there.
const accountsOwner = ":accounts"

// openAccounts returns the accounts that plugins act with.
func (a *App) openAccounts(scrubber *secret.Scrubber) *account.Accounts {
	return account.New(account.Options{
		Providers: providersOf(a.Config.Auth), Keeper: accountKeeper{a.Vault}, Know: scrubber.Learn, Keep: scrubber.Know, Addresses: a.addressesOf, Lock: a.lockAccount,
	})
}

// providersOf are the providers of the configuration, by name.
func providersOf(c config.Auth) []account.Provider {
	var all []account.Provider
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		made := account.Provider{
			Name: name, Kind: p.Kind, ClientID: p.ClientID, ClientSecret: account.Source{Env: p.ClientSecretEnv, File: p.ClientSecretFile, Secret: p.ClientSecretName},
			Issuer: p.Issuer, AuthURL: p.AuthorizeURL, TokenURL: p.TokenURL, RevokeURL: p.RevokeURL, UserURL: p.UserURL, Scopes: p.Scopes, RedirectPort: p.RedirectPort,
		}
		if s := p.Service; s != nil {
			made.Service = &account.Service{Key: account.Source{Env: s.KeyEnv, File: s.KeyFile, Secret: s.KeyName}, Subjects: s.Subjects}
		}
		all = append(all, made)
	}
	return all
}

// An accountKeeper keeps accounts in the host's vault.
type accountKeeper struct{ v *secret.Vault }

var _ account.Keeper = accountKeeper{}

func accountName(k account.Key) store.SecretName {
	return store.SecretName{Tenant: k.Tenant, Owner: accountsOwner, Scope: secret.User, Subject: k.Subject, Name: k.Provider}
}

// Account implements [account.Keeper].
func (s accountKeeper) Account(ctx context.Context, k account.Key) (string, bool, error) {
	return s.v.Find(ctx, secret.Need{Tenant: k.Tenant, Plugin: accountsOwner, Subject: k.Subject, Name: k.Provider, Scope: plugin.SecretOfUser})
}

// Keep implements [account.Keeper].
func (s accountKeeper) Keep(ctx context.Context, k account.Key, value string) error {
	return s.v.Put(ctx, accountName(k), value, secret.By{Principal: member(k.Subject)})
}

// Forget implements [account.Keeper].
func (s accountKeeper) Forget(ctx context.Context, k account.Key) (bool, error) {
	return s.v.Delete(ctx, accountName(k), secret.By{Principal: member(k.Subject)})
}

// Secret implements [account.Keeper].
func (s accountKeeper) Secret(ctx context.Context, tenant, name string) (string, bool, error) {
	return s.v.Find(ctx, secret.Need{Tenant: tenant, Plugin: account.SecretsOwner, Name: name, Scope: plugin.SecretOfSystem})
}

// addressesOf returns the mail addresses that a principal is linked to.
func (a *App) addressesOf(ctx context.Context, k account.Key) ([]string, error) {
	who := ParseMember(k.Subject)
	links, err := a.Store.IdentitiesOf(ctx, k.Tenant, who.Type, who.ID)
	var all []string
	for _, link := range links {
		if name, host, found := strings.Cut(link.ExternalID, "@"); link.Provider == k.Provider && found && name != "" && host != "" {
			all = append(all, link.ExternalID)
		}
	}
	return all, err
}

// lockWait is how often it is looked whether another host is done.
const lockWait = 50 * time.Millisecond

// lockAccount keeps other hosts of the data directory from renewing an account.
func (a *App) lockAccount(ctx context.Context, name string) (release func(), err error) {
	sum := sha256.Sum256([]byte(name))
	path := filepath.Join(a.dir("runtime"), "account-"+hex.EncodeToString(sum[:8])+".lock")
	for {
		lock, err := store.TryLock(path)
		if err != nil {
			return nil, err
		}
		if lock != nil {
			return func() { lock.Remove() }, nil
		}
		select {
		case <-time.After(lockWait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// useOf is what a call's plugin declares of accounts, and what was chosen for it.
func useOf(t *plugin.Target, call *plugin.Call) account.Use {
	return account.Use{Tenant: call.Tenant, Subject: secret.Subject(call.Principal), Name: t.Name(),
		Operation: t.Operation.Auth, Identities: t.Manifest.Identities, Overlay: call.Overlay}
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

// connected answers plugins out of the host's accounts.
type connected struct{ a *account.Accounts }

var _ service.Accounts = connected{}

// Resolve implements [service.Accounts].
func (c connected) Resolve(ctx context.Context, t *plugin.Target, call *plugin.Call, ask service.AccountAsk) (service.AccountToken, error) {
	answer, err := c.a.Resolve(ctx, useOf(t, call), account.Ask(ask))
	return service.AccountToken(answer), err
}

// Connected implements [service.Accounts]. An account that is of no use any more,
// or cannot be read, is none.
func (c connected) Connected(ctx context.Context, call *plugin.Call) ([]service.ConnectedAccount, error) {
	var all []service.ConnectedAccount
	for _, p := range c.a.Providers {
		found, err := c.a.Find(ctx, account.Key{Tenant: call.Tenant, Subject: secret.Subject(call.Principal), Provider: p.Name})
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

// Accounts are the accounts of one principal of the host's tenant: everybody
// connects, sees and removes their own.
type Accounts struct {
	app *App
	by  plugin.Principal
}

// Accounts returns the account operations, with the rights of one principal.
func (a *App) Accounts(by plugin.Principal) Accounts { return Accounts{a, by} }

func (s Accounts) key(provider string) account.Key {
	return account.Key{Tenant: s.app.Config.Tenant, Subject: secret.Subject(s.by), Provider: provider}
}

// Begin begins to connect an account. Close must be called on what it returns.
func (s Accounts) Begin(ctx context.Context, provider string, scopes []string) (*account.Connecting, error) {
	return s.app.Connections.Begin(ctx, s.key(provider), scopes)
}

// Remove takes an account away.
func (s Accounts) Remove(ctx context.Context, provider string) (account.Removal, error) {
	return s.app.Connections.Remove(ctx, s.key(provider))
}

// Test tries whether a token can be had, renewing or minting one.
func (s Accounts) Test(ctx context.Context, provider, mode, subject string, scopes []string) (account.Tried, error) {
	return s.app.Connections.Try(ctx, s.key(provider), mode, subject, scopes)
}

// An AccountState is a provider, and the account with it if one is connected.
type AccountState struct {
	Provider string           `json:"provider"`
	Kind     string           `json:"kind"`
	Service  bool             `json:"service_account"` // the host has the key of one
	Account  *account.Account `json:"account"`
}

// List returns the providers with one's own accounts, by name.
func (s Accounts) List(ctx context.Context) ([]AccountState, error) {
	all := []AccountState{}
	for _, p := range s.app.Connections.Providers {
		found, err := s.app.Connections.Find(ctx, s.key(p.Name))
		if err != nil {
			return nil, err
		}
		all = append(all, AccountState{p.Name, p.Kind, p.Service != nil, found})
	}
	return all, nil
}
