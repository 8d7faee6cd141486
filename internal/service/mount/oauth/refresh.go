package oauth

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mortise-dev/mortise/plugin"
)

// Refresh returns the grant with another token. Its client's secret is secret, where the client
// was registered beforehand. What came of it replaces g before the token is used: an
// authorization server that gave out another refresh token took the old one back. A grant that
// is of no use any more comes back with Gone; the error is unavailable where that is not known.
func Refresh(ctx context.Context, client *http.Client, g Grant, secret string) (Grant, error) {
	if g.Refresh == "" {
		g.Gone = "its token ended, and none was given to renew it with"
		return g, nil
	}
	if secret == "" {
		secret = g.ClientSecret
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}, "resource": {g.Resource}}
	basic := secret != "" && g.Style != oauth2.AuthStyleInParams
	if !basic {
		form.Set("client_id", g.ClientID)
		if secret != "" {
			form.Set("client_secret", secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return g, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if basic {
		req.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(secret))
	}
	resp, err := client.Do(req)
	if err != nil {
		return g, unrenewed("its authorization server gave no answer", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return g, unrenewed("the answer of its authorization server cannot be read", err)
	}
	var got struct {
		Access  string  `json:"access_token"`
		Refresh string  `json:"refresh_token"`
		Type    string  `json:"token_type"`
		Seconds float64 `json:"expires_in"`
		Scope   string  `json:"scope"`
		Error   string  `json:"error"`
	}
	invalid := json.Unmarshal(raw, &got)
	switch {
	case resp.StatusCode != http.StatusOK && (got.Error == "invalid_grant" || got.Error == "invalid_client" || got.Error == "unauthorized_client" || got.Error == "invalid_target"):
		g.Gone = "its authorization server renews it no more (" + got.Error + ")"
		return g, nil
	case resp.StatusCode != http.StatusOK:
		return g, unrenewed("its authorization server answered "+http.StatusText(resp.StatusCode), nil)
	case invalid != nil || got.Access == "" || !strings.EqualFold(got.Type, "bearer") || len(got.Access) > maxToken || len(got.Refresh) > maxToken:
		return g, unrenewed("its authorization server answered without a token that can be used", nil)
	}
	g.Access, g.Expires = got.Access, time.Time{}
	if got.Refresh != "" {
		g.Refresh = got.Refresh
	}
	if got.Seconds > 0 {
		g.Expires = time.Now().Add(time.Duration(min(got.Seconds, 10*365*24*3600)) * time.Second).UTC().Truncate(time.Second)
	}
	if got.Scope != "" {
		g.Scopes = strings.Fields(got.Scope)
	}
	return g, nil
}

func unrenewed(why string, err error) error {
	return &plugin.Error{Code: plugin.CodeUnavailable, Message: "the token for its server was not renewed: " + why, Retryable: true, RetryAfter: time.Second, Err: err}
}
