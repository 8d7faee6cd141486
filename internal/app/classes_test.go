package app_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// rawDB opens the database of a data directory past the host.
func rawDB(t *testing.T, home string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(home, sqlite.File)+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func texts(t *testing.T, db *sql.DB, query string) (got []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		got = append(got, text)
	}
	return got
}

// ownTables are all tables of the schema that the host reads by itself.
const ownTables = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'kb_index*' AND name NOT GLOB 'sqlite_*'
	AND name NOT GLOB 'kept_*' AND name <> 'goose_db_version' ORDER BY name`

// fullHome is a closed data directory with a row in every table, each value of a column
// that takes NULL being there.
func fullHome(t *testing.T) (home string, db *sql.DB) {
	t.Helper()
	a, waits := signedHome(t)
	now := time.Now()
	row, err := a.Store.Call(t.Context(), "local", waits)
	if err != nil {
		t.Fatal(err)
	}
	recovery, err := store.RecoveryRow(store.Recovery{Why: "restored from a backup"})
	if err != nil {
		t.Fatal(err)
	}
	none := []string{}
	err = a.Store.Write(t.Context(), func(tx store.Tx) error {
		unknown := *row
		unknown.ID, unknown.Key, unknown.State = "unknown", "k:U", store.CallUnknown
		_, err1 := tx.InsertCall(unknown)
		_, err2 := tx.InsertPlan(store.PlanRow{Tenant: "local", ID: "plan", Key: "c:plan", Labels: none, CreatedAt: now, State: store.PlanPending, UpdatedAt: now},
			[]store.StepRow{{N: 1, StepID: "s", Needs: none}})
		err3 := tx.InsertSession(store.SessionRow{Tenant: "local", ID: "sess", Kind: "investigation", State: store.SessionOpen, Labels: none, CreatedAt: now, UpdatedAt: now})
		_, _, _, err4 := tx.InsertArtifact(store.ArtifactRow{Tenant: "local", SessionID: "sess", ID: "art", Type: "text", Name: "a", SHA256: "ab", Size: 1,
			Parents: none, Labels: none, Metadata: "{}", CreatedAt: now}, []byte("a"))
		err5 := tx.InsertConversation(store.ConversationRow{Tenant: "local", SessionID: "sess", Agent: "desk", Channel: "chat", Open: true, CreatedAt: now, UpdatedAt: now})
		_, err6 := tx.InsertMessage(store.MessageRow{Tenant: "local", SessionID: "sess", Role: store.Inbound, Body: []byte("{}"), Labels: none, At: now})
		err7 := tx.PutMemory(store.MemoryRow{Tenant: "local", Agent: "desk", Key: "k", Content: "c", Labels: none, UpdatedAt: now})
		err8 := tx.PutKV(store.KVRow{KVKey: store.KVKey{Tenant: "local", Owner: "upper", Scope: "s", Namespace: "n", Key: "k"}, Value: []byte("v"), Labels: none, UpdatedAt: now})
		_, err9 := tx.InsertKB(store.KBRow{Tenant: "local", ID: "notes", Labels: none, CreatedAt: now})
		_, err10 := tx.PutDocument(store.DocumentRow{Tenant: "local", KB: "notes", ID: "doc", SourceID: "s", Extraction: "{}", Attributes: "{}", Labels: none,
			CreatedAt: now, UpdatedAt: now, Text: "one"}, []store.ChunkRow{{Text: "one", Terms: "one", Embedding: []byte{1, 2, 3, 4}, Model: "m"}})
		return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10, tx.PutKV(recovery))
	})
	if err = errors.Join(err, a.Close()); err != nil {
		t.Fatal(err)
	}
	db = rawDB(t, a.Home)
	for _, table := range texts(t, db, ownTables) {
		if len(texts(t, db, "SELECT 1 FROM "+table)) > 0 {
			continue
		}
		values := texts(t, db, `SELECT CASE type WHEN 'TEXT' THEN '''x''' WHEN 'BLOB' THEN 'x''01''' ELSE '1' END FROM pragma_table_info('`+table+`')`)
		if _, err := db.Exec("INSERT INTO " + table + " VALUES (" + strings.Join(values, ", ") + ")"); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	return a.Home, db
}

// rowids are columns in which SQLite itself keeps nothing but an integer.
var rowids = []string{"chains.id", "kb_chunks.id", "memories.id", "secret_keys.n"}

// unread are columns that statements alone read: retention passes over what is marked so.
var unread = []string{"plans.removed_at"}

// unsignedAtStart are columns of tables that are held against the ledger when a host
// starts, which the ledger does not sign and the start does not read: when a row was
// changed, when a feed is due. The row is refused once it is read.
var unsignedAtStart = map[string]func(st store.Store) error{
	"agents": func(st store.Store) error { _, err := st.Agents(context.Background(), "local"); return err },
	"schedules": func(st store.Store) error {
		_, err := st.Schedules(context.Background(), store.ScheduleFilter{Tenant: "local", Limit: 1})
		return err
	},
	"kv": func(st store.Store) error {
		_, err := st.KV(context.Background(), store.KVKey{Tenant: "local", Owner: "upper", Scope: "s", Namespace: "n", Key: "k"})
		return err
	},
	"tokens": func(st store.Store) error { _, err := st.Tokens(context.Background(), "local"); return err },
	"browser_sessions": func(st store.Store) error {
		_, err := st.BrowserSessions(context.Background(), "local")
		return err
	},
}

var unsignedColumns = []string{"agents.updated_at", "schedules.created_at", "schedules.next_at", "schedules.wake_at", "schedules.last_call",
	"schedules.revision", "schedules.updated_at", "tokens.used_at", "tokens.used_from", "browser_sessions.used_at", "browser_sessions.used_from", "kv.labels", "kv.expires_at", "kv.updated_at", "kv.mac"}

// otherClasses are values of the same meaning, or near it, in a class that a column does
// not declare.
var otherClasses = map[string][]string{
	"TEXT":    {`CAST("%s" AS BLOB)`},
	"INTEGER": {`CAST("%s" AS BLOB)`, `"%s" + 0.5`, `"%s" || 'x'`},
	"BLOB":    {`CAST("%s" AS TEXT)`, `length("%s")`},
}

// Whatever column of whatever table holds a value of another storage class than its own,
// with the very bytes that it had, verify names it; and where the ledger signs the rows
// no host starts on them.
func TestEveryValueHasTheStorageClassOfItsColumn(t *testing.T) {
	t.Parallel()
	home, db := fullHome(t)
	st, key := reading(t, home)
	fault := func() string {
		t.Helper()
		report, err := ledger.Verify(t.Context(), st, key)
		if err != nil {
			return "an error and no finding: " + err.Error()
		}
		if report.Fault == nil {
			return ""
		}
		return report.Fault.What
	}
	starts := func() error {
		return st.Snapshot(t.Context(), func(r store.Reader) error {
			if err := store.CheckAuthority(t.Context(), r, key); err != nil {
				return err
			}
			return store.CheckLive(t.Context(), r, key)
		})
	}
	run := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	if what := fault(); what != "" || starts() != nil {
		t.Fatalf("before any edit: %s, %v", what, starts())
	}
	signed := slices.Concat(store.AuthorityTables, store.LiveTables, []string{"chains"})
	tried := 0
	for _, table := range texts(t, db, ownTables) {
		run("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table)
		for _, declared := range texts(t, db, `SELECT name || ' ' || type FROM pragma_table_info('`+table+`')`) {
			name, class, _ := strings.Cut(declared, " ")
			column := table + "." + name
			if slices.Contains(rowids, column) {
				if _, err := db.Exec(fmt.Sprintf(`UPDATE %s SET "%s" = CAST("%s" AS BLOB)`, table, name, name)); err == nil {
					t.Errorf("SQLite keeps a blob in %s", column)
				}
				continue
			}
			if slices.Contains(unread, column) {
				continue
			}
			for _, other := range otherClasses[class] {
				tried++
				set := fmt.Sprintf(other, name)
				run(fmt.Sprintf(`UPDATE %s SET "%s" = %s`, table, name, set))
				if what := fault(); !strings.Contains(what, column) {
					t.Errorf("%s = %s: verify finds %q", column, set, what)
				}
				if slices.Contains(signed, table) {
					err := starts()
					if err == nil && slices.Contains(unsignedColumns, column) {
						err = unsignedAtStart[table](st)
					}
					if !errors.Is(err, store.ErrTampered) {
						t.Errorf("%s = %s: a host starts: %v", column, set, err)
					}
				}
				run("DELETE FROM " + table)
				run("INSERT INTO " + table + " SELECT * FROM kept_" + table)
			}
		}
		run("DROP TABLE kept_" + table)
	}
	if what := fault(); what != "" || tried < 400 {
		t.Errorf("after %d edits, all undone: %s", tried, what)
	}
}

// Nor does NULL pass for an empty text, where the schema was loosened for a moment.
func TestNoNULLPassesForAnEmptyText(t *testing.T) {
	t.Parallel()
	home, db := fullHome(t)
	was := texts(t, db, "SELECT sql FROM sqlite_schema WHERE name = 'approvals'")[0]
	past(t, home, "PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'approvals'")
	past(t, home, "UPDATE approvals SET reason = NULL WHERE reason = ''")
	past(t, home, "PRAGMA writable_schema = ON", "UPDATE sqlite_schema SET sql = '"+strings.ReplaceAll(was, "'", "''")+"' WHERE name = 'approvals'")
	if n := texts(t, db, "SELECT count(*) FROM approvals WHERE typeof(reason) = 'null'"); n[0] != "1" {
		t.Fatalf("%s rows have NULL", n[0])
	}
	foundByVerify(t, "NULL for ''", home, "approvals.reason")
	// A small database is refused for its NULL alone; this is what refuses a large one.
	st, key := reading(t, home)
	if err := st.Snapshot(t.Context(), func(r store.Reader) error { return store.CheckAuthority(t.Context(), r, key) }); !errors.Is(err, store.ErrTampered) {
		t.Errorf("a host starts on NULL for '': %v", err)
	}
}

// What a host starts on, and what it does while it is at work, once the class of a column
// was changed by which rows are found.
func TestNoRowIsHiddenByItsStorageClass(t *testing.T) {
	t.Parallel()
	home, _ := fullHome(t)
	for name, edit := range map[string]struct{ table, statement string }{
		"a forbid":                    {"policies", `UPDATE policies SET tenant = CAST(tenant AS BLOB)`},
		"the recovery, by name":       {"kv", `UPDATE kv SET namespace = CAST(namespace AS BLOB) WHERE key = 'recovery'`},
		"the recovery, by its tenant": {"kv", `UPDATE kv SET tenant = CAST(tenant AS BLOB) WHERE key = 'recovery'`},
		"the recovery, by its key":    {"kv", `UPDATE kv SET key = CAST(key AS BLOB) WHERE key = 'recovery'`},
		"a key of an unknown call":    {"calls", `UPDATE calls SET key = CAST(key AS BLOB) WHERE key = 'k:U'`},
	} {
		other := copied(t, home)
		past(t, other, edit.statement)
		refusesToStart(t, name, other, edit.table)
	}
	other := copied(t, home)
	past(t, other, `UPDATE entries SET kind = CAST(kind AS BLOB), subject = CAST(subject AS BLOB)`)
	foundByVerify(t, "entries", other, "entries")

	a, _ := signedHome(t)
	past(t, a.Home, `UPDATE policies SET tenant = CAST(tenant AS BLOB)`)
	if err := a.Policy.Reload(); !errors.Is(err, store.ErrTampered) {
		t.Errorf("a host at work reads policies without the forbid: %v", err)
	}
	past(t, a.Home, `UPDATE policies SET tenant = CAST(tenant AS TEXT)`)
	row, err := store.RecoveryRow(store.Recovery{Why: "restored from a backup"})
	if err == nil {
		err = a.Store.Write(t.Context(), func(tx store.Tx) error { return tx.PutKV(row) })
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Hold(t.Context()); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Fatalf("in recovery: %v", err)
	}
	for _, column := range []string{"tenant", "owner", "scope", "namespace", "key"} {
		past(t, a.Home, fmt.Sprintf(`UPDATE kv SET %s = CAST(%s AS BLOB)`, column, column))
		if err := a.Hold(t.Context()); !errors.Is(err, store.ErrTampered) {
			t.Errorf("kv.%s: a host at work has no recovery: %v", column, err)
		}
		past(t, a.Home, fmt.Sprintf(`UPDATE kv SET %s = CAST(%s AS TEXT)`, column, column))
	}
	for table, columns := range map[string][]string{"plugins": {"name", "version", "state", "manifest"}, "assignments": {"tenant", "subject"}, "identities": {"tenant", "provider"}} {
		for _, column := range columns {
			past(t, a.Home, fmt.Sprintf(`UPDATE %s SET %s = CAST(%s AS BLOB)`, table, column, column))
			var err error
			switch table {
			case "plugins":
				_, err = a.Store.Plugins(t.Context())
			case "assignments":
				_, err = a.Store.Assignments(t.Context(), "local")
			default:
				_, err = a.Store.Identity(t.Context(), "local", "mail", "ann@example.org")
			}
			if !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s.%s: a host at work reads past it: %v", table, column, err)
			}
			past(t, a.Home, fmt.Sprintf(`UPDATE %s SET %s = CAST(%s AS TEXT)`, table, column, column))
		}
	}
}

// reading opens the store of a data directory for reading, until the test ends, and reads its key.
func reading(t *testing.T, home string) (store.Store, *store.Key) {
	t.Helper()
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	st, err := setup.Reading(t.Context(), home, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st, key
}
