package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A SignIn is a provider of OpenID Connect with which people sign in. Its secret is never
// written here: the file says where it is.
type SignIn struct {
	Name     string `yaml:"name" json:"name"`           // as people choose it, and in the redirect address
	Issuer   string `yaml:"issuer" json:"issuer"`       // by which the rest is discovered
	ClientID string `yaml:"client_id" json:"client_id"` // that the provider gave this host

	ClientSecretEnv  string `yaml:"client_secret_env" json:"client_secret_env,omitempty"`   // a variable of the host's environment
	ClientSecretFile string `yaml:"client_secret_file" json:"client_secret_file,omitempty"` // a file that only its owner may read

	Scopes []string `yaml:"scopes" json:"scopes"` // that are asked for beside openid

	GroupsClaim string              `yaml:"groups_claim" json:"groups_claim,omitempty"` // the claim of ID tokens that has groups
	Groups      map[string][]string `yaml:"groups" json:"groups,omitempty"`             // what it may say, with the groups of policy.groups that this gives
}

// Bounds of what is written of sign-ins.
const (
	maxSignIns = 8
	maxAge     = Duration(24 * time.Hour)
)

// Base returns the address at which browsers reach the host, without a slash at its end:
// public_url, or that of a listener, or where that is not known that of listen.
func (s Server) Base(listener string) string {
	if s.PublicURL != "" {
		return strings.TrimSuffix(s.PublicURL, "/")
	}
	if listener == "" {
		listener = s.Listen
	}
	if listener == "" {
		listener = "127.0.0.1:PORT"
	}
	if s.Encrypted() {
		return "https://" + listener
	}
	return "http://" + listener
}

func (s *Server) completeSignIns(dir string) {
	for i := range s.SignIn {
		if file := &s.SignIn[i].ClientSecretFile; *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(dir, *file)
		}
	}
}

func (s Server) checkSignIns(groups map[string][]string) (errs []error) {
	refuse := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.PublicURL != "" {
		if u, err := url.Parse(s.PublicURL); err != nil || !privateURL(s.PublicURL) || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			refuse("server.public_url is %.200q; it is https://HOST, or http:// and a loopback address, without a path", s.PublicURL)
		}
	}
	if s.SignInAge < 0 || s.SignInAge > maxAge {
		refuse("server.sign_in_age is %s; it is at most %s", time.Duration(s.SignInAge), time.Duration(maxAge))
	}
	if len(s.SignIn) > maxSignIns {
		refuse("server.sign_in: there are %d; at most %d are kept", len(s.SignIn), maxSignIns)
	}
	var names, issuers []string
	for _, p := range s.SignIn {
		if !providerName.MatchString(p.Name) || slices.Contains(names, p.Name) {
			refuse("server.sign_in: %.100q is no name of its own: lower-case letters, digits, _, . and -", p.Name)
		}
		if !privateURL(p.Issuer) || slices.Contains(issuers, p.Issuer) {
			refuse("server.sign_in, %.100s: issuer is %.200q; it is an https address, or one of this machine, and of one entry", p.Name, p.Issuer)
		}
		names, issuers = append(names, p.Name), append(issuers, p.Issuer)
		if p.ClientID == "" || len(p.ClientID) > 512 || strings.ContainsFunc(p.ClientID, func(r rune) bool { return r <= ' ' || r > '~' }) {
			refuse("server.sign_in, %.100s: client_id is not one word of at most 512 characters", p.Name)
		}
		for _, problem := range onePlace("client_secret", p.ClientSecretEnv, p.ClientSecretFile, "") {
			refuse("server.sign_in, %.100s: %s", p.Name, problem)
		}
		for _, problem := range mappedGroups(p.GroupsClaim, p.Groups, groups) {
			refuse("server.sign_in, %.100s: %s", p.Name, problem)
		}
		if len(p.Scopes) > maxAuthScopes || slices.ContainsFunc(p.Scopes, func(scope string) bool {
			return scope == "" || len(scope) > 512 || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' })
		}) {
			refuse("server.sign_in, %.100s: scopes are at most %d words", p.Name, maxAuthScopes)
		}
	}
	return errs
}
