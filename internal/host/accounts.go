package host

import (
	"context"

	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// What accounts are: one of a principal with a provider, one that is being connected, and
// what became of it when it was removed or tried.
type (
	Account    = account.Account
	Connecting = account.Connecting
	Removal    = account.Removal
	Tried      = account.Tried
)

// AccountOfUser is the mode in which a plugin acts with the account of the caller.
const AccountOfUser = account.User

// Accounts are the accounts of one principal of the host's tenant: each
// connects, sees and removes their own.
type Accounts struct {
	g      *Guard
	by     plugin.Principal
	engine *account.Accounts
}

func (s Accounts) key(provider string) account.Key {
	return account.Key{Tenant: s.g.Tenant, Subject: secret.Subject(s.by), Provider: provider}
}

// Begin begins to connect an account. Close must be called on what it returns.
func (s Accounts) Begin(ctx context.Context, provider string, scopes []string) (*account.Connecting, error) {
	return s.engine.Begin(ctx, s.key(provider), scopes)
}

// Remove takes an account away.
func (s Accounts) Remove(ctx context.Context, provider string) (account.Removal, error) {
	return s.engine.Remove(ctx, s.key(provider))
}

// Test tries whether a token can be had, renewing or minting one.
func (s Accounts) Test(ctx context.Context, provider, mode, subject string, scopes []string) (account.Tried, error) {
	return s.engine.Try(ctx, s.key(provider), mode, subject, scopes)
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
	for _, p := range s.engine.Providers {
		found, err := s.engine.Find(ctx, s.key(p.Name))
		if err != nil {
			return nil, err
		}
		all = append(all, AccountState{p.Name, p.Kind, p.Service != nil, found})
	}
	return all, nil
}
