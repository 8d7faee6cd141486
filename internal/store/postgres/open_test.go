package postgres_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

func refused(t *testing.T, url string, opts postgres.Options, want string) {
	t.Helper()
	st, err := postgres.Open(t.Context(), url, opts)
	if err == nil {
		st.Close()
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("opening ended with %v, want something of %q", err, want)
	}
}

func TestServerThatWouldLoseWritesIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.Open(t)
	here := postgres.Options{Home: t.TempDir()}
	refused(t, url+"&synchronous_commit=off", here, "synchronous_commit is off")
	refused(t, url+"&default_transaction_read_only=on", here, "takes no writes")
	refused(t, url, postgres.Options{}, "needs a directory")
	refused(t, url, postgres.Options{ReadOnly: true}, "open it for writing once")
	refused(t, "postgres://ada:hunter2@/nowhere?host=/nonexistent", here, "nonexistent")
	if _, err := postgres.Open(t.Context(), "postgres://ada:hunter2@/nowhere?host=/nonexistent", here); strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is in %q", err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	open(t, url, postgres.Options{Home: home}).Close()
	pgtest.Exec(t, url, "INSERT INTO mortise_migrations (version_id, is_applied) VALUES (99, true)")
	for _, opts := range []postgres.Options{{Home: home}, {ReadOnly: true}} {
		_, err := postgres.Open(t.Context(), url, opts)
		var newer *store.NewerError
		if !errors.As(err, &newer) || newer.Have != 99 || newer.Known >= 99 {
			t.Errorf("opening a newer database ended with %v", err)
		}
	}
}

func TestFirstOpensRace(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	const n = 8
	stores := make([]*postgres.Store, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			st, err := postgres.Open(context.Background(), url, postgres.Options{Home: home})
			if err == nil {
				err = st.Write(context.Background(), note)
			}
			if err != nil {
				t.Error(err)
			}
			stores[i] = st
		})
	}
	wg.Wait()
	held := make(map[string]bool)
	chains, err := stores[0].Chains(t.Context())
	for _, chain := range chains {
		held[chain.Node] = true
	}
	if err != nil || len(chains) != n || len(held) != n {
		t.Errorf("the chains are %+v, %v, want one for each of %d nodes", chains, err, n)
	}
	for _, st := range stores {
		wg.Go(func() { st.Close() })
	}
	wg.Wait()

	// Those who come later, two at a time, have two of the chains again.
	for range 5 {
		for range 2 {
			wg.Go(func() {
				st, err := postgres.Open(context.Background(), url, postgres.Options{Home: home})
				if err == nil {
					err = errors.Join(st.Write(context.Background(), note), st.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	if chains, err := open(t, url, postgres.Options{Home: home}).Chains(t.Context()); err != nil || len(chains) != n || chains[0].Seq+chains[1].Seq != 12 {
		t.Errorf("the chains are %+v, %v", chains, err)
	}
}

func TestReadOnly(t *testing.T) {
	t.Parallel()
	url := pgtest.Open(t)
	write(t, open(t, url, postgres.Options{Home: t.TempDir()}))
	st := open(t, url, postgres.Options{ReadOnly: true})
	if err := st.Write(t.Context(), note); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("a write ended with %v", err)
	}
	if chains, err := st.Chains(t.Context()); err != nil || len(chains) != 1 {
		t.Errorf("chains are %v, %v", chains, err)
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	url, first, second := pgtest.Open(t), t.TempDir(), t.TempDir()
	early := open(t, url, postgres.Options{Home: second}) // before there is any key
	write(t, open(t, url, postgres.Options{Home: first}))
	if err := early.Write(t.Context(), note); err == nil || !strings.Contains(err.Error(), "copy ledger.key") {
		t.Errorf("a write without the key ended with %v", err)
	}
	refused(t, url, postgres.Options{Home: second}, "is missing")
	if _, err := chain.CreateKey(second); err != nil {
		t.Fatal(err)
	}
	refused(t, url, postgres.Options{Home: second}, "is not the key")

	key, err := os.ReadFile(filepath.Join(first, store.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(second, store.KeyFile), key, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, url, postgres.Options{Home: second}))
}

func TestFirstKeysRace(t *testing.T) {
	t.Parallel()
	url := pgtest.Open(t)
	errs := make(chan error)
	const n = 6
	var stores []*postgres.Store
	for range n {
		stores = append(stores, open(t, url, postgres.Options{Home: t.TempDir()}))
	}
	for _, st := range stores {
		go func() { errs <- st.Write(context.Background(), note) }()
	}
	won := 0
	for range n {
		if err := <-errs; err == nil {
			won++
		} else if !strings.Contains(err.Error(), "copy ledger.key") {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d nodes signed with keys of their own", won)
	}
}
