// Package account keeps the accounts that people have elsewhere, once they have
// connected them, and wins the tokens that plugins act with there.
//
// A user connects an account in a browser ([Accounts.Begin]); its tokens are
// stored encrypted and renewed before they expire. A call gets the token of its
// own principal's account, or one of a service account that the host has the
// key of, in a way that its plugin declares and with no more than it declares
// ([Accounts.Resolve]). A token carries all that was agreed to when the account
// was connected; what a plugin does with it is bounded by the hosts it may
// reach.
package account

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// The modes in which a plugin may be known to a provider.
const (
	User           = "user"            // as the principal of its call
	ServiceAccount = "service_account" // as the host's service account
	DomainDelegate = "domain_delegate" // as a user of a domain, whom the service account impersonates
)

// A Key says whose account with whom is meant.
type Key struct {
	Tenant   string
	Subject  string // the principal, as secrets name them
	Provider string
}

// A Keeper keeps accounts, encrypted, and has the secrets of providers.
type Keeper interface {
	// Account returns what is kept of an account.
	Account(ctx context.Context, k Key) (value string, found bool, err error)
	// Keep keeps an account in place of an earlier one, whichever that is.
	Keep(ctx context.Context, k Key, value string) error
	// Replace keeps an account in place of was, and reports whether was is what was kept; if not,
	// nothing is changed.
	Replace(ctx context.Context, k Key, was, value string) (replaced bool, err error)
	// Forget reports whether there was one to forget.
	Forget(ctx context.Context, k Key) (bool, error)
	// Secret returns a secret that an administrator set for a provider.
	Secret(ctx context.Context, tenant, name string) (value string, found bool, err error)
}

// Options say how accounts are kept and won.
type Options struct {
	Providers []Provider
	Keeper    Keeper
	// Know hears of every token and key, which are not to be seen afterwards.
	// Where it fails the value is not used.
	Know func(value string) error
	// Keep is Know for what does not expire; Know where it is nil.
	Keep func(value string) error
	// Addresses returns the mail addresses that an administrator linked a
	// principal to at a provider. It may be nil.
	Addresses func(ctx context.Context, k Key) ([]string, error)
	// Lock keeps all other hosts of the same database from renewing at the same time, by
	// name. It may be nil: the others' renewal is noticed afterwards then.
	Lock func(ctx context.Context, name string) (release func(), err error)
	// Transport is how providers are asked; the network where it is nil.
	Transport http.RoundTripper
	// Now is the time; time.Now where it is nil.
	Now func() time.Time
}

// Accounts are the accounts of a host. It is safe for concurrent use.
type Accounts struct {
	Options
	client *http.Client
	locks  locks

	mu     sync.Mutex // guards the rest
	known  map[string]*endpoints
	minted map[minting]minted
}

// New returns the accounts of the providers.
func New(o Options) *Accounts {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Know == nil {
		o.Know = func(string) error { return nil }
	}
	if o.Keep == nil {
		o.Keep = o.Know
	}
	return &Accounts{Options: o, client: newClient(o.Transport), known: map[string]*endpoints{}, minted: map[minting]minted{}}
}

// An Account is what may be seen of a connected account.
type Account struct {
	Provider  string    `json:"provider"`
	Subject   string    `json:"subject"` // the provider's id of it
	Email     string    `json:"email"`
	Verified  bool      `json:"verified"` // the provider vouches for the address
	Scopes    []string  `json:"scopes"`
	Connected time.Time `json:"connected_at"`
	Expires   time.Time `json:"expires_at,omitzero"` // of the token; zero for one that does not end
	Renewable bool      `json:"renewable"`           // the host renews the token
	Gone      string    `json:"gone"`                // why it is of no use any more
}

// A record is a connected account as it is kept.
type record struct {
	ID        string    `json:"id"`
	Email     string    `json:"email"`
	Verified  bool      `json:"verified"` // the provider vouches for the address
	Scopes    []string  `json:"scopes"`
	Access    string    `json:"access"`
	Refresh   string    `json:"refresh,omitempty"`
	Expires   time.Time `json:"expires,omitzero"`
	Connected time.Time `json:"connected"`
	Gone      string    `json:"gone,omitempty"`

	kept string // the text that it was read from
}

func (r *record) seen(provider string) Account {
	return Account{Provider: provider, Subject: r.ID, Email: r.Email, Verified: r.Verified, Scopes: append([]string{}, r.Scopes...), Connected: r.Connected,
		Expires: r.Expires, Renewable: r.Refresh != "", Gone: r.Gone}
}

// Find returns what may be seen of an account, nil where none is connected.
func (a *Accounts) Find(ctx context.Context, k Key) (*Account, error) {
	r, err := a.load(ctx, k)
	if err != nil || r == nil {
		return nil, err
	}
	seen := r.seen(k.Provider)
	return &seen, nil
}

func (a *Accounts) load(ctx context.Context, k Key) (*record, error) {
	text, found, err := a.Keeper.Account(ctx, k)
	if err != nil || !found {
		return nil, err
	}
	var r record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "what is kept of the account with %s cannot be read: %w; connect it again: mortise connect %s", k.Provider, err, k.Provider)
	}
	r.kept = text
	if err := a.know(&r); err != nil {
		return nil, err
	}
	return &r, nil
}

// save keeps an account in place of an earlier one, whichever that is.
func (a *Accounts) save(ctx context.Context, k Key, r *record) error {
	if err := a.know(r); err != nil {
		return err
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return a.Keeper.Keep(ctx, k, string(raw))
}

// replace keeps next in place of r by compare-and-set, and reports whether r is still what was kept.
func (a *Accounts) replace(ctx context.Context, k Key, r, next *record) (bool, error) {
	if err := a.know(next); err != nil {
		return false, err
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return false, err
	}
	return a.Keeper.Replace(ctx, k, r.kept, string(raw))
}

func (a *Accounts) know(r *record) error {
	for _, token := range []string{r.Access, r.Refresh} {
		if token == "" {
			continue
		}
		if err := a.Know(token); err != nil {
			return err
		}
	}
	return nil
}

// A Removal is what came of taking an account away.
type Removal struct {
	Account
	Revoked bool   `json:"revoked"` // the provider knows of it
	Problem string `json:"problem"` // why it does not
}

// Remove forgets an account, and tells its provider so where that can be told.
func (a *Accounts) Remove(ctx context.Context, k Key) (Removal, error) {
	release, err := a.lock(ctx, k)
	if err != nil {
		return Removal{}, err
	}
	defer release()
	r, err := a.load(ctx, k)
	switch {
	case err != nil && plugin.CodeOf(err) != plugin.CodeUnavailable: // what cannot be read can go
		return Removal{}, err
	case r == nil && err == nil:
		return Removal{}, plugin.Errorf(plugin.CodeNotFound, "no account with %.128q is connected; 'mortise accounts list' shows those that are", k.Provider)
	case r == nil:
		r = &record{}
	}
	if _, err := a.Keeper.Forget(ctx, k); err != nil {
		return Removal{}, err
	}
	gone := Removal{Account: r.seen(k.Provider)}
	if problem := a.revoke(ctx, k, r); problem != "" {
		gone.Problem = problem
	} else {
		gone.Revoked = true
	}
	return gone, nil
}
