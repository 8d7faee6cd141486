package setup

import (
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/service/account"
)

// Providers are the providers of accounts of a configuration, by name.
func Providers(c config.Auth) []account.Provider {
	var all []account.Provider
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		p := c.Providers[name]
		made := account.Provider{
			Name: name, Kind: p.Kind, ClientID: p.ClientID, ClientSecret: account.Source{Env: p.ClientSecretEnv, File: p.ClientSecretFile, Secret: p.ClientSecretName},
			Issuer: p.Issuer, AuthURL: p.AuthorizeURL, TokenURL: p.TokenURL, RevokeURL: p.RevokeURL, UserURL: p.UserURL, Scopes: p.Scopes, RedirectPort: p.RedirectPort,
		}
		if s := p.Service; s != nil {
			made.Service = &account.Service{Key: account.Source{Env: s.KeyEnv, File: s.KeyFile, Secret: s.KeyName}, Subjects: s.Subjects}
		}
		all = append(all, made)
	}
	return all
}
