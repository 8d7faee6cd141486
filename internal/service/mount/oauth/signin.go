package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mortise-dev/mortise/internal/base/version"
	"github.com/mortise-dev/mortise/plugin"
)

// A SignIn signs a person in to one server. All fields but the client's and Scopes are required.
type SignIn struct {
	Plugin string
	URL    string // of the server
	Client *http.Client

	ClientID     string   // registered beforehand, or the URL of a client's metadata; "" to register one
	ClientSecret string   // of the former
	Scopes       []string // those that the server names where there are none

	// Confirm is told which authorization server the server named, before that is asked
	// anything. An error ends the sign-in.
	Confirm func(ctx context.Context, issuer string) error

	// Open shows a person the page on which they sign in.
	Open func(address string)

	// Hide is told of each token as soon as there is one. An error ends the sign-in.
	Hide func(values ...string) error
}

// A flow is a sign-in on its way. It is the handler that the SDK asks when a server refuses a
// request.
type flow struct {
	SignIn
	meta  *http.Client
	known *remembering // the transport of meta
	inner *auth.AuthorizationCodeHandler
	back  *listener

	mu       sync.Mutex // guards the rest
	issuer   string
	resource string
	grant    *Grant
	failed   error
}

// Run signs in. It returns when the person has been back from the page, after [WaitTime] at most.
func (s SignIn) Run(ctx context.Context) (*Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*WaitTime)
	defer cancel()
	back, err := listen(ctx)
	if err != nil {
		return nil, err
	}
	defer back.close()
	f := &flow{SignIn: s, back: back, known: &remembering{next: s.Client.Transport}}
	f.meta = &http.Client{Transport: f.known, Timeout: s.Client.Timeout, CheckRedirect: s.Client.CheckRedirect}
	if f.inner, err = auth.NewAuthorizationCodeHandler(f.config()); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: its runner's oauth cannot be used: %w", s.Plugin, err)
	}
	// A message of the protocol is what the server refuses with the address of its metadata.
	client := sdk.NewClient(&sdk.Implementation{Name: "mortise", Version: version.Host}, &sdk.ClientOptions{Capabilities: &sdk.ClientCapabilities{}})
	mcp := *s.Client
	mcp.Timeout = 0 // a person takes their time within it; requests of metadata have one
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: &mcp, OAuthHandler: f, MaxRetries: -1, DisableStandaloneSSE: true}, nil)
	if err == nil {
		_, err = session.ListTools(ctx, nil)
		_ = session.Close()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, plugin.Errorf(plugin.CodeCancelled, "%s: no one was signed in: %w", s.Plugin, context.Cause(ctx))
	case f.failed != nil:
		return nil, f.unsigned(f.failed)
	case f.grant != nil:
		return f.grant, nil
	case err != nil:
		return nil, f.unsigned(err)
	}
	return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: its server asks no one to sign in: mount it without oauth", s.Plugin)
}

// config says how the SDK signs in.
func (f *flow) config() *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: f.back.url, RequestRefreshToken: true, Client: f.meta,
		AuthorizationCodeFetcher: f.fetch, NewTokenSource: f.granted,
		ScopeFilter: func(discovered []string) []string {
			if len(f.Scopes) > 0 {
				return slices.Clone(f.Scopes)
			}
			return discovered
		},
	}
	if strings.HasPrefix(f.ClientID, "https://") {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: f.ClientID}
	} else if f.ClientID != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: f.ClientID}
		if f.ClientSecret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: f.ClientSecret}
		}
		return c
	}
	c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName: "Mortise (" + f.Plugin + ")", RedirectURIs: []string{f.back.url},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}}
	return c
}

// TokenSource implements [auth.OAuthHandler].
func (f *flow) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return f.inner.TokenSource(ctx)
}

// Authorize implements [auth.OAuthHandler]: a person confirms who signs them in, and the SDK
// does the rest.
func (f *flow) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	f.mu.Lock()
	err := f.failed // the SDK asks again with an older message
	f.mu.Unlock()
	f.known.forget()
	if err == nil {
		err = f.confirm(ctx, resp.Header.Values("WWW-Authenticate"))
	}
	if err != nil {
		_ = resp.Body.Close()
	} else {
		err = f.inner.Authorize(ctx, req, resp)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && f.failed == nil {
		f.failed = err
	}
	return err
}

// confirm finds out which authorization server the server names, and asks a person about it.
func (f *flow) confirm(ctx context.Context, headers []string) error {
	issuer, err := f.discover(ctx, headers)
	if err != nil {
		return err
	}
	f.mu.Lock()
	before := f.issuer
	f.mu.Unlock()
	switch {
	case before == issuer:
		return nil
	case before != "":
		return plugin.Errorf(plugin.CodeConflict, "its server named the authorization server %.200s, and then %.200s", before, issuer)
	}
	if err := f.Confirm(ctx, issuer); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.issuer = issuer
	return nil
}

// discover returns the issuer that the server's metadata names (RFC 9728), or the server's own
// origin where there is none, as revision 2025-03-26 has it. The SDK reads the same documents.
func (f *flow) discover(ctx context.Context, headers []string) (string, error) {
	server, err := url.Parse(f.URL)
	if err != nil {
		return "", err
	}
	challenges, err := oauthex.ParseWWWAuthenticate(headers)
	if err != nil {
		return "", plugin.Errorf(plugin.CodeMalformedResponse, "its server's WWW-Authenticate cannot be read")
	}
	type place struct{ metadata, resource string }
	var places []place
	for _, c := range challenges {
		if at := c.Params["resource_metadata"]; at != "" {
			places = append(places, place{at, f.URL})
			break
		}
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	origin := url.URL{Scheme: server.Scheme, Host: server.Host}
	below, root := *server, origin
	below.Path, root.Path = wellKnown+"/"+strings.TrimLeft(server.Path, "/"), wellKnown
	places = append(places, place{below.String(), f.URL}, place{root.String(), origin.String()})
	for _, p := range places {
		meta, err := oauthex.GetProtectedResourceMetadata(ctx, p.metadata, p.resource, f.meta)
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		var ours *plugin.Error
		switch {
		case errors.As(err, &ours) && ours.Code == plugin.CodeEgressDenied:
			return "", ours
		case err != nil || meta == nil:
			continue
		case len(meta.AuthorizationServers) == 0:
			return "", plugin.Errorf(plugin.CodeMalformedResponse, "its server's metadata names no authorization server")
		}
		return meta.AuthorizationServers[0], nil
	}
	return origin.String(), nil
}

// fetch sends a person to the page, and waits until they are back.
func (f *flow) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.resource = u.Query().Get("resource")
	f.mu.Unlock()
	f.back.expect(u.Query().Get("state"))
	f.Open(args.URL)
	return f.back.wait(ctx, f.Plugin)
}

// granted takes the token that a code was exchanged for.
func (f *flow) granted(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := &Grant{
		URL: f.URL, Resource: f.resource, Issuer: f.issuer, Token: c.Endpoint.TokenURL, ClientID: c.ClientID, Style: c.Endpoint.AuthStyle,
		Scopes: c.Scopes, Access: t.AccessToken, Refresh: t.RefreshToken, Expires: t.Expiry.UTC().Truncate(time.Second),
	}
	if t.Expiry.IsZero() {
		g.Expires = time.Time{}
	}
	if f.ClientSecret == "" {
		g.ClientSecret = c.ClientSecret
	}
	if scope, _ := t.Extra("scope").(string); scope != "" {
		g.Scopes = strings.Fields(scope)
	}
	if err := f.Hide(g.Hidden()...); err != nil {
		return nil, err
	}
	if !strings.EqualFold(t.Type(), "bearer") {
		return nil, fmt.Errorf("the token is no bearer token")
	}
	text, err := g.Text()
	if err == nil {
		_, err = Parse(text)
	}
	if err != nil {
		return nil, err
	}
	f.grant = g
	return oauth2.StaticTokenSource(t), nil
}

// unsigned says why nothing came of it. What an authorization server answered is not repeated
// but for its code: there may be credentials in it.
func (f *flow) unsigned(err error) error {
	var ours *plugin.Error
	if errors.As(err, &ours) {
		return ours
	}
	why := err.Error()
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		why = fmt.Sprintf("the authorization server answered the code with %q", refused.ErrorCode)
	} else if at := strings.Index(why, "registration response"); at >= 0 {
		why = "the authorization server's answer to the registration of a client cannot be read"
	}
	return &plugin.Error{Code: plugin.CodeUnavailable, Message: fmt.Sprintf("%s: it was not signed in: %.500s", f.Plugin, why), Err: err}
}
