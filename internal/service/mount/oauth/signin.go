package oauth

import (
	"context"
	"crypto/rand"
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
	back *listener

	turn   sync.Mutex // held by Authorize, which waits for a person; guards by and config
	by     *authority // nil until a person has confirmed it
	config *oauth2.Config

	mu     sync.Mutex // guards the rest; they change under turn alone
	source oauth2.TokenSource
	grant  *Grant
	failed error
}

// An authority is the authorization server that the server named, once, and a person confirmed.
// Everything after that uses this value: nothing asks the server again who signs people in.
type authority struct {
	issuer   string
	resource string   // what the server calls itself
	scopes   []string // that it names
	meta     *oauthex.AuthServerMeta
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
	f := &flow{SignIn: s, back: back}
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

// TokenSource implements [auth.OAuthHandler].
func (f *flow) TokenSource(context.Context) (oauth2.TokenSource, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.source, nil
}

// Authorize implements [auth.OAuthHandler].
func (f *flow) Authorize(ctx context.Context, _ *http.Request, resp *http.Response) error {
	_ = resp.Body.Close()
	f.turn.Lock()
	defer f.turn.Unlock()
	if f.failed != nil { // the SDK asks again with an older message
		return f.failed
	}
	err := f.authorize(ctx, resp)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
	return err
}

// authorize signs in by the authorization code flow with PKCE. The caller has the turn.
func (f *flow) authorize(ctx context.Context, resp *http.Response) error {
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return plugin.Errorf(plugin.CodeMalformedResponse, "its server's WWW-Authenticate cannot be read")
	}
	if resp.StatusCode == http.StatusForbidden && bearer(challenges, "error") != "insufficient_scope" {
		return nil // it is sent again, and the answer is final
	}
	if f.by == nil {
		by, err := f.discover(ctx, challenges)
		if err != nil {
			return err
		}
		if err := f.Confirm(ctx, by.issuer); err != nil {
			return err
		}
		if by.meta, err = f.metadata(ctx, by.issuer); err != nil {
			return err
		}
		f.by = by
	}
	if f.config == nil {
		if f.config, err = f.register(ctx); err != nil {
			return err
		}
	}
	f.config.Scopes = f.wanted(bearer(challenges, "scope"))
	code, verifier, err := f.code(ctx)
	if err != nil {
		return err
	}
	token, err := f.config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, f.Client), code,
		oauth2.VerifierOption(verifier), oauth2.SetAuthURLParam("resource", f.by.resource))
	if err != nil {
		return err
	}
	return f.granted(token)
}

// bearer returns a parameter of the challenge for a bearer token.
func bearer(challenges []oauthex.Challenge, name string) string {
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params[name] != "" {
			return c.Params[name]
		}
	}
	return ""
}

// discover returns the authorization server that the server's metadata names (RFC 9728), or the
// server's own origin where there is none, as revision 2025-03-26 has it.
func (f *flow) discover(ctx context.Context, challenges []oauthex.Challenge) (*authority, error) {
	server, err := url.Parse(f.URL)
	if err != nil {
		return nil, err
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
		meta, err := oauthex.GetProtectedResourceMetadata(ctx, p.metadata, p.resource, f.Client)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var ours *plugin.Error
		switch {
		case errors.As(err, &ours) && ours.Code == plugin.CodeEgressDenied:
			return nil, ours
		case err != nil || meta == nil:
			continue
		case len(meta.AuthorizationServers) == 0:
			return nil, plugin.Errorf(plugin.CodeMalformedResponse, "its server's metadata names no authorization server")
		}
		return &authority{issuer: meta.AuthorizationServers[0], resource: meta.Resource, scopes: meta.ScopesSupported}, nil
	}
	return &authority{issuer: origin.String(), resource: f.URL}, nil
}

// metadata returns what the authorization server that a person confirmed says of itself. It has
// to be of that issuer (RFC 8414, 3.3): whatever has a credential in it comes after this check.
func (f *flow) metadata(ctx context.Context, issuer string) (*oauthex.AuthServerMeta, error) {
	meta, err := auth.GetAuthServerMetadata(ctx, issuer, f.Client)
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(issuer, "/")
	if meta == nil { // revision 2025-03-26: the endpoints are known without
		return &oauthex.AuthServerMeta{Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token", RegistrationEndpoint: base + "/register"}, nil
	}
	if strings.TrimSuffix(meta.Issuer, "/") != base {
		return nil, otherIssuer(meta.Issuer, issuer)
	}
	return meta, nil
}

func otherIssuer(is, confirmed string) error {
	return plugin.Errorf(plugin.CodeConflict, "the authorization server calls itself %.200q, and %.200q was confirmed: nothing was sent to it", is, confirmed)
}

// register returns the client that the authorization server knows this host by: one that was
// registered beforehand, or one that is registered now.
func (f *flow) register(ctx context.Context) (*oauth2.Config, error) {
	meta := f.by.meta
	c := &oauth2.Config{
		ClientID: f.ClientID, ClientSecret: f.ClientSecret, RedirectURL: f.back.url,
		Endpoint: oauth2.Endpoint{AuthURL: meta.AuthorizationEndpoint, TokenURL: meta.TokenEndpoint, AuthStyle: oauth2.AuthStyleInParams},
	}
	document := strings.HasPrefix(f.ClientID, "https://") // the address of a client's metadata
	switch {
	case document && meta.ClientIDMetadataDocumentSupported:
		c.ClientSecret = ""
		return c, nil
	case f.ClientID != "" && !document:
		if c.ClientSecret != "" && !slices.Contains(meta.TokenEndpointAuthMethodsSupported, "client_secret_post") {
			c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader // the default of RFC 8414
		}
		return c, nil
	case meta.RegistrationEndpoint == "":
		return nil, plugin.Errorf(plugin.CodeUnavailable, "its authorization server registers no clients: register one there, and give its client_id in the manifest under runner.oauth")
	}
	made, err := oauthex.RegisterClient(ctx, meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		ClientName: "Mortise (" + f.Plugin + ")", RedirectURIs: []string{f.back.url}, ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}, f.Client)
	if err != nil {
		return nil, err
	}
	c.ClientID, c.ClientSecret = made.ClientID, made.ClientSecret
	if c.ClientSecret != "" && made.TokenEndpointAuthMethod != "client_secret_post" {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader // the default of RFC 7591
	}
	return c, nil
}

// wanted returns the scopes to ask for: those of the sign-in, of the server's challenge or of its
// metadata, with those that a round before had.
func (f *flow) wanted(challenged string) []string {
	scopes := slices.Clone(f.by.scopes)
	if challenged != "" {
		scopes = strings.Fields(challenged)
	}
	if len(f.Scopes) > 0 {
		scopes = slices.Clone(f.Scopes)
	}
	const offline = "offline_access" // without which some servers give no refresh token
	if slices.Contains(f.by.meta.ScopesSupported, offline) {
		scopes = append(scopes, offline)
	}
	if f.grant != nil {
		scopes = append(scopes, f.grant.Scopes...)
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// code sends a person to the page, and waits until they are back with a code.
func (f *flow) code(ctx context.Context) (code, verifier string, err error) {
	state := rand.Text()
	verifier = oauth2.GenerateVerifier()
	f.back.expect(state)
	f.Open(f.config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("resource", f.by.resource)))
	back, err := f.back.wait(ctx, f.Plugin)
	if err != nil {
		return "", "", err
	}
	// RFC 9207: a code of another authorization server is sent to none.
	switch iss := back.Get("iss"); {
	case iss == "" && f.by.meta.AuthorizationResponseIssParameterSupported:
		return "", "", plugin.Errorf(plugin.CodeConflict, "the answer does not say which authorization server it is of, and %.200q says that its answers do", f.by.issuer)
	case iss != "" && iss != f.by.meta.Issuer:
		return "", "", otherIssuer(iss, f.by.issuer)
	}
	return back.Get("code"), verifier, nil
}

// granted takes the token that a code was exchanged for. The caller has the turn.
func (f *flow) granted(t *oauth2.Token) error {
	c := f.config
	g := &Grant{
		URL: f.URL, Resource: f.by.resource, Issuer: f.by.issuer, Token: c.Endpoint.TokenURL, ClientID: c.ClientID, Style: c.Endpoint.AuthStyle,
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
		return err
	}
	if !strings.EqualFold(t.Type(), "bearer") {
		return fmt.Errorf("the token is no bearer token")
	}
	text, err := g.Text()
	if err == nil {
		_, err = Parse(text)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.grant, f.source = g, oauth2.StaticTokenSource(t)
	return nil
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
