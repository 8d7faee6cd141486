package app_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// TestNoCallIsHiddenByAnIndex: the bytes of an index of the database file are edited, and
// none of the table. A host that looks the call up by that index would not find it, and
// would run another under its key.
func TestNoCallIsHiddenByAnIndex(t *testing.T) {
	t.Parallel()
	a, _ := signedHome(t)
	res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "upper/upper",
		Input: json.RawMessage(`{"text":"hidden"}`), Key: "UUUUUUUU", Asker: "os:1"})
	if err != nil || res.Status != plugin.PendingApproval {
		t.Fatalf("%+v, %v", res, err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	past(t, a.Home, `PRAGMA wal_checkpoint(TRUNCATE)`)
	for _, text := range []string{"k:UUUUUUUU", res.CallID} {
		home := copied(t, a.Home)
		n := editIndexes(t, home, "calls", text)
		if n == 0 {
			t.Fatalf("no index of calls has %s", text)
		}
		t.Logf("%s: in %d indexes", text, n)
		refusesToStart(t, text, home, "calls")
	}
}

// editIndexes changes the last byte of a text wherever a page of an index of a table has
// it, and returns how many indexes were changed.
func editIndexes(t *testing.T, home, table, text string) (changed int) {
	t.Helper()
	path := filepath.Join(home, sqlite.File)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var size int
	if err := db.QueryRow(`PRAGMA page_size`).Scan(&size); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query(`SELECT rootpage FROM sqlite_schema WHERE type = 'index' AND tbl_name = ?`, table)
	if err != nil {
		t.Fatal(err)
	}
	var roots []int
	for rows.Next() {
		var root int
		if err := rows.Scan(&root); err != nil {
			t.Fatal(err)
		}
		roots = append(roots, root)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	rows.Close()
	db.Close()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := text[:len(text)-1] + strings.Map(func(r rune) rune { return r ^ 1 }, text[len(text)-1:])
	for _, root := range roots {
		page := raw[(root-1)*size : root*size]
		if edited := bytes.ReplaceAll(page, []byte(text), []byte(other)); !bytes.Equal(edited, page) {
			changed += copy(page, edited) / size
		}
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return changed
}
