package account

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/mortise-dev/mortise/plugin"
)

// The kinds of provider.
const (
	Google    = "google"
	Microsoft = "microsoft"
	GitHub    = "github"
	OIDC      = "oidc" // any issuer of OpenID Connect, or OAuth 2 by its endpoints
)

// A Provider is who has accounts.
type Provider struct {
	Name         string
	Kind         string
	ClientID     string // empty: only its service account is used
	ClientSecret Source // none for a public client
	Issuer       string // by which everything else is discovered

	AuthURL, TokenURL, RevokeURL, UserURL string // in place of what is discovered

	Scopes       []string // that are always asked for
	RedirectPort int      // of the loopback address that a browser is sent back to; any where it is 0
	Service      *Service // nil where there is none
}

// A Service is the service account of the host with a provider.
type Service struct {
	Key      Source   // the key file's JSON
	Subjects []string // for whom it may stand in beside a call's own principal: an address, or *@domain
}

// A Source says where a secret is: in at most one place.
type Source struct {
	Env    string
	File   string
	Secret string // a secret that an administrator set for providers
}

// None reports whether it is nowhere.
func (s Source) None() bool { return s == Source{} }

// maxSecret is the longest secret of a provider.
const maxSecret = 64 << 10

// read returns what is there, and tells what is not to be seen afterwards.
func (a *Accounts) read(ctx context.Context, tenant string, s Source) (value string, err error) {
	wrong := func(format string, args ...any) (string, error) {
		return "", plugin.Errorf(plugin.CodeUnavailable, "the provider's secret cannot be read: %w", fmt.Errorf(format, args...))
	}
	switch {
	case s.None():
		return "", nil
	case s.Env != "":
		if value = os.Getenv(s.Env); value == "" {
			return wrong("the environment variable %s is not set; put it there before starting the host", s.Env)
		}
	case s.File != "":
		raw, err := readOwn(s.File)
		if err != nil {
			return wrong("%s: %w", s.File, err)
		}
		value = string(raw)
	default:
		found := false
		if value, found, err = a.Keeper.Secret(ctx, tenant, s.Secret); err != nil {
			return "", err
		}
		if !found {
			return wrong("the secret %s is not set; an administrator sets it: mortise secrets set %s --system --plugin %s", s.Secret, s.Secret, SecretsOwner)
		}
	}
	if value = strings.TrimSpace(value); value == "" || len(value) > maxSecret {
		return wrong("it is empty or has more than %d bytes", maxSecret)
	}
	return value, a.Keep(value)
}

// Read returns a secret that is in the environment or in a file that only its owner may
// read, and tells what is not to be seen afterwards. One that is nowhere is "".
func (a *Accounts) Read(s Source) (string, error) {
	return a.read(context.Background(), "", Source{Env: s.Env, File: s.File})
}

// SecretsOwner is for whom an administrator sets the secrets of providers. No
// plugin has such a name.
const SecretsOwner = ":providers"

// readOwn reads a file that only its owner may read.
func readOwn(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		var wrong *fs.PathError
		if errors.As(err, &wrong) {
			err = wrong.Err
		}
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Mode().Perm()&0o077 != 0:
		return nil, errors.New("others can read it; let only its owner: chmod 600")
	}
	return io.ReadAll(io.LimitReader(f, maxSecret+1))
}

// provider returns one by its name.
func (a *Accounts) provider(name string) (*Provider, error) {
	if i := slices.IndexFunc(a.Providers, func(p Provider) bool { return p.Name == name }); i >= 0 {
		return &a.Providers[i], nil
	}
	var names []string
	for _, p := range a.Providers {
		names = append(names, p.Name)
	}
	there := "and there is none yet"
	if len(names) > 0 {
		there = "beside " + strings.Join(names, ", ")
	}
	return nil, missing(name, "", nil, "no provider is called %.128q; an administrator adds it under auth: providers in mortise.yaml, %s", name, there)
}

// endpoints are where a provider is asked.
type endpoints struct {
	oauth2.Endpoint
	revoke   string
	user     string
	issuer   string
	says     bool // the issuer names itself when it sends a browser back (RFC 9207)
	offline  bool // it knows the scope offline_access
	oidc     *oidc.Provider
	verifier *oidc.IDTokenVerifier // nil for OAuth 2 alone
	at       time.Time
}

// discoveryTime is how long what was discovered counts.
const discoveryTime = time.Hour

// common is the issuer of Microsoft for accounts of all tenants.
const common = "https://login.microsoftonline.com/common/v2.0"

// endpointsOf returns where a provider is asked, which may have to be discovered.
func (a *Accounts) endpointsOf(ctx context.Context, p *Provider) (*endpoints, error) {
	a.mu.Lock()
	e := a.known[p.Name]
	a.mu.Unlock()
	if e != nil && a.Now().Sub(e.at) < discoveryTime {
		return e, nil
	}
	e = &endpoints{at: a.Now(), revoke: p.RevokeURL, user: p.UserURL}
	issuer := p.Issuer
	switch {
	case issuer != "":
	case p.Kind == Google:
		issuer = "https://accounts.google.com"
	case p.Kind == Microsoft:
		issuer = common
	case p.Kind == GitHub:
		e.Endpoint = oauth2.Endpoint{AuthURL: "https://github.com/login/oauth/authorize", TokenURL: "https://github.com/login/oauth/access_token"}
		e.user = or(e.user, "https://api.github.com/user")
	}
	e.AuthStyle = oauth2.AuthStyleInParams
	if issuer != "" {
		if err := a.discover(ctx, p, issuer, e); err != nil {
			return nil, err
		}
	}
	e.AuthURL, e.TokenURL = or(p.AuthURL, e.AuthURL), or(p.TokenURL, e.TokenURL)
	a.mu.Lock()
	a.known[p.Name] = e
	a.mu.Unlock()
	return e, nil
}

func (a *Accounts) discover(ctx context.Context, p *Provider, issuer string, e *endpoints) error {
	ctx = a.asking(ctx)
	cfg := &oidc.Config{ClientID: p.ClientID, Now: a.Now}
	if p.Kind == Microsoft && issuer == common { // its issuer names the tenant of each account
		ctx = oidc.InsecureIssuerURLContext(ctx, "https://login.microsoftonline.com/{tenantid}/v2.0")
		cfg.SkipIssuerCheck = true
	}
	found, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return &plugin.Error{Code: plugin.CodeUnavailable, Message: fmt.Sprintf("%s: what %s says of itself cannot be read; try again, or correct the issuer under auth: providers in mortise.yaml", p.Name, issuer), Retryable: true, Err: err}
	}
	var says struct {
		Revoke  string   `json:"revocation_endpoint"`
		Iss     bool     `json:"authorization_response_iss_parameter_supported"`
		Scopes  []string `json:"scopes_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&says); err != nil {
		return plugin.Errorf(plugin.CodeUnavailable, "%s: what %s says of itself is wrong: %w", p.Name, issuer, err)
	}
	e.Endpoint = found.Endpoint()
	e.AuthStyle = oauth2.AuthStyleInParams
	if basic := len(says.Methods) == 0 || slices.Contains(says.Methods, "client_secret_basic"); basic && p.Kind == OIDC && !p.ClientSecret.None() {
		e.AuthStyle = oauth2.AuthStyleInHeader // which is the default of OpenID Connect
	}
	for _, at := range []string{e.AuthURL, e.TokenURL, found.UserInfoEndpoint(), says.Revoke} {
		if at != "" && !Secure(at) {
			return plugin.Errorf(plugin.CodeUnavailable, "%s: %s names the address %.200q, which is not of https", p.Name, issuer, at)
		}
	}
	e.issuer, e.says, e.offline = issuer, says.Iss, slices.Contains(says.Scopes, "offline_access")
	e.revoke = or(e.revoke, says.Revoke)
	e.oidc, e.verifier = found, found.VerifierContext(ctx, cfg)
	return nil
}

// Secure reports whether what is sent to an address cannot be read on the way:
// it is of https, or of this machine.
func Secure(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	switch host := u.Hostname(); {
	case u.Scheme == "https":
		return true
	case u.Scheme == "http":
		return host == "127.0.0.1" || host == "::1" || host == "localhost"
	}
	return false
}

func or(first, second string) string {
	if first != "" {
		return first
	}
	return second
}

// oauth returns how tokens of users are asked for.
func (a *Accounts) oauth(ctx context.Context, tenant string, p *Provider) (*oauth2.Config, *endpoints, error) {
	if p.ClientID == "" {
		return nil, nil, plugin.Errorf(plugin.CodeUnavailable, "accounts with %s cannot be connected: set its client_id under auth: providers in mortise.yaml", p.Name)
	}
	secret, err := a.read(ctx, tenant, p.ClientSecret)
	if err != nil {
		return nil, nil, err
	}
	e, err := a.endpointsOf(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: secret, Endpoint: e.Endpoint}, e, nil
}
