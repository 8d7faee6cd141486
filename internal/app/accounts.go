package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/filelock"
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
		Providers: setup.Providers(a.Config.Auth), Keeper: bridge.AccountKeeper{Of: a.Vault}, Know: scrubber.Learn, Keep: scrubber.Know, Addresses: a.addressesOf, Lock: a.lockAccount,
	})
}

// addressesOf returns the mail addresses that a principal is linked to.
func (a *App) addressesOf(ctx context.Context, k account.Key) ([]string, error) {
	who := principal.Parse(k.Subject)
	links, err := a.Store.IdentitiesOf(ctx, k.Tenant, who.Type, who.ID)
	var all []string
	for _, link := range links {
		if name, host, found := strings.Cut(link.ExternalID, "@"); link.Provider == k.Provider && found && name != "" && host != "" {
			all = append(all, link.ExternalID)
		}
	}
	return all, err
}

// lockWait is how often it is looked whether another host is done.
const lockWait = 50 * time.Millisecond

// lockAccount keeps other hosts of the data directory from renewing an account.
func (a *App) lockAccount(ctx context.Context, name string) (release func(), err error) {
	sum := sha256.Sum256([]byte(name))
	path := filepath.Join(a.dir("runtime"), "account-"+hex.EncodeToString(sum[:8])+".lock")
	for {
		lock, err := filelock.Try(path)
		if err != nil {
			return nil, err
		}
		if lock != nil {
			return func() { lock.Remove() }, nil
		}
		select {
		case <-time.After(lockWait):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// SignInSecret returns the secret by which a provider knows this host where people sign in,
// "" where it is known without.
func (a *App) SignInSecret(p config.SignIn) (string, error) {
	return a.Connections.Read(account.Source{Env: p.ClientSecretEnv, File: p.ClientSecretFile})
}
