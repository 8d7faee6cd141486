package sqlite_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
)

// A host at work notices that its database was replaced under it, by an older copy
// or by another file, and signs nothing over it.
func TestAHostSignsNothingOverADatabaseThatWasPutBack(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(t *testing.T, path string){
		"an older copy": nil,
		"another file of the same content": func(t *testing.T, path string) {
			raw, err := os.ReadFile(path)
			if err == nil {
				err = errors.Join(os.WriteFile(path+".copy", raw, 0o600), os.Rename(path+".copy", path))
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"no file": func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			st := open(t, dir)
			write(t, st)
			path := filepath.Join(dir, sqlite.File)
			if replace == nil {
				var seq int64
				var head, mac, authority string
				db := raw(t, dir)
				if err := db.QueryRow("SELECT seq, head, mac, authority FROM chains WHERE id = 1").Scan(&seq, &head, &mac, &authority); err != nil {
					t.Fatal(err)
				}
				write(t, st)
				if _, err := db.Exec("DELETE FROM entries WHERE seq > ?; UPDATE chains SET seq = ?, head = ?, mac = ?, authority = ? WHERE id = 1", seq, seq, head, mac, authority); err != nil {
					t.Fatal(err)
				}
			} else {
				replace(t, path)
			}
			if err := st.Write(t.Context(), note); !errors.Is(err, store.ErrTampered) {
				t.Errorf("what was written next ended with %v", err)
			}
		})
	}
}

// The schema is not changed under a host that is at work.
func TestNoHostIsMigratedUnder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	write(t, st)
	if _, err := raw(t, dir).Exec("PRAGMA user_version = 11"); err != nil {
		t.Fatal(err)
	}
	second, err := sqlite.Open(t.Context(), dir, sqlite.Options{})
	if err == nil {
		second.Close()
		t.Fatal("the database was migrated under a host at work")
	}
	if !strings.Contains(err.Error(), "a host is at work on it") {
		t.Error(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if second, err = sqlite.Open(t.Context(), dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	second.Close()
}

// A trigger would write rows that the host signs with its own: a database with one
// is not written to where that decides authority, and not verified.
func TestATriggerIsNotSignedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	st := open(t, dir)
	write(t, st)
	db := raw(t, dir)
	put := func() error {
		return st.Write(t.Context(), func(tx store.Tx) error {
			if err := tx.PutPolicy(store.PolicyRow{Tenant: "t", Name: "house", Text: "x", By: "me", At: time.Now()}); err != nil {
				return err
			}
			return note(tx)
		})
	}
	for _, sql := range []string{
		"CREATE TRIGGER evil AFTER INSERT ON policies WHEN new.name <> 'x' BEGIN INSERT INTO policies SELECT tenant, 'x', text, put_by, put_at FROM policies; END",
		"CREATE TRIGGER evil AFTER INSERT ON entries BEGIN DELETE FROM policies; END",
	} {
		if _, err := db.Exec(sql); err != nil {
			t.Fatal(err)
		}
		if err := put(); !errors.Is(err, store.ErrTampered) || !strings.Contains(err.Error(), "evil") {
			t.Errorf("%s: a policy was put: %v", sql, err)
		}
		if _, err := st.AuthorityHash(t.Context(), "policies"); !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s: the rows were looked at: %v", sql, err)
		}
		if _, err := db.Exec("DROP TRIGGER evil"); err != nil {
			t.Fatal(err)
		}
	}
	if err := put(); err != nil {
		t.Error(err)
	}
}

// A schema that was changed makes other rows of those that are signed: a database
// whose columns, indexes, tables or views are not Mortise's is not rested on.
func TestAChangedSchemaIsNotRestedOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ object, sql string }{
		{"identities", `ALTER TABLE identities RENAME TO old; CREATE TABLE identities AS SELECT * FROM old; DROP TABLE old`},
		{"identities", `PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, 'external_id    TEXT', 'external_id    TEXT COLLATE NOCASE') WHERE name = 'identities'; PRAGMA writable_schema = RESET`},
		{"kbs", `ALTER TABLE kbs RENAME TO real_kbs; CREATE VIEW kbs AS SELECT * FROM real_kbs`},
		{"more", `CREATE UNIQUE INDEX more ON calls (operation)`},
		{"kv", `ALTER TABLE kv ADD COLUMN more TEXT`},
		{"calls_due", `DROP INDEX calls_due`},
	} {
		dir := t.TempDir()
		st := open(t, dir)
		write(t, st)
		if _, err := st.AuthorityHash(t.Context(), "policies"); err != nil {
			t.Fatal(err)
		}
		if _, err := raw(t, dir).Exec(c.sql); err != nil {
			t.Fatalf("%s: %v", c.sql, err)
		}
		// What leaves the number of the schema as it was, connections that are open do not see.
		unseen := strings.Contains(c.sql, "writable_schema")
		if _, err := st.AuthorityHash(t.Context(), "policies"); !unseen && (!errors.Is(err, store.ErrTampered) || !strings.Contains(err.Error(), c.object)) {
			t.Errorf("%s: the host at work rests on it: %v", c.sql, err)
		}
		again := open(t, dir)
		if _, err := again.AuthorityHash(t.Context(), "policies"); !errors.Is(err, store.ErrTampered) || !strings.Contains(err.Error(), c.object) {
			t.Errorf("%s: the next host rests on it: %v", c.sql, err)
		}
	}
}

var update = flag.Bool("update", false, "write schema.txt from the migrations")

func TestTheSchemaIsTheOneThatIsKnown(t *testing.T) {
	t.Parallel()
	got, err := open(t, t.TempDir()).Objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.txt", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile("schema.txt")
	if err != nil || got != string(want) {
		t.Errorf("schema.txt is not what the migrations make; write it with go test ./internal/store/sqlite -run SchemaIsTheOne -update: %v", err)
	}
}
