package oauth

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/mortise-dev/mortise/plugin"
)

// SecretOwner is for whom grants are kept among the secrets, each under the name of its plugin.
// No plugin has such a name, so no manifest can ask for what is there.
const SecretOwner = ":mounts"

// early is how long before its end a token is renewed.
const early = 30 * time.Second

// maxToken is how long a token may be.
const maxToken = 16 << 10

// A Grant is what signing in to a server resulted in.
type Grant struct {
	URL      string `json:"url"`      // of the server, as the manifest has it
	Resource string `json:"resource"` // what the server calls itself: the audience of the token

	Issuer string `json:"issuer"` // the authorization server, which a person confirmed
	Token  string `json:"token_endpoint"`

	ClientID     string           `json:"client_id"`
	ClientSecret string           `json:"client_secret,omitempty"` // of a client that was registered at sign-in
	Style        oauth2.AuthStyle `json:"client_auth"`

	Scopes  []string  `json:"scopes,omitempty"`
	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Expires time.Time `json:"expires_at,omitzero"`
	Gone    string    `json:"gone,omitempty"` // why it is of no use any more
}

// Parse reads a grant.
func Parse(raw string) (*Grant, error) {
	g := new(Grant)
	if err := json.Unmarshal([]byte(raw), g); err != nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "it is not what signing in to a server results in")
	}
	for _, address := range []string{g.URL, g.Resource, g.Issuer, g.Token} {
		if u, err := url.Parse(address); err != nil || u.Host == "" {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "it is not what signing in to a server results in: an address is missing")
		}
	}
	if g.ClientID == "" || g.Access == "" || len(g.Access) > maxToken || len(g.Refresh) > maxToken {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "it is not what signing in to a server results in: a client or a token is missing or too long")
	}
	return g, nil
}

// Text returns the grant as [Parse] reads it.
func (g *Grant) Text() (string, error) {
	raw, err := json.Marshal(g)
	return string(raw), err
}

// Due reports whether the token is to be renewed before it is used: it ends soon, or it is the
// one that the server refused.
func (g *Grant) Due(refused string) bool {
	return refused != "" && g.Access == refused || !g.Expires.IsZero() && time.Until(g.Expires) < early
}

// IsScope reports whether a text has the form of a scope (RFC 6749, 3.3).
func IsScope(text string) bool {
	return text != "" && len(text) <= 512 && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' || r == '\'' })
}

// Hidden are the values of the grant that may be in no output.
func (g *Grant) Hidden() []string {
	return slices.DeleteFunc([]string{g.Access, g.Refresh, g.ClientSecret}, func(v string) bool { return v == "" })
}
