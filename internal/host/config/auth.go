package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// Auth says with whom people may have accounts that plugins act with.
type Auth struct {
	Providers map[string]AuthProvider `yaml:"providers" json:"providers"` // by the name that plugins say
}

// An AuthProvider is who has accounts. Its secrets are never written here: the
// file says where they are.
type AuthProvider struct {
	Kind     string `yaml:"kind" json:"kind"`           // google, microsoft, github, oidc; the name where that is one of them, and else oidc
	ClientID string `yaml:"client_id" json:"client_id"` // empty where only the service account is used

	ClientSecretEnv  string `yaml:"client_secret_env" json:"client_secret_env,omitempty"`   // a variable of the host's environment
	ClientSecretFile string `yaml:"client_secret_file" json:"client_secret_file,omitempty"` // a file that only its owner may read
	ClientSecretName string `yaml:"client_secret_name" json:"client_secret_name,omitempty"` // a secret: mortise secrets set NAME --system --plugin :providers

	Issuer       string   `yaml:"issuer" json:"issuer,omitempty"` // of OpenID Connect, by which the rest is discovered
	AuthorizeURL string   `yaml:"authorize_url" json:"authorize_url,omitempty"`
	TokenURL     string   `yaml:"token_url" json:"token_url,omitempty"`
	RevokeURL    string   `yaml:"revoke_url" json:"revoke_url,omitempty"`
	UserURL      string   `yaml:"user_url" json:"user_url,omitempty"` // whose account it is, where no ID token says so
	Scopes       []string `yaml:"scopes" json:"scopes"`               // that are always asked for
	RedirectPort int      `yaml:"redirect_port" json:"redirect_port"` // of the loopback address that a browser comes back to; any where it is 0
	Service      *Service `yaml:"service_account" json:"service_account,omitempty"`
}

// Service is the service account of the host with a provider.
type Service struct {
	KeyEnv   string   `yaml:"key_env" json:"key_env,omitempty"`
	KeyFile  string   `yaml:"key_file" json:"key_file,omitempty"` // the JSON file that the provider gave
	KeyName  string   `yaml:"key_name" json:"key_name,omitempty"` // a secret: mortise secrets set NAME --system --plugin :providers
	Subjects []string `yaml:"subjects" json:"subjects"`           // for whom it may stand in beside the caller: an address, or *@domain
}

// Bounds of what is written of providers.
const (
	maxProviders  = 32
	maxAuthScopes = 64
	maxSubjects   = 256
)

var providerName = pattern.New(`^[a-z][a-z0-9_.-]{0,63}$`)

// complete fills up what is left to the name, and makes paths absolute.
func (a *Auth) complete(dir string) {
	beneath := func(path *string) {
		if dir != "" && *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	for name, p := range a.Providers {
		if p.Kind == "" {
			p.Kind = "oidc"
			if name == "google" || name == "microsoft" || name == "github" {
				p.Kind = name
			}
		}
		beneath(&p.ClientSecretFile)
		if p.Service != nil {
			beneath(&p.Service.KeyFile)
		}
		a.Providers[name] = p
	}
}

func (a *Auth) check() (errs []error) {
	if len(a.Providers) > maxProviders {
		errs = append(errs, fmt.Errorf("auth.providers: there are %d; at most %d are kept", len(a.Providers), maxProviders))
	}
	for name, p := range a.Providers {
		if !providerName.MatchString(name) {
			errs = append(errs, fmt.Errorf("auth.providers: %.100q is no name of a provider: it is lower-case letters, digits, _, . and -", name))
		}
		for _, problem := range p.check() {
			errs = append(errs, fmt.Errorf("auth.providers, %.100s: %s", name, problem))
		}
	}
	return errs
}

func (p *AuthProvider) check() (problems []string) {
	refuse := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	switch p.Kind {
	case "google", "microsoft", "github":
	case "oidc":
		if p.ClientID != "" && p.Issuer == "" && (p.AuthorizeURL == "" || p.TokenURL == "") {
			refuse("it has neither an issuer nor both authorize_url and token_url")
		}
	default:
		refuse("the kind is %q; it is google, microsoft, github or oidc", p.Kind)
	}
	if p.ClientID == "" && p.Service == nil {
		refuse("it has neither client_id nor service_account")
	}
	if len(p.ClientID) > 512 || strings.ContainsFunc(p.ClientID, func(r rune) bool { return r <= ' ' || r > '~' }) {
		refuse("client_id is not one word of at most 512 characters")
	}
	problems = append(problems, onePlace("client_secret", p.ClientSecretEnv, p.ClientSecretFile, p.ClientSecretName)...)
	for key, at := range map[string]string{"issuer": p.Issuer, "authorize_url": p.AuthorizeURL, "token_url": p.TokenURL, "revoke_url": p.RevokeURL, "user_url": p.UserURL} {
		if at != "" && !privateURL(at) {
			refuse("%s is %.200q; it is an https address, or one of this machine", key, at)
		}
	}
	if len(p.Scopes) > maxAuthScopes {
		refuse("there are %d scopes; at most %d are asked for", len(p.Scopes), maxAuthScopes)
	}
	for _, scope := range p.Scopes {
		if scope == "" || len(scope) > 512 || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' }) {
			refuse("%.100q is no scope; it is one word", scope)
		}
	}
	if p.RedirectPort < 0 || p.RedirectPort > 65535 {
		refuse("redirect_port is %d; it is 1 to 65535, and 0 for any", p.RedirectPort)
	}
	if s := p.Service; s != nil {
		problems = append(problems, onePlace("service_account: key", s.KeyEnv, s.KeyFile, s.KeyName)...)
		if s.KeyEnv+s.KeyFile+s.KeyName == "" {
			refuse("service_account has none of key_env, key_file and key_name; say where its key is")
		}
		if len(s.Subjects) > maxSubjects {
			refuse("service_account: there are %d subjects; at most %d are kept", len(s.Subjects), maxSubjects)
		}
		for _, subject := range s.Subjects {
			if name, host, found := strings.Cut(subject, "@"); !found || name == "" || host == "" || name != "*" && strings.Contains(subject, "*") || strings.ContainsAny(host, "*@ ") {
				refuse("service_account: subjects: %.100q is neither an address nor *@domain", subject)
			}
		}
	}
	return problems
}

// onePlace refuses a secret that is said to be in several places, or written in
// place of where it is.
func onePlace(what, env, file, name string) (problems []string) {
	places := 0
	for _, place := range []string{env, file, name} {
		if place != "" {
			places++
		}
	}
	if places > 1 {
		problems = append(problems, what+"_env, "+what+"_file and "+what+"_name are places of one secret; name one of them")
	}
	if env != "" && !variable.MatchString(env) {
		problems = append(problems, what+"_env is not the name of a variable; the secret itself has no place in this file") // what is there may be it, so it is not shown
	}
	if len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		problems = append(problems, what+"_name is no name of a secret; the secret itself has no place in this file")
	}
	return problems
}

// privateURL reports whether what is sent to an address cannot be read on the
// way.
func privateURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}
