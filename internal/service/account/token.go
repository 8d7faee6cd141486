package account

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mortise-dev/mortise/plugin"
)

// early is how long before its end a token is renewed.
const early = 2 * time.Minute

// renewTime is the deadline of a renewal, for all callers that wait for it.
const renewTime = 30 * time.Second

// user returns the account of a principal with a token that is valid, renewed
// where that is due.
func (a *Accounts) user(ctx context.Context, k Key, scopes []string) (*record, error) {
	p, err := a.provider(k.Provider)
	if err != nil {
		return nil, err
	}
	r, err := a.load(ctx, k)
	if err != nil {
		return nil, err
	}
	if due, err := a.due(p, k, r, scopes); err != nil || !due {
		return r, err
	}
	release, err := a.lock(ctx, k)
	if err != nil {
		return nil, err
	}
	defer release()
	if r, err = a.load(ctx, k); err != nil { // another call may have renewed it
		return nil, err
	}
	if due, err := a.due(p, k, r, scopes); err != nil || !due {
		return r, err
	}
	// A provider that gives out another refresh token has taken the old one back:
	// what was begun is brought to its end for the callers to come.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	return a.renew(ctx, p, k, r, scopes)
}

// due reports whether a token is to be renewed before it is used, and refuses an
// account that is of no use.
func (a *Accounts) due(p *Provider, k Key, r *record, scopes []string) (bool, error) {
	switch {
	case r == nil:
		return false, missing(p.Name, User, scopes, "no account with %s is connected", p.Name)
	case r.Gone != "":
		return false, missing(p.Name, User, scopes, "the account with %s is of no use any more: %s", p.Name, r.Gone)
	}
	if lack := p.lacking(r.Scopes, scopes); len(lack) > 0 {
		return false, missing(p.Name, User, scopes, "the account with %s was connected without %s", p.Name, strings.Join(lack, " "))
	}
	left := r.Expires.Sub(a.Now())
	switch {
	case r.Expires.IsZero() || left > early:
		return false, nil
	case r.Refresh == "" && left > 0:
		return false, nil
	case r.Refresh == "":
		return false, missing(p.Name, User, scopes, "the token of the account with %s has ended, and %s gave none to renew it with", p.Name, p.Name)
	}
	return true, nil
}

// renew asks for another token and keeps it, unless the account was changed meanwhile: then that
// change holds.
func (a *Accounts) renew(ctx context.Context, p *Provider, k Key, r *record, scopes []string) (*record, error) {
	cfg, _, err := a.oauth(ctx, k.Tenant, p)
	if err == nil {
		var t *oauth2.Token
		if t, err = cfg.TokenSource(a.asking(ctx), &oauth2.Token{RefreshToken: r.Refresh}).Token(); err == nil {
			return a.renewed(ctx, p, k, r, t, scopes)
		}
	}
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && (refused.ErrorCode == "invalid_grant" || refused.ErrorCode == "bad_refresh_token") {
		gone := *r
		gone.Gone, gone.Access, gone.Refresh = "it was revoked, or its right to be renewed has ended", "", ""
		if replaced, err := a.replace(ctx, k, r, &gone); err != nil {
			return nil, err
		} else if !replaced { // another host was quicker
			return a.changed(ctx, p, k, scopes)
		}
		return nil, missing(p.Name, User, r.Scopes, "the account with %s is of no use any more: %s", p.Name, gone.Gone)
	}
	if a.Now().Before(r.Expires) {
		return r, nil // it is valid for a while yet
	}
	return nil, unanswered(p.Name, "to renew a token", err)
}

func (a *Accounts) renewed(ctx context.Context, p *Provider, k Key, r *record, t *oauth2.Token, scopes []string) (*record, error) {
	if len(t.AccessToken) > maxToken || len(t.RefreshToken) > maxToken {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s gave a token of more than %d bytes", k.Provider, maxToken)
	}
	next := *r
	next.Access, next.Expires, next.Scopes = t.AccessToken, a.ends(t), granted(t, r.Scopes)
	if t.RefreshToken != "" {
		next.Refresh = t.RefreshToken
	}
	replaced, err := a.replace(ctx, k, r, &next)
	if err == nil && !replaced {
		// A host that asked with the same refresh token was refused, and took the account for
		// revoked: that it was renewed here says otherwise.
		var now *record
		if now, err = a.load(ctx, k); err == nil && now != nil && now.Gone != "" && now.ID == r.ID && now.Connected.Equal(r.Connected) {
			replaced, err = a.replace(ctx, k, now, &next)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !replaced:
		return a.changed(ctx, p, k, scopes)
	}
	return &next, nil
}

// changed returns an account that another host, or its user, changed during a renewal here.
func (a *Accounts) changed(ctx context.Context, p *Provider, k Key, scopes []string) (*record, error) {
	r, err := a.load(ctx, k)
	if err != nil {
		return nil, err
	}
	if due, err := a.due(p, k, r, scopes); err != nil || !due {
		return r, err
	}
	return nil, &plugin.Error{Code: plugin.CodeUnavailable, Message: fmt.Sprintf("the account with %s was changed while its token was renewed; try again", p.Name), Retryable: true}
}

// ends returns when a token ends, by the host's own clock.
func (a *Accounts) ends(t *oauth2.Token) time.Time {
	if t.ExpiresIn > 0 {
		return a.Now().Add(time.Duration(t.ExpiresIn) * time.Second).UTC().Truncate(time.Second)
	}
	return t.Expiry.UTC().Truncate(time.Second)
}

// unanswered says that a provider did not do what it was asked for. What it said
// is for the log: it may hold what was sent.
func unanswered(provider, what string, err error) error {
	var known *plugin.Error
	if errors.As(err, &known) {
		return err
	}
	e := &plugin.Error{Code: plugin.CodeUnavailable, Message: fmt.Sprintf("%s was asked %s and did not answer; try again later", provider, what), Retryable: true, Err: err}
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil {
		e.Retryable = refused.Response.StatusCode >= 500 || refused.Response.StatusCode == http.StatusTooManyRequests
		e.Message = fmt.Sprintf("%s was asked %s and answered with status %d%s", provider, what, refused.Response.StatusCode, code(refused.ErrorCode))
		if !e.Retryable {
			e.Message += "; an administrator holds client_id, client_secret and scopes under auth: providers in mortise.yaml against what " + provider + " has"
		}
	}
	return e
}

// code returns an error's code where it is one (RFC 6749, 5.2).
func code(text string) string {
	if text == "" || len(text) > 64 || strings.ContainsFunc(text, func(r rune) bool { return r != '_' && r != '-' && (r < 'a' || r > 'z') }) {
		return ""
	}
	return " " + text
}

// revoke tells a provider that a token is of no use any more (RFC 7009), and
// returns why it could not.
func (a *Accounts) revoke(ctx context.Context, k Key, r *record) (problem string) {
	byHand := "; take the right away on the provider's own page"
	token := or(r.Refresh, r.Access)
	if token == "" {
		return "there was no token any more"
	}
	p, err := a.provider(k.Provider)
	if err != nil {
		return "mortise.yaml does not name the provider any more" + byHand
	}
	cfg, e, err := a.oauth(ctx, k.Tenant, p)
	if err != nil {
		return plugin.AsError(err).Message + byHand
	}
	if e.revoke == "" {
		return p.Name + " cannot be told" + byHand
	}
	form := url.Values{"token": {token}}
	if e.AuthStyle != oauth2.AuthStyleInHeader {
		form.Set("client_id", cfg.ClientID)
		if cfg.ClientSecret != "" {
			form.Set("client_secret", cfg.ClientSecret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.revoke, strings.NewReader(form.Encode()))
	if err != nil {
		return p.Name + " cannot be told" + byHand
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if e.AuthStyle == oauth2.AuthStyleInHeader {
		req.SetBasicAuth(url.QueryEscape(cfg.ClientID), url.QueryEscape(cfg.ClientSecret))
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return p.Name + " did not answer" + byHand
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s answered with status %d%s", p.Name, resp.StatusCode, byHand)
	}
	return ""
}
