package account

import (
	"context"

	"github.com/mortise-dev/mortise/plugin"
)

// A Tried is an account that a token can be had of.
type Tried struct {
	Provider string `json:"provider"`
	Mode     string `json:"mode"`
	Target   string `json:"target"`
}

// Try finds out whether a token can be had, by renewing a user's whatever is left
// of it, or by minting one of the service account. It gives no token out.
func (a *Accounts) Try(ctx context.Context, k Key, mode, subject string, scopes []string) (Tried, error) {
	done := Tried{Provider: k.Provider, Mode: mode, Target: subject}
	p, err := a.provider(k.Provider)
	if err != nil {
		return done, err
	}
	if err := checkScopes(scopes); err != nil {
		return done, err
	}
	switch mode {
	case User:
		r, err := a.again(ctx, p, k, scopes)
		if err != nil {
			return done, err
		}
		done.Target = or(r.Email, "me")
		return done, nil
	case DomainDelegate:
		if done.Target, err = a.subject(ctx, k, p, &chosen{mode: mode, scopes: scopes, subject: subject}); err != nil {
			return done, err
		}
	case ServiceAccount:
		done.Target = ""
	default:
		return done, plugin.Errorf(plugin.CodeInvalidInput, "%.64q is no mode; it is %s, %s or %s", mode, User, ServiceAccount, DomainDelegate)
	}
	if len(scopes) == 0 {
		return done, plugin.Errorf(plugin.CodeInvalidInput, "a token of a service account is for scopes; name some with --scopes")
	}
	_, err = a.mint(ctx, k.Tenant, p, scopes, done.Target)
	return done, err
}

// again renews a token that can be renewed.
func (a *Accounts) again(ctx context.Context, p *Provider, k Key, scopes []string) (*record, error) {
	release, err := a.lock(ctx, k)
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := a.load(ctx, k)
	if err != nil {
		return nil, err
	}
	if _, err := a.due(p, k, r, scopes); err != nil || r.Refresh == "" {
		return r, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	return a.renew(ctx, p, k, r, scopes)
}
