package postgres_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// texts returns the first column of a query.
func texts(t *testing.T, url, query string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Super(url))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// made is what a database is made of.
var made = []string{
	"SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable || coalesce(' ' || column_default, '') || coalesce(' ' || collation_name, '') FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1",
	"SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
	"SELECT conrelid::regclass || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace ORDER BY 1",
	"SELECT relname || ' ' || relrowsecurity || ' ' || relforcerowsecurity FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY 1",
	"SELECT tablename || ' ' || policyname || ' ' || qual FROM pg_policies ORDER BY 1",
	"SELECT version_id || ' ' || is_applied FROM mortise_migrations ORDER BY id",
}

// loading returns a dump of a database as it is loaded again.
func loading(t *testing.T, url string) postgres.Loading {
	t.Helper()
	dir := t.TempDir()
	texts := map[string]string{}
	d, err := postgres.WriteDump(t.Context(), url, dir, func(table postgres.Table, path string) error {
		raw, err := os.ReadFile(path)
		texts[table.Name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	return postgres.Loading{
		Schema: d.Schema, Tables: d.Tables, Recovery: store.Recovery{Since: time.Now(), Why: "a test"},
		Open:  func(name string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(texts[name])), nil },
		Check: func(context.Context, store.Store) error { return nil },
	}
}

// TestALoadedDatabaseIsMadeAsOneThatWasMigrated: columns, indexes, constraints, policies and
// versions are the same, and no sequence is left behind its rows.
func TestALoadedDatabaseIsMadeAsOneThatWasMigrated(t *testing.T) {
	t.Parallel()
	from, to := pgtest.Open(t), pgtest.Open(t)
	open(t, from, postgres.Options{Home: t.TempDir()}).Close()
	if err := postgres.Load(t.Context(), to, loading(t, from)); err != nil {
		t.Fatal(err)
	}
	for _, query := range made {
		if a, b := texts(t, from, query), texts(t, to, query); !slices.Equal(a, b) || len(a) == 0 {
			t.Errorf("%s: %d and %d rows, which differ", query, len(a), len(b))
		}
	}
	// A table with a sequence of its own would need it set: there is none.
	if s := texts(t, to, "SELECT sequencename FROM pg_sequences"); !slices.Equal(s, []string{"mortise_migrations_id_seq"}) {
		t.Errorf("sequences are %v: Load sets none of them", s)
	}
	pgtest.Exec(t, to, "INSERT INTO mortise_migrations (version_id, is_applied) VALUES (1, true)") // its sequence goes on
}

// TestALoadThatFailsChangesNothing: neither an empty database nor one with tables of others or
// of a host.
func TestALoadThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	from := pgtest.Open(t)
	open(t, from, postgres.Options{Home: t.TempDir()}).Close()
	l := loading(t, from)
	const relations = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
	load := func(url string, change func(*postgres.Loading)) error {
		t.Helper()
		with := l
		with.Tables = slices.Clone(l.Tables)
		change(&with)
		before := texts(t, url, relations)
		err := postgres.Load(t.Context(), url, with)
		if after := texts(t, url, relations); !slices.Equal(before, after) {
			t.Errorf("%v, and it has now %v", err, after)
		}
		return err
	}
	refusal := errors.New("refused")
	for what, change := range map[string]func(*postgres.Loading){
		"a check that fails": func(l *postgres.Loading) { l.Check = func(context.Context, store.Store) error { return refusal } },
		"a table less":       func(l *postgres.Loading) { l.Tables = l.Tables[1:] },
		"another table":      func(l *postgres.Loading) { l.Tables[0].Name = "pg_authid" },
		"another column":     func(l *postgres.Loading) { l.Tables[0].Columns = []string{"x; DROP TABLE calls"} },
		"more rows":          func(l *postgres.Loading) { l.Tables[0].Rows++ },
		"no rows of COPY": func(l *postgres.Loading) {
			l.Open = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("x\n")), nil }
		},
		"a newer schema":  func(l *postgres.Loading) { l.Schema = 999 },
		"an older schema": func(l *postgres.Loading) { l.Schema = 3 },
	} {
		if err := load(pgtest.Open(t), change); err == nil {
			t.Errorf("%s was loaded", what)
		}
	}
	theirs := pgtest.Open(t)
	pgtest.Exec(t, theirs, "CREATE TABLE theirs (x int)")
	if err := load(theirs, func(*postgres.Loading) {}); !errors.Is(err, postgres.ErrNotEmpty) {
		t.Errorf("with tables of others: %v", err)
	}
	if err := load(from, func(*postgres.Loading) {}); !errors.Is(err, postgres.ErrNotEmpty) {
		t.Errorf("with those of a host: %v", err)
	}
	if err := load(from, func(l *postgres.Loading) {
		l.Replace = true
		l.Check = func(context.Context, store.Store) error { return refusal }
	}); !errors.Is(err, refusal) {
		t.Errorf("replaced, and refused: %v", err)
	}
	used := open(t, from, postgres.Options{Home: t.TempDir()})
	if err := load(from, func(l *postgres.Loading) { l.Replace = true }); !errors.Is(err, postgres.ErrInUse) {
		t.Errorf("in use: %v", err)
	}
	used.Close()
	if err := load(from, func(l *postgres.Loading) { l.Replace = true }); err != nil {
		t.Errorf("replaced: %v", err)
	}
}
