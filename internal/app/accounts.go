package app

import (
	"context"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/secret"
)

// openAccounts returns the accounts that plugins act with.
func (a *App) openAccounts(scrubber *secret.Scrubber) *account.Accounts {
	return account.New(account.Options{
		Providers: setup.Providers(a.Config.Auth), Keeper: bridge.AccountKeeper{Of: a.Vault}, Know: scrubber.Learn, Keep: scrubber.Know, Addresses: a.addressesOf, Lock: setup.Leases(a.own, a.Config.Tenant),
	})
}

// addressesOf returns the mail addresses that a principal is linked to.
func (a *App) addressesOf(ctx context.Context, k account.Key) ([]string, error) {
	who := principal.Parse(k.Subject)
	links, err := a.own.IdentitiesOf(ctx, k.Tenant, who.Type, who.ID)
	var all []string
	for _, link := range links {
		if name, host, found := strings.Cut(link.ExternalID, "@"); link.Provider == k.Provider && found && name != "" && host != "" {
			all = append(all, link.ExternalID)
		}
	}
	return all, err
}

// SignInSecret returns the secret by which a provider knows this host where people sign in,
// "" where it is known without.
func (a *App) SignInSecret(p config.SignIn) (string, error) {
	return a.Connections.Read(account.Source{Env: p.ClientSecretEnv, File: p.ClientSecretFile})
}
