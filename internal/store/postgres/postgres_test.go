package postgres_test

import (
	"context"
	"database/sql"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/store/storetest"
	"github.com/mortise-dev/mortise/plugin"
)

func open(t testing.TB, url string, opts postgres.Options) *postgres.Store {
	t.Helper()
	st, err := postgres.Open(context.Background(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func note(tx store.Tx) error {
	tx.Append(plugin.Entry{At: time.Now(), Tenant: "t", Kind: plugin.EntryCallSucceeded, Subject: "s", Body: []byte(`{}`)})
	return nil
}

func write(t *testing.T, st store.Store) {
	t.Helper()
	if err := st.Write(t.Context(), note); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	template := pgtest.Open(t) // migrated once for all: a migration has many commits
	if err := open(t, template, postgres.Options{Home: t.TempDir()}).Close(); err != nil {
		t.Fatal(err)
	}
	type place struct{ url, home string }
	var places sync.Map // by the name of the test
	storetest.Run(t, storetest.Engine{Chains: true, Old: old, Edit: func(t *testing.T) (*sql.DB, string) {
		found, _ := places.Load(t.Name())
		p := found.(place)
		db, err := sql.Open("pgx", pgtest.Super(p.url))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db, p.home
	}, Open: func(t *testing.T) store.Store {
		found, ok := places.Load(t.Name())
		if !ok {
			found = place{pgtest.Copy(t, template), t.TempDir()}
			places.Store(t.Name(), found)
		}
		p := found.(place)
		st, err := postgres.Open(t.Context(), p.url, postgres.Options{Home: p.home})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}})
}

// old makes a database as the first schema had it, and opens it.
func old(t *testing.T, statements ...string) store.Store {
	url := pgtest.Open(t)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations"), goose.WithDisableGlobalRegistry(true), goose.WithTableName("mortise_migrations"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, statement := range statements {
		pgtest.Exec(t, url, statement)
	}
	refused(t, url, postgres.Options{ReadOnly: true}, "open it for writing once")
	return open(t, url, postgres.Options{Home: t.TempDir()})
}
