package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"modernc.org/sqlite"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// What SQLite says when the database cannot be used is an outage, and what it says of a statement
// is not.
func TestJudge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(name, parameters string) *sql.DB {
		db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, name)+"?"+parameters)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	exec := func(db *sql.DB, query string) error {
		_, err := db.ExecContext(t.Context(), query)
		return err
	}
	good := open("good.db", "_pragma=busy_timeout(0)")
	if err := exec(good, "CREATE TABLE t (a INTEGER PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	holder, err := open("good.db", "_txlock=immediate").BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback()
	if err := os.WriteFile(filepath.Join(dir, "none.db"), make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "text.db"), []byte("this is a text, and as long as the header of a database: it is no database at all, whatever its name is"), 0o600); err != nil {
		t.Fatal(err)
	}
	small := open("small.db", "_pragma=max_page_count(2)")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, gone := good.QueryContext(cancelled, "SELECT a FROM t")
	for name, c := range map[string]struct {
		err    error
		outage bool
	}{
		"another process writes": {exec(good, "INSERT INTO t VALUES (1)"), true},
		"no directory":           {exec(open("absent/x.db", ""), "CREATE TABLE t (a)"), true},
		"no database":            {exec(open("text.db", ""), "CREATE TABLE t (a)"), true},
		"only for reading":       {exec(open("good.db", "_pragma=query_only(1)"), "INSERT INTO t VALUES (1)"), true},
		"no room":                {errors.Join(exec(small, "CREATE TABLE a (a)"), exec(small, "CREATE TABLE b (a)"), exec(small, "CREATE TABLE c (a)")), true},
		"input/output":           {fmt.Errorf("beginning a transaction: %w", syscall.EIO), true},
		"full":                   {fmt.Errorf("%w: no space left", store.ErrFull), true},
		"failed":                 {fmt.Errorf("%w: input/output error", store.ErrFailed), true},
		"closed":                 {store.ErrClosed, true},
		"lapsed":                 {store.ErrLapsed, true},
		"a wrong statement":      {exec(good, "SELEKT"), false},
		"no table":               {exec(good, "SELECT * FROM none"), false},
		"a constraint":           {exec(open("rules.db", ""), "CREATE TABLE t (a CHECK (a > 1)); INSERT INTO t VALUES (0)"), false},
		"the caller is gone":     {gone, false},
		"read only":              {store.ErrReadOnly, false},
		"tampered":               {store.ErrTampered, false},
		"another error":          {errors.New("a fault of the host"), false},
	} {
		if c.err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		ctx := t.Context()
		if name == "the caller is gone" {
			ctx = cancelled
		}
		e := sqlstore.Engine{Full: full, Fatal: fatal, Away: away}
		got := e.Judge(ctx, c.err)
		if store.IsOutage(got) != c.outage || !errors.Is(got, c.err) {
			t.Errorf("%s: %v is judged %v, an outage: %t, want %t", name, c.err, got, store.IsOutage(got), c.outage)
		}
		var said *sqlite.Error
		if errors.As(c.err, &said) && !errors.As(got, &said) {
			t.Errorf("%s: %v does not wrap its cause", name, got)
		}
	}
}
