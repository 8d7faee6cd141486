package signin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of what is asked of a provider.
const (
	askTime   = 15 * time.Second
	maxAnswer = 1 << 20 // bytes
	skew      = time.Minute
)

// A Provider is an OpenID Connect provider with which people sign in.
type Provider struct {
	Name     string
	Issuer   string
	ClientID string
	Secret   func() (string, error) // of the client; "" for a public one
	Scopes   []string               // beside openid

	GroupsClaim string              // of ID tokens
	Groups      map[string][]string // what it may say, with the groups that this gives
}

// provider is one that is asked, once it was discovered.
type provider struct {
	Provider
	redirect string
	client   *http.Client

	mu    sync.Mutex
	found *discovered
}

type discovered struct {
	*oidc.Provider
	saysIssuer bool // its answers name it (RFC 9207)
}

func newProvider(p Provider, redirect string) *provider {
	return &provider{Provider: p, redirect: redirect, client: &http.Client{
		Transport: bounded{http.DefaultTransport}, Timeout: askTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // what is sent are secrets
	}}
}

// bounded reads no more of an answer than maxAnswer.
type bounded struct{ http.RoundTripper }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// discover asks the provider for its addresses, until it has answered once.
func (p *provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	// Its keys are fetched later with the same client, and not with this request's context.
	at, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.Issuer)
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the provider %s cannot be discovered: %w", p.Name, err)
	}
	var claims struct {
		Says bool `json:"authorization_response_iss_parameter_supported"`
	}
	if err := at.Claims(&claims); err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the provider %s describes itself so that it cannot be read: %w", p.Name, err)
	}
	p.found = &discovered{at, claims.Says}
	return p.found, nil
}

func (p *provider) oauth(at *discovered) (*oauth2.Config, error) {
	secret, err := p.Secret()
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "the secret of the provider %s: %w", p.Name, err)
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: secret, Endpoint: at.Endpoint(), RedirectURL: p.redirect,
		Scopes: slices.Compact(append([]string{oidc.ScopeOpenID}, p.Scopes...)),
	}, nil
}

// ask returns the address at which the provider asks the person who they are.
func (p *provider) ask(ctx context.Context, state string, f *flow) (string, error) {
	at, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	config, err := p.oauth(at)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier)}
	if f.fresh {
		options = append(options, oauth2.SetAuthURLParam("prompt", "login"), oauth2.SetAuthURLParam("max_age", "0"))
	}
	return config.AuthCodeURL(state, options...), nil
}

// finish turns the code of an answer into who signed in.
func (p *provider) finish(ctx context.Context, code, issuer string, f *flow) (in host.SignIn, err error) {
	refused := func(why string) (host.SignIn, error) {
		return in, plugin.Errorf(plugin.CodeUnauthenticated, "The provider's answer was not taken: %s. Sign in again.", why)
	}
	at, err := p.discover(ctx)
	if err != nil {
		return in, err
	}
	if issuer != p.Issuer && (issuer != "" || at.saysIssuer) {
		return refused("it names another issuer")
	}
	config, err := p.oauth(at)
	if err != nil {
		return in, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(f.verifier))
	if err != nil {
		var answer *oauth2.RetrieveError
		if errors.As(err, &answer) && answer.Response != nil && answer.Response.StatusCode < http.StatusInternalServerError {
			return refused("its code is not good, or was used before")
		}
		return in, plugin.Errorf(plugin.CodeUnavailable, "the provider %s gave no token: %w", p.Name, err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := at.Verifier(&oidc.Config{ClientID: p.ClientID}).Verify(ctx, raw)
	if err != nil {
		return refused("its ID token does not hold")
	}
	var claims struct {
		AuthTime int64  `json:"auth_time"`
		Party    string `json:"azp"`
	}
	switch err := id.Claims(&claims); {
	case err != nil:
		return refused("its ID token cannot be read")
	case !same(id.Nonce, f.nonce):
		return refused("its ID token was made for another sign-in")
	case len(id.Audience) > 1 && claims.Party != p.ClientID, claims.Party != "" && claims.Party != p.ClientID:
		return refused("its ID token was made for another client")
	case id.IssuedAt.After(time.Now().Add(skew)):
		return refused("its ID token is of the future")
	}
	in = host.SignIn{Issuer: id.Issuer, Subject: id.Subject, Invitation: f.invitation}
	if in.Given, err = p.given(id); err != nil {
		return refused("its ID token cannot be read")
	}
	switch { // a provider that does not say when they proved who they are may have remembered them
	case claims.AuthTime > time.Now().Add(skew).Unix():
		return refused("it says that you signed in in the future")
	case claims.AuthTime > 0:
		if in.At = time.Unix(claims.AuthTime, 0); f.fresh && in.At.Before(f.began.Add(-skew)) {
			return refused("it did not ask who you are, as it was told to")
		}
	case f.fresh && f.invitation == "":
		return refused("it does not say when it asked who you are (auth_time), which takes its administrator to change")
	}
	return in, nil
}

// given returns what the groups claim of an ID token says.
func (p *provider) given(id *oidc.IDToken) ([]string, error) {
	if p.GroupsClaim == "" {
		return nil, nil
	}
	var claims map[string]any
	err := id.Claims(&claims)
	return host.SaidGroups(claims[p.GroupsClaim], p.Groups), err
}
