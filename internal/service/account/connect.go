package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/mortise-dev/mortise/plugin"
)

// ConnectTime is how long the user has to agree in a browser.
const ConnectTime = 5 * time.Minute

// Bounds of what a browser that is sent back may send.
const (
	callback    = "/callback"
	maxCallback = 16 << 10 // bytes of headers
	callTime    = 10 * time.Second
	maxScopes   = 64
	maxScope    = 512 // bytes
)

// A Connecting is an account whose connection has begun: it waits at a loopback
// address for the browser to come back (RFC 8252, 7.3), by the authorization
// code with PKCE (RFC 7636). One goroutine belongs to it, which serves that
// address and has ended when Close returns.
type Connecting struct {
	URL string // where a browser goes

	accounts *Accounts
	key      Key
	provider *Provider
	at       *endpoints
	oauth    *oauth2.Config
	before   *record // the account that was connected before, if one was

	state, nonce, verifier string

	once   sync.Once
	done   chan outcome // holds one
	server *http.Server
	served chan struct{}
}

type outcome struct {
	account Account
	err     error
}

// Begin begins to connect an account with a provider, for what the provider is
// always asked, what the scopes are, and what an earlier connection had. Close
// must be called.
func (a *Accounts) Begin(ctx context.Context, k Key, scopes []string) (*Connecting, error) {
	p, err := a.provider(k.Provider)
	if err != nil {
		return nil, err
	}
	if err := checkScopes(scopes); err != nil {
		return nil, err
	}
	cfg, e, err := a.oauth(ctx, k.Tenant, p)
	if err != nil {
		return nil, err
	}
	before, err := a.load(ctx, k)
	if err != nil && plugin.CodeOf(err) != plugin.CodeUnavailable { // what cannot be read is replaced
		return nil, err
	}
	c := &Connecting{accounts: a, key: k, provider: p, at: e, oauth: cfg, before: before,
		state: rand.Text(), nonce: rand.Text(), verifier: oauth2.GenerateVerifier(), done: make(chan outcome, 1), served: make(chan struct{})}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p.RedirectPort)))
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "listening for the answer of the provider on 127.0.0.1: %w", err)
	}
	host := "127.0.0.1"
	if p.Kind == Microsoft { // which lets the port vary for this name alone
		host = "localhost"
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	cfg.RedirectURL = "http://" + net.JoinHostPort(host, port) + callback
	var had []string
	if before != nil {
		had = before.Scopes
	}
	cfg.Scopes = p.asked(e, had, scopes)
	c.URL = cfg.AuthCodeURL(c.state, c.options()...)
	c.server = &http.Server{Handler: c, ReadTimeout: callTime, WriteTimeout: renewTime + callTime, MaxHeaderBytes: maxCallback}
	go func() {
		defer close(c.served)
		if err := c.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			c.end(Account{}, fmt.Errorf("waiting for the browser: %w", err))
		}
	}()
	return c, nil
}

func (c *Connecting) options() []oauth2.AuthCodeOption {
	all := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(c.verifier)}
	if c.at.verifier != nil {
		all = append(all, oidc.Nonce(c.nonce))
	}
	if c.provider.Kind == Google { // which gives a refresh token only so
		all = append(all, oauth2.AccessTypeOffline, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	return all
}

func checkScopes(scopes []string) error {
	if len(scopes) > maxScopes {
		return plugin.Errorf(plugin.CodeInvalidInput, "%d scopes are too many; at most %d are asked for at once", len(scopes), maxScopes)
	}
	for _, scope := range scopes {
		if scope == "" || len(scope) > maxScope || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return plugin.Errorf(plugin.CodeInvalidInput, "%.200q is no scope: it is one word of 1 to %d characters", scope, maxScope)
		}
	}
	return nil
}

// Wait waits until the user has agreed or refused, for at most ConnectTime.
func (c *Connecting) Wait(ctx context.Context) (Account, error) {
	timer := time.NewTimer(ConnectTime)
	defer timer.Stop()
	select {
	case o := <-c.done:
		return o.account, o.err
	case <-timer.C:
		return Account{}, plugin.Errorf(plugin.CodeTimeout, "no consent was given on the page of %s within %s; run mortise connect %s again", c.provider.Name, ConnectTime, c.provider.Name)
	case <-ctx.Done():
		return Account{}, plugin.Errorf(plugin.CodeCancelled, "the account with %s was not connected: %w", c.provider.Name, context.Cause(ctx))
	}
}

// Close stops waiting. It may be called again.
func (c *Connecting) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second) // for the browser to read its page
	defer cancel()
	err := c.server.Shutdown(ctx)
	if err != nil {
		err = c.server.Close()
	}
	<-c.served
	return err
}

func (c *Connecting) end(account Account, err error) {
	select {
	case c.done <- outcome{account, err}:
	default:
	}
}

// ServeHTTP handles the redirect of the browser. A request without the right
// state is refused and changes nothing.
func (c *Connecting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'")
	w.Header().Set("Referrer-Policy", "no-referrer")
	q := r.URL.Query()
	switch {
	case r.URL.Path != callback || r.Method != http.MethodGet:
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	case subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(c.state)) != 1:
		http.Error(w, "This is not the answer that is waited for. Use the link that was shown last.", http.StatusBadRequest)
		return
	}
	answered := false
	c.once.Do(func() {
		answered = true
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), renewTime) // a code is good for one use
		defer cancel()
		account, err := c.finish(ctx, q.Get("code"), q.Get("error"), q.Get("iss"))
		defer c.end(account, err)
		if err != nil {
			http.Error(w, "The account was not connected. The terminal says why.", http.StatusBadRequest)
			return
		}
		io.WriteString(w, "The account is connected. This page can be closed.\n")
	})
	if !answered {
		http.Error(w, "This answer was used before.", http.StatusBadRequest)
	}
}

// finish turns a code into an account.
func (c *Connecting) finish(ctx context.Context, authorization, refused, issuer string) (Account, error) {
	name := c.provider.Name
	switch {
	case issuer != "" && c.at.issuer != "" && issuer != c.at.issuer && c.provider.Kind != Microsoft, issuer == "" && c.at.says:
		return Account{}, c.wrong("the answer is of another issuer (RFC 9207)")
	case refused == "access_denied":
		return Account{}, plugin.Errorf(plugin.CodeCancelled, "the account with %s was not connected: it was refused on its page", name)
	case refused != "" || authorization == "":
		return Account{}, plugin.Errorf(plugin.CodeUnavailable, "%s sent the browser back without an account%s; hold client_id, redirect and scopes against what it has", name, code(refused))
	}
	t, err := c.oauth.Exchange(c.accounts.asking(ctx), authorization, oauth2.VerifierOption(c.verifier))
	if err != nil {
		return Account{}, unanswered(name, "for tokens", err)
	}
	for _, token := range []string{t.AccessToken, t.RefreshToken} {
		if len(token) > maxToken {
			return Account{}, c.wrong(fmt.Sprintf("a token has more than %d bytes", maxToken))
		}
		if err := c.accounts.Know(token); err != nil {
			return Account{}, err
		}
	}
	r := &record{Access: t.AccessToken, Refresh: t.RefreshToken, Expires: c.accounts.ends(t), Connected: c.accounts.Now().UTC().Truncate(time.Second),
		Scopes: granted(t, c.oauth.Scopes)}
	if err := c.whose(ctx, t, r); err != nil {
		return Account{}, err
	}
	release, err := c.accounts.lock(ctx, c.key)
	if err != nil {
		return Account{}, err
	}
	defer release()
	if err := c.accounts.save(ctx, c.key, r); err != nil {
		return Account{}, err
	}
	return r.seen(name), nil
}

func (c *Connecting) wrong(why string) error {
	return plugin.Errorf(plugin.CodeUnavailable, "the account with %s was not connected: %s; run mortise connect %s again", c.provider.Name, why, c.provider.Name)
}

// whose finds out whose account it is, by the ID token or else by asking.
func (c *Connecting) whose(ctx context.Context, t *oauth2.Token, r *record) error {
	if c.at.verifier == nil {
		return c.asked(ctx, t, r)
	}
	raw, _ := t.Extra("id_token").(string)
	if raw == "" {
		return c.wrong("no ID token came with it")
	}
	if err := c.accounts.Know(raw); err != nil {
		return err
	}
	id, err := c.at.verifier.Verify(c.accounts.asking(ctx), raw)
	if err != nil {
		return c.wrong("its ID token does not hold")
	}
	if subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(c.nonce)) != 1 {
		return c.wrong("its ID token was made for another request (nonce)")
	}
	if id.AccessTokenHash != "" && id.VerifyAccessToken(t.AccessToken) != nil {
		return c.wrong("its ID token was made for another token")
	}
	var claims struct {
		Email    string `json:"email"`
		Verified any    `json:"email_verified"`
		Tenant   string `json:"tid"`
		Name     string `json:"preferred_username"`
	}
	if err := id.Claims(&claims); err != nil {
		return c.wrong("its ID token cannot be read")
	}
	if c.provider.Kind == Microsoft && c.at.issuer == common && id.Issuer != "https://login.microsoftonline.com/"+claims.Tenant+"/v2.0" {
		return c.wrong("its ID token is of another issuer")
	}
	r.ID, r.Email, r.Verified = id.Subject, claims.Email, vouched(claims.Verified)
	if r.Email == "" && c.provider.Kind == Microsoft && strings.Contains(claims.Name, "@") {
		r.Email = claims.Name
	}
	if !r.Verified && c.at.oidc.UserInfoEndpoint() != "" {
		info, err := c.at.oidc.UserInfo(c.accounts.asking(ctx), oauth2.StaticTokenSource(t))
		if err == nil && info.Subject == id.Subject && (r.Email == "" || strings.EqualFold(r.Email, info.Email)) { // OpenID Connect Core, 5.3.2
			r.Email, r.Verified = info.Email, info.EmailVerified
		}
	}
	return nil
}

// asked asks an OAuth 2 provider whose token it is, as GitHub answers.
func (c *Connecting) asked(ctx context.Context, t *oauth2.Token, r *record) error {
	if c.at.user == "" {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.at.user, nil)
	if err != nil {
		return err
	}
	t.SetAuthHeader(req)
	req.Header.Set("Accept", "application/json")
	resp, err := c.accounts.client.Do(req)
	if err != nil {
		return unanswered(c.provider.Name, "whose account it is", err)
	}
	defer resp.Body.Close()
	var who struct {
		ID    json.RawMessage `json:"id"`
		Sub   string          `json:"sub"`
		Login string          `json:"login"`
		Email string          `json:"email"`

		Verified any `json:"email_verified"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&who); err != nil || resp.StatusCode != http.StatusOK {
		return c.wrong(fmt.Sprintf("%s does not say whose it is (status %d)", c.provider.Name, resp.StatusCode))
	}
	r.ID, r.Email = or(who.Sub, or(who.Login, strings.Trim(string(who.ID), `"`))), who.Email
	r.Verified = vouched(who.Verified)
	return nil
}

// vouched reports whether a claim email_verified says so; some providers write it as text.
func vouched(claim any) bool { return claim == true || claim == "true" }
