package rest

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A Provider is who has accounts, with that of the caller where one is connected.
type Provider struct {
	Provider string   `json:"provider"`
	Kind     string   `json:"kind"`
	Service  bool     `json:"service_account" doc:"The host has the key of one."`
	Account  *Account `json:"account,omitzero"`
}

// An Account is an account of the caller. Its tokens are never answered.
type Account struct {
	Subject   string    `json:"subject" doc:"The provider's id of it."`
	Email     string    `json:"email"`
	Verified  bool      `json:"verified" doc:"The provider vouches for the address."`
	Scopes    []string  `json:"scopes" nullable:"false"`
	Connected time.Time `json:"connected_at"`
	Expires   time.Time `json:"expires_at,omitzero"`
	Renewable bool      `json:"renewable" doc:"The host renews its token."`
	Gone      string    `json:"gone,omitzero" doc:"Why it is of no use any more."`
}

// Providers are all that the host knows.
type Providers struct {
	Providers []Provider `json:"providers" nullable:"false"`
}

// An AccountRemoved is what came of removing an account.
type AccountRemoved struct {
	Provider string   `json:"provider"`
	Revoked  bool     `json:"revoked" doc:"The provider knows of it."`
	Problem  string   `json:"problem,omitzero" doc:"Why it does not."`
	Account  *Account `json:"account,omitzero" doc:"The one that was removed."`
}

// An AccountTried is an account that a token can be had of.
type AccountTried struct {
	Provider string `json:"provider"`
	Mode     string `json:"mode"`
	Target   string `json:"target"`
}

// An AccountAddress is where a browser goes to connect an account.
type AccountAddress struct {
	URL string `json:"url"`
}

// A ProviderNamed is a provider that is meant.
type ProviderNamed struct {
	Provider string `path:"provider" maxLength:"128"`
}

func (r *registry) accounts() {
	add(r, route{method: "GET", path: "accounts", id: "list-accounts", scope: host.ScopeRead, about: "The providers of accounts, with those of the caller"}, r.listAccounts)
	add(r, route{method: "DELETE", path: "accounts/{provider}", id: "remove-account", scope: host.ScopeConfigure, about: "Forget an account of the caller, and tell its provider"}, r.removeAccount)
	add(r, route{
		method: "POST", path: "accounts/{provider}:connect", id: "connect-account", scope: host.ScopeConfigure, stays: true, told: []reflect.Type{reflect.TypeFor[AccountAddress](), reflect.TypeFor[Account](), reflect.TypeFor[Problem]()},
		about: "Connect an account of the owner: a stream that has the event address and, once a browser has been there, the account as its result. On the socket of the owner alone, since the browser comes back to the machine of the host",
	}, r.connectAccount)
	add(r, route{method: "POST", path: "accounts/{provider}:test", id: "test-account", scope: host.ScopeConfigure, about: "Try whether a token can be had of an account, which renews it"}, r.testAccount)
}

func (r *registry) listAccounts(ctx context.Context, q *request, _ *struct{}) (*struct{ Body Providers }, error) {
	states, err := q.api.Accounts().List(ctx)
	if err != nil {
		return nil, err
	}
	out := &struct{ Body Providers }{Providers{[]Provider{}}}
	for _, s := range states {
		p := Provider{Provider: s.Provider, Kind: s.Kind, Service: s.Service}
		if s.Account != nil {
			p.Account = accountOf(s.Account)
		}
		out.Body.Providers = append(out.Body.Providers, p)
	}
	return out, nil
}

func accountOf(a *host.Account) *Account {
	return &Account{a.Subject, a.Email, a.Verified, append([]string{}, a.Scopes...), a.Connected, a.Expires, a.Renewable, a.Gone}
}

func (r *registry) removeAccount(ctx context.Context, q *request, in *ProviderNamed) (*struct{ Body AccountRemoved }, error) {
	gone, err := q.api.Accounts().Remove(ctx, in.Provider)
	if err != nil {
		return nil, unlessMissing(err, "account with", in.Provider)
	}
	return &struct{ Body AccountRemoved }{AccountRemoved{in.Provider, gone.Revoked, gone.Problem, accountOf(&gone.Account)}}, nil
}

func (r *registry) testAccount(ctx context.Context, q *request, in *struct {
	ProviderNamed
	Body *struct {
		Mode    string   `json:"mode,omitzero" enum:"user,domain_delegate,service_account" doc:"user where it is left out."`
		Subject string   `json:"subject,omitzero" maxLength:"256" doc:"For whom a service account stands in."`
		Scopes  []string `json:"scopes,omitzero" maxItems:"64" nullable:"false"`
	} `nameHint:"TestAccount"`
}) (*struct{ Body AccountTried }, error) {
	mode, subject, scopes := host.AccountOfUser, "", []string(nil)
	if b := in.Body; b != nil {
		subject, scopes = b.Subject, b.Scopes
		if b.Mode != "" {
			mode = b.Mode
		}
	}
	tried, err := q.api.Accounts().Test(ctx, in.Provider, mode, subject, scopes)
	if err != nil {
		return nil, unlessMissing(err, "account with", in.Provider)
	}
	return &struct{ Body AccountTried }{AccountTried(tried)}, nil
}

func (r *registry) connectAccount(ctx context.Context, q *request, in *struct {
	ProviderNamed
	Body *struct {
		Scopes []string `json:"scopes,omitzero" maxItems:"64" nullable:"false" doc:"What plugins are to do there, in the provider's words."`
	} `nameHint:"ConnectAccount"`
}) (_ *struct{ Body Account }, err error) {
	if err := q.owns("connecting an account", true); err != nil {
		return nil, err
	}
	if q.live == nil {
		return nil, refused(0, plugin.CodeInvalidInput, "the answer is a stream: ask for it with Accept: text/event-stream")
	}
	ctx, cancel := r.staying(ctx, q)
	defer cancel()
	var scopes []string
	if in.Body != nil {
		scopes = in.Body.Scopes
	}
	w, err := q.api.Accounts().Begin(ctx, in.Provider, scopes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	raw, err := json2.Marshal(AccountAddress{w.URL})
	if err != nil {
		return nil, err
	}
	q.hears(true)(plugin.Event{Kind: "address", Data: json.RawMessage(raw)})
	got, err := w.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Account }{*accountOf(&got)}, nil
}
