package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/chain"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/internal/store/storetest"
	"github.com/mortise-dev/mortise/plugin"
)

func open(t *testing.T, dir string) *sqlite.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func raw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
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
	var dirs sync.Map // by the name of the test
	storetest.Run(t, storetest.Engine{Open: func(t *testing.T) store.Store {
		dir, ok := dirs.Load(t.Name())
		if !ok {
			dir = filepath.Join(t.TempDir(), "data dir?#%41") // a path is not a URL
			dirs.Store(t.Name(), dir)
		}
		st, err := sqlite.Open(t.Context(), dir.(string), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}, Old: old, Edit: func(t *testing.T) (*sql.DB, string) {
		dir, _ := dirs.Load(t.Name())
		return raw(t, (&url.URL{Scheme: "file", Path: dir.(string)}).String()), dir.(string)
	}})
}

// old makes a database as the first schema had it, and opens it.
func old(t *testing.T, statements ...string) store.Store {
	dir := t.TempDir()
	db := raw(t, dir)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, os.DirFS("migrations"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for _, statement := range append(statements, "PRAGMA user_version = 1") {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{ReadOnly: true}); err == nil || !strings.Contains(err.Error(), "open it for writing once") {
		t.Errorf("opening it for reading ended with %v", err)
	}
	return open(t, dir)
}

func TestFilesAreTheirOwnersOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	st := open(t, dir)
	write(t, st)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{
		".": 0o700, "nodes": 0o700, sqlite.File: 0o600, store.KeyFile: 0o600, chain.AnchorFile: 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	if locks, _ := os.ReadDir(filepath.Join(dir, "nodes")); len(locks) != 0 {
		t.Errorf("a clean close left %v", locks)
	}
	if temps, _ := filepath.Glob(filepath.Join(dir, ".*")); len(temps) != 0 {
		t.Errorf("left behind: %v", temps)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	if _, err := raw(t, dir).Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	var newer *store.NewerError
	if !errors.As(err, &newer) || newer.Have != 99 || newer.Known >= 99 {
		t.Errorf("opening a newer database ended with %v", err)
	}
}

func TestInterruptedMigrationIsTakenUp(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	if _, err := raw(t, dir).Exec("PRAGMA user_version = 0"); err != nil {
		t.Fatal(err)
	}
	write(t, open(t, dir))
}

func TestFirstOpensRace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	errs := make(chan error)
	for range 8 {
		go func() {
			st, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
			if err == nil {
				err = errors.Join(st.Write(context.Background(), note), st.Close())
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if chains, err := open(t, dir).Chains(t.Context()); err != nil || chains[0].Seq != 8 {
		t.Errorf("chains are %v, %v", chains, err)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening no database ended with %v", err)
	}
	write(t, open(t, dir))
	st, err := sqlite.Open(t.Context(), dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := st.Write(t.Context(), note); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("a write ended with %v", err)
	}
	if chains, err := st.Chains(t.Context()); err != nil || len(chains) != 1 {
		t.Errorf("chains are %v, %v", chains, err)
	}
}

func TestKey(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(path string) error
		want string
	}{
		{"missing", os.Remove, "restore it"},
		{"readable by others", func(p string) error { return os.Chmod(p, 0o640) }, "chmod 600"},
		{"too short", func(p string) error { return os.Truncate(p, 31) }, "has 31 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			st := open(t, dir)
			write(t, st)
			st.Close()
			if err := test.do(filepath.Join(dir, store.KeyFile)); err != nil {
				t.Fatal(err)
			}
			if _, err := sqlite.Open(t.Context(), dir, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("opening ended with %v, want something of %q", err, test.want)
			}
		})
	}
	t.Run("is made for the first entry", func(t *testing.T) {
		dir := t.TempDir()
		st := open(t, dir)
		if err := st.Write(t.Context(), func(tx store.Tx) error { return tx.PutPackage(store.PackageRow{Digest: "d"}) }); err != nil {
			t.Fatal(err)
		}
		if _, err := store.ReadKey(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading the key ended with %v", err)
		}
	})
}

func TestForgedHeadIsNotBuiltUpon(t *testing.T) {
	for _, forgery := range []string{
		"UPDATE chains SET seq = 1, head = (SELECT hash FROM entries WHERE seq = 1); DELETE FROM entries WHERE seq = 2",
		"DELETE FROM chains",
	} {
		dir := t.TempDir()
		st := open(t, dir)
		write(t, st)
		write(t, st)
		if _, err := raw(t, dir).Exec(forgery); err != nil {
			t.Fatal(err)
		}
		if err := st.Write(t.Context(), note); !errors.Is(err, store.ErrTampered) {
			t.Errorf("appending after %q ended with %v", forgery, err)
		}
		st.Close()
	}
}

func TestAnchor(t *testing.T) {
	dir := t.TempDir()
	session := func() {
		t.Helper()
		st := open(t, dir)
		write(t, st)
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
	}
	anchor := func() *store.Anchor {
		t.Helper()
		a, err := chain.ReadAnchor(dir)
		if err != nil || a == nil {
			t.Fatal(a, err)
		}
		return a
	}
	session()
	copied, err := os.ReadFile(filepath.Join(dir, sqlite.File))
	if err != nil {
		t.Fatal(err)
	}
	first := anchor()
	session()
	second := anchor()
	if first.Seq != 1 || second.Seq != 2 {
		t.Fatalf("the anchors are at %d and %d", first.Seq, second.Seq)
	}
	// An older copy that is written further does not wash the evidence away.
	if err := os.WriteFile(filepath.Join(dir, sqlite.File), copied, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		session()
		if got := anchor(); *got != *second {
			t.Fatalf("the anchor moved from %v to %v", second, got)
		}
	}
}
