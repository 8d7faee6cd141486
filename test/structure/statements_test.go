package main

import (
	"strings"
	"testing"
)

// allTenants are the statements that work on the rows of all tenants, by how they begin
// behind SELECT, and why each does. PostgreSQL lets those that read do so for work of the
// site alone, which says so by store.Everywhere.
var allTenants = map[string]string{
	"SELECT count(*) FROM entries WHERE chain = $1 AND seq = $2 AND hash = $3": "chains are the site's: is an entry still what an anchor has?",
	"WITH found AS MATERIALIZED (SELECT rowid, rank FROM kb_index":             "the scope that the full-text index is asked for begins with the tenant",
	"SELECT id FROM artifacts WHERE true AND sha256 = ?":                       "files are the site's: may one be removed?",
	"SELECT ? FROM ? WHERE true AND ?":                                         "verification of signed tables, and of the classes of their values",
	"SELECT tenant, call_id, n, attempt,":                                      "verification of the effects of live calls",
	"SELECT tenant, id, operation, key,":                                       "verification of live calls",
	"SELECT tenant, id, key, agent,":                                           "verification of live plans",
	"SELECT digest FROM ? WHERE true AND ?":                                    "verification of live rows",
	"SELECT count(*) FROM ? AS t WHERE true AND ?":                             "verification of live rows",
	"SELECT ? FROM ? WHERE true AND (?) > (??)":                                "verification of kept rows, a page at a time",
	"UPDATE ? SET ??": "an upgrade signs the rows that it finds, each by its whole key",
	"SELECT path FROM ? WHERE true AND dev = 0":            "packages are the site's: which of their bodies does a plugin need?",
	"SELECT schema_version FROM ? WHERE true":              "about the schema",
	"SELECT name FROM ? WHERE true AND package_digest = ?": "packages are the site's: is one still in use?",
	"SELECT name FROM ? WHERE true":                        "about the schema",
	"SELECT type, name, sql FROM ? WHERE true":             "about the schema",
	"SELECT count(*) FROM ? WHERE true":                    "what a principal has: each of the texts that stand there compares the tenant",
	"SELECT ? FROM ?":                                      "selectFrom itself",
	"DELETE FROM secret_keys WHERE n < ? AND NOT EXISTS":   "keys are the site's: does a secret need one?",
	"DELETE FROM nodes WHERE id = ? AND NOT EXISTS":        "nodes are the site's: has one work left?",
}

// Each statement about rows of tenants says of which, or is one of a few that work on all.
func TestEveryStatementSaysOfWhichTenantItIs(t *testing.T) {
	t.Parallel()
	all, err := Statements("../..")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, s := range all {
		if s.Why == "" {
			continue
		}
		longest := ""
		for begin := range allTenants {
			if strings.HasPrefix(s.Text, begin) && len(begin) > len(longest) && (begin != "SELECT ? FROM ?" || s.Text == begin) {
				longest = begin
			}
		}
		if used[longest] = true; longest == "" {
			t.Errorf("%s: %s: %.300s", s.At, s.Why, s.Text)
		}
	}
	for begin := range allTenants {
		if !used[begin] {
			t.Errorf("no statement is %q any more", begin)
		}
	}
	if len(all) < 200 {
		t.Errorf("%d statements were found", len(all))
	}
	t.Logf("%d statements are about tenants, %d of them about all", len(all), len(used))
}

// planted is code of which each statement is wrong, or right, as its name says.
const planted = `package p
const columns = "tenant, id, name"
const wrongUpdate = "UPDATE sessions SET name = ? WHERE id = ?"
const wrongEither = "DELETE FROM sessions WHERE tenant = ? OR id = ?"
const wrongInner = "SELECT 1 FROM sessions WHERE tenant = ? AND EXISTS (SELECT 1 FROM calls WHERE calls.id = sessions.id)"
const wrongJoin = "SELECT 1 FROM sessions s JOIN calls c ON c.id = s.id WHERE s.tenant = ?"
const wrongInsert = "INSERT INTO sessions (id, name) VALUES (?, ?)"
const wrongBare = "INSERT INTO sessions VALUES (?, ?)"
const rightUpdate = "UPDATE sessions SET name = ? WHERE tenant = ? AND id = ?"
const rightInsert = "INSERT INTO sessions (" + columns + ") VALUES (?, ?, ?) ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name"
const rightJoin = "SELECT 1 FROM sessions s JOIN calls c ON c.tenant = s.tenant AND c.id = s.id WHERE s.tenant = ?"
const rightNodes = "DELETE FROM nodes WHERE id = ?"
func wrongTable(table string) string { return "DELETE FROM " + table + " WHERE id = ?" }
func wrongQuery() {
	q := selectFrom(columns, "sessions")
	q.equal("tenant", "")
	q.where("id = ?", 1)
}
func wrongSecond() {
	q := selectFrom(columns, "sessions")
	q.where("tenant = ?", 1)
	q = selectFrom(columns, "calls")
	q.where("id = ?", 1)
}
func rightQuery() {
	q := selectFrom(columns, "sessions")
	q.of(ctx, r, tenant)
	q.where("(id = ? OR name = ?)", 1, 2)
}
func wrongOr() {
	q := selectFrom(columns, "sessions")
	q.of(ctx, r, tenant)
	q.where("id = ? OR name = ?", 1, 2)
}
`

// A statement that says of no tenant is found, however it is put together.
func TestAStatementOfNoTenantIsFound(t *testing.T) {
	t.Parallel()
	tables, err := tenantTables("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sessions", "calls", "entries", "kb_chunks", "tokens", "tenant_plugins"} {
		if !tables[name] {
			t.Errorf("%s has no tenant", name)
		}
	}
	if tables["nodes"] || tables["plugins"] || len(tables) < 25 {
		t.Errorf("%d tables have tenants", len(tables))
	}
	found, err := statementsOf(map[string][]byte{"planted.go": []byte(planted)}, tables)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(planted, "\n")
	wrong := map[string]bool{}
	for _, s := range found {
		line := 0
		for _, c := range strings.Split(s.At, ":")[1] {
			line = line*10 + int(c-'0')
		}
		name := ""
		for ; line > 0 && name == ""; line-- {
			if fields := strings.Fields(lines[line-1]); len(fields) > 1 && (fields[0] == "const" || fields[0] == "func") {
				name, _, _ = strings.Cut(fields[1], "(")
			}
		}
		wrong[name] = wrong[name] || s.Why != ""
		if s.Why != "" && strings.HasPrefix(name, "right") {
			t.Errorf("%s: %s: %s", name, s.Why, s.Text)
		}
	}
	for _, name := range []string{"wrongUpdate", "wrongEither", "wrongInner", "wrongJoin", "wrongInsert", "wrongBare", "wrongTable", "wrongQuery", "wrongSecond", "wrongOr"} {
		if !wrong[name] {
			t.Errorf("%s is not found", name)
		}
	}
	for _, name := range []string{"rightUpdate", "rightInsert", "rightJoin"} {
		if _, seen := wrong[name]; !seen {
			t.Errorf("%s is not read", name)
		}
	}
}
