package account_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
)

// twoNodes returns two stores of one database; those of PostgreSQL share no directory.
func twoNodes(t *testing.T, engine string) (nodes [2]store.Store) {
	t.Helper()
	home, url := t.TempDir(), ""
	if engine == "postgres" {
		url = pgtest.Open(t)
	}
	for i := range nodes {
		var err error
		if url == "" {
			nodes[i], err = sqlite.Open(t.Context(), home, sqlite.Options{})
		} else {
			if i > 0 { // the key of the ledger is that of the first node
				key, err := os.ReadFile(filepath.Join(home, "ledger.key"))
				if err != nil {
					t.Fatal(err)
				}
				home = t.TempDir()
				if err := os.WriteFile(filepath.Join(home, "ledger.key"), key, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			nodes[i], err = postgres.Open(t.Context(), url, postgres.Options{Home: home})
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nodes[i].Close() })
		if err := nodes[i].Write(t.Context(), func(tx store.Tx) error {
			return tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "t", Key: "first"}, Labels: []string{}})
		}); err != nil {
			t.Fatal(err)
		}
	}
	return nodes
}

// TestNodesThatRenewAtOnceKeepTheAccount: whichever of the nodes of a database renews, and however
// many do at a time, the account stays connected. With leases the provider is asked once a round;
// without, as where a lease ended while its holder was paused, compare-and-set keeps the account.
func TestNodesThatRenewAtOnceKeepTheAccount(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"sqlite", "postgres"} {
		for _, leased := range []bool{true, false} {
			name := engine + " with leases"
			if !leased {
				name = engine + " without"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t)
				dir := t.TempDir()
				var hosts [2]*account.Accounts
				for i, st := range twoNodes(t, engine) {
					o := s.options
					v := vault{secret.New(st, secret.Place{Dir: dir}, s.scrubber)}
					o.Keeper = twoVaults{v, s.options.Keeper}
					if leased {
						o.Lock = func(ctx context.Context, name string) (func(), error) { return store.Lease(ctx, st, "t", name) }
					}
					hosts[i] = account.New(o)
				}
				s.Accounts = hosts[0]
				s.connected("mail.read")
				const rounds = 10
				for range rounds {
					s.wait(2 * time.Hour)
					var all sync.WaitGroup
					for _, a := range hosts {
						all.Go(func() {
							answer, err := a.Resolve(t.Context(), userOf("mail.read"), account.Ask{Provider: "mail"})
							if leased && (err != nil || answer.Token == nil || !s.server.Valid(*answer.Token)) {
								t.Errorf("a node got %v", err)
							}
						})
					}
					all.Wait()
					if is, err := hosts[0].Find(t.Context(), ada); err != nil || is == nil || is.Gone != "" {
						t.Fatalf("the account is %+v, %v; want it connected", is, err)
					}
				}
				if leased && s.server.Renewals != rounds {
					t.Errorf("the provider was asked %d times in %d rounds, want once each", s.server.Renewals, rounds)
				}
			})
		}
	}
}

// twoVaults keep accounts in one place, and have the secrets of providers from another.
type twoVaults struct {
	vault
	of account.Keeper
}

func (v twoVaults) Secret(ctx context.Context, tenant, name string) (string, bool, error) {
	return v.of.Secret(ctx, tenant, name)
}
