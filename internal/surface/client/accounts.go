package client

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// Accounts implements [Host].
func (r *remote) Accounts() Accounts { return remoteAccounts{r} }

type remoteAccounts struct{ *remote }

func accountOf(provider string, a *rest.Account) *host.Account {
	if a == nil {
		return nil
	}
	return &host.Account{
		Provider: provider, Subject: a.Subject, Email: a.Email, Verified: a.Verified, Scopes: a.Scopes, Connected: a.Connected, Expires: a.Expires,
		Renewable: a.Renewable, Gone: a.Gone,
	}
}

// List implements [Accounts].
func (r remoteAccounts) List(ctx context.Context) ([]host.AccountState, error) {
	var all rest.Providers
	err := r.get(ctx, &all, nil, "accounts")
	return each(all.Providers, func(p rest.Provider) host.AccountState {
		return host.AccountState{Provider: p.Provider, Kind: p.Kind, Service: p.Service, Account: accountOf(p.Provider, p.Account)}
	}), err
}

// Remove implements [Accounts].
func (r remoteAccounts) Remove(ctx context.Context, provider string) (host.Removal, error) {
	var gone rest.AccountRemoved
	if err := r.change(ctx, http.MethodDelete, nil, &gone, "", "accounts", provider); err != nil {
		return host.Removal{}, err
	}
	out := host.Removal{Revoked: gone.Revoked, Problem: gone.Problem}
	if gone.Account != nil {
		out.Account = *accountOf(gone.Provider, gone.Account)
	}
	return out, nil
}

// Test implements [Accounts].
func (r remoteAccounts) Test(ctx context.Context, provider, mode, subject string, scopes []string) (host.Tried, error) {
	var tried rest.AccountTried
	err := r.post(ctx, struct {
		Mode    string   `json:"mode,omitzero"`
		Subject string   `json:"subject,omitzero"`
		Scopes  []string `json:"scopes,omitzero"`
	}{mode, subject, scopes}, &tried, "accounts", provider+":test")
	return host.Tried(tried), err
}

// Begin implements [Accounts]. The provider sends the browser back to the machine of the
// host, so that it is for its owner, on the socket. The request lasts as long as it takes.
func (r remoteAccounts) Begin(ctx context.Context, provider string, scopes []string) (*Connecting, error) {
	ctx, cancel := context.WithCancel(ctx)
	type end struct {
		account *host.Account
		err     error
	}
	where, done := make(chan string, 1), make(chan end, 1)
	go func() {
		var got rest.Account
		err := r.stream(ctx, asking{path: at("accounts", provider+":connect"), body: map[string][]string{"scopes": append([]string{}, scopes...)}}, func(_ string, data jsontext.Value) error {
			var to rest.AccountAddress
			if err := json.Unmarshal(data, &to); err != nil {
				return err
			}
			select {
			case where <- to.URL:
			default: // it is told once
			}
			return nil
		}, &got)
		done <- end{accountOf(provider, &got), err}
	}()
	select {
	case address := <-where:
		over := make(chan struct{})
		var ended end
		go func() { ended = <-done; close(over) }()
		return &Connecting{
			URL: address,
			Wait: func(ctx context.Context) (host.Account, error) {
				select {
				case <-over:
					return *ended.account, ended.err
				case <-ctx.Done():
					return host.Account{}, context.Cause(ctx)
				}
			},
			Close: func() error { cancel(); <-over; return nil },
		}, nil
	case ended := <-done:
		cancel()
		return nil, ended.err
	}
}
