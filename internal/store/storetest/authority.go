package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// happens are the columns that say what merely happened, and are not signed.
var happens = map[string][]string{
	"agents":           {"updated_at"},
	"kv":               {"labels", "expires_at", "updated_at", "mac"},
	"schedules":        {"created_at", "next_at", "wake_at", "last_call", "revision", "updated_at"},
	"tokens":           {"used_at", "used_from"},
	"browser_sessions": {"used_at", "used_from"},
}

// authorityKeys are the columns that tell the rows of a table apart.
var authorityKeys = map[string]string{
	"agents": "id", "approvals": "id", "assignments": "plugin", "identities": "external_id", "kv": "key", "plugins": "version", "policies": "name", "schedules": "id", "tokens": "id",
	"browser_sessions": "id", "users": "id", "tenants": "name", "tenant_plugins": "version",
}

// authorityChanges put a row into each table and, called with another text, change it.
var authorityChanges = map[string]func(tx store.Tx, text string) error{
	"agents": func(tx store.Tx, text string) error {
		row := newAgent("desk")
		if fresh, err := tx.InsertAgent(row); err != nil || fresh {
			return err
		}
		row.Prompt = text
		_, err := tx.UpdateAgent(row)
		return err
	},
	"approvals": func(tx store.Tx, text string) error {
		row := newApproval()
		row.ID = "asked"
		if text == "" {
			return tx.InsertApproval(row)
		}
		row.State, row.DecidedBy = store.ApprovalApproved, "user:"+text
		_, err := tx.UpdateApproval(store.ApprovalOpen, row)
		return err
	},
	"assignments": func(tx store.Tx, text string) error {
		return tx.PutAssignment(store.AssignmentRow{Tenant: "t", Subject: "desk", Plugin: "mail", Versions: text, Enabled: true, By: "ada", UpdatedAt: epoch})
	},
	"identities": func(tx store.Tx, text string) error {
		return tx.PutIdentity(store.IdentityRow{Tenant: "t", Provider: "slack", ExternalID: "U1", PrincipalType: "user", PrincipalID: "ada" + text, Scopes: []string{}, At: epoch})
	},
	"kv": func(tx store.Tx, text string) error {
		row, err := store.RecoveryRow(store.Recovery{Since: epoch, Why: "an older copy" + text})
		if err != nil {
			return err
		}
		return tx.PutKV(row)
	},
	"tokens": func(tx store.Tx, text string) error {
		return tx.PutToken(store.TokenRow{Tenant: "t", ID: "a1", Hash: "00" + text, PrincipalType: "user", PrincipalID: "ada", Scopes: []string{}, Operations: []string{}, CreatedAt: epoch})
	},
	"users": func(tx store.Tx, text string) error {
		return tx.PutUser(store.UserRow{Tenant: "t", ID: "u1", PrincipalType: "user", PrincipalID: "ada", By: "ada" + text, CreatedAt: epoch})
	},
	"browser_sessions": func(tx store.Tx, text string) error {
		if _, err := tx.DeleteBrowserSession("t", "s1"); err != nil {
			return err
		}
		return tx.InsertBrowserSession(store.BrowserSessionRow{Tenant: "t", ID: "s1", Hash: "00" + text, User: "u1", CreatedAt: epoch})
	},
	"tenants": func(tx store.Tx, text string) error {
		return tx.PutTenant(store.TenantRow{Name: "acme", By: "ada" + text, CreatedAt: epoch})
	},
	"tenant_plugins": func(tx store.Tx, text string) error {
		return tx.PutTenantPlugin("acme", store.PluginRow{Name: "mail", Version: "1.0.0", PackageDigest: "sha256:p" + text, Path: "/p", Manifest: []byte(`{}`), State: store.PluginActive, RegisteredAt: epoch})
	},
	"plugins": func(tx store.Tx, text string) error {
		return tx.PutPlugin(store.PluginRow{Name: "mail", Version: "1.0.0", PackageDigest: "sha256:p" + text, Path: "/p", Manifest: []byte(`{}`), State: store.PluginActive, RegisteredAt: epoch})
	},
	"policies": func(tx store.Tx, text string) error {
		return tx.PutPolicy(store.PolicyRow{Tenant: "t", Name: "mine", Text: "forbid (principal, action, resource);" + text, By: "ada", At: epoch})
	},
	"schedules": func(tx store.Tx, text string) error {
		row := newSchedule("feed")
		if text == "" {
			return tx.InsertSchedule(row)
		}
		row.Input = `{"text":"` + text + `"}`
		_, err := tx.UpdateSchedule(row)
		return err
	},
}

// holds checks all tables in one snapshot.
func holds(t *testing.T, b *bundle) error {
	t.Helper()
	key, err := store.ReadKey(b.home)
	if err != nil {
		key = nil
	}
	return b.Snapshot(t.Context(), func(r store.Reader) error { return store.CheckAuthority(t.Context(), r, key) })
}

// tampered expects that an edit of a table is found, by who reads and by who writes,
// and that others go on.
func tampered(t *testing.T, b *bundle, table, what string) {
	t.Helper()
	var found *store.AuthorityError
	if err := holds(t, b); !errors.As(err, &found) || found.Table != table {
		t.Errorf("%s: %v", what, err)
	}
	if err := b.Write(t.Context(), func(tx store.Tx) error { return authorityChanges[table](tx, "again") }); !errors.Is(err, store.ErrTampered) {
		t.Errorf("%s, and a change on top of it would sign that: %v", what, err)
	}
}

func edit(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// signedColumns returns the columns of a table that are signed, and which are numbers.
func signedColumns(t *testing.T, db *sql.DB, table string) (names []string, number map[string]bool) {
	t.Helper()
	rows, err := db.Query("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	number = map[string]bool{}
	for _, c := range types {
		if !slices.Contains(happens[table], c.Name()) {
			names = append(names, c.Name())
			number[c.Name()] = strings.Contains(strings.ToUpper(c.DatabaseTypeName()), "INT")
		}
	}
	return names, number
}

func authorityRows(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	if len(authorityChanges) != len(store.AuthorityTables) {
		t.Fatal("a table of store.AuthorityTables has no change here")
	}
	for _, table := range store.AuthorityTables {
		write(t, b, func(tx store.Tx) error { return authorityChanges[table](tx, "") })
		edit(t, db, fmt.Sprintf("CREATE TABLE kept_%s AS SELECT * FROM %s", table, table))
	}
	if err := holds(t, b); err != nil {
		t.Fatal(err)
	}
	for _, table := range store.AuthorityTables {
		back := fmt.Sprintf("INSERT INTO %s SELECT * FROM kept_%s", table, table)
		restore := func() {
			t.Helper()
			edit(t, db, "DELETE FROM "+table)
			edit(t, db, back)
			if err := holds(t, b); err != nil {
				t.Fatalf("%s, put back: %v", table, err)
			}
		}
		names, number := signedColumns(t, db, table)
		for _, name := range names {
			value := changedValue(b, table, name, number[name])
			edit(t, db, fmt.Sprintf(`UPDATE %s SET "%s" = %s`, table, name, value))
			tampered(t, b, table, table+"."+name+" changed")
			restore()
		}
		edit(t, db, "DELETE FROM "+table)
		tampered(t, b, table, table+": a row deleted")
		restore()
		key := `"` + authorityKeys[table] + `"`
		list := `"` + strings.Join(append(names, happens[table]...), `", "`) + `"`
		edit(t, db, fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM kept_%s", table, list,
			strings.NewReplacer(key, key+" || 'x'", `"token_hash"`, `''`, `"hash"`, `"hash" || 'x'`, `"principal_id"`, `"principal_id" || 'x'`).Replace(list), table))
		tampered(t, b, table, table+": a row added")
		restore()
	}
	heads, err := b.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range store.AuthorityTables {
		edit(t, db, "DELETE FROM kept_"+table)
		edit(t, db, fmt.Sprintf("INSERT INTO kept_%s SELECT * FROM %s", table, table))
		write(t, b, func(tx store.Tx) error { return authorityChanges[table](tx, "changed") })
		if err := holds(t, b); err != nil {
			t.Fatalf("%s, changed by the host: %v", table, err)
		}
		edit(t, db, fmt.Sprintf("CREATE TABLE now_%s AS SELECT * FROM %s", table, table))
		edit(t, db, "DELETE FROM "+table)
		edit(t, db, fmt.Sprintf("INSERT INTO %s SELECT * FROM kept_%s", table, table))
		tampered(t, b, table, table+": put back to what it was")
		edit(t, db, "DELETE FROM "+table)
		edit(t, db, fmt.Sprintf("INSERT INTO %s SELECT * FROM now_%s", table, table))
	}
	// Nor is what a head signed before of use with the head of now.
	now, err := b.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	edit(t, db, fmt.Sprintf("UPDATE chains SET authority = '%s' WHERE id = %d", heads[0].Authority, heads[0].ID))
	if err := holds(t, b); !errors.Is(err, store.ErrTampered) {
		t.Errorf("with an older signature: %v", err)
	}
	edit(t, db, fmt.Sprintf("UPDATE chains SET authority = '' WHERE id = %d", heads[0].ID))
	if err := holds(t, b); !errors.Is(err, store.ErrTampered) {
		t.Errorf("without the signature: %v", err)
	}
	edit(t, db, fmt.Sprintf("UPDATE chains SET authority = '%s' WHERE id = %d", now[0].Authority, now[0].ID))
	if err := holds(t, b); err != nil {
		t.Error(err)
	}
}

// changedValue is what makes a column another, in the words of a database.
func changedValue(b *bundle, table, column string, number bool) string {
	switch {
	case number:
		return `1 - "` + column + `"`
	case table == "kv" && column == "value":
		return "'{}'"
	}
	return `"` + column + `" || 'x'`
}

// An approval that is closed - used, denied, expired or void - is believed where the
// host signed that, and nowhere else.
func authorityClosed(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	edit(t, db, "CREATE TABLE kept AS SELECT * FROM approvals")
	for _, state := range []store.ApprovalState{store.ApprovalConsumed, store.ApprovalDenied, store.ApprovalExpired, store.ApprovalVoid} {
		asked := newApproval()
		write(t, b, func(tx store.Tx) error { return tx.InsertApproval(asked) })
		from := store.ApprovalOpen
		if state == store.ApprovalConsumed {
			given := asked
			given.State, given.DecidedBy = store.ApprovalApproved, "user:ada"
			write(t, b, func(tx store.Tx) error { _, err := tx.UpdateApproval(from, given); return err })
			from = store.ApprovalApproved
		}
		closed := asked
		closed.State, closed.DecidedBy, closed.Reason = state, "user:ada", "seen"
		write(t, b, func(tx store.Tx) error { _, err := tx.UpdateApproval(from, closed); return err })
		read := func(id string) error {
			_, outside := store.Authorised(b, home).Approval(t.Context(), "t", id)
			_, listed := store.Authorised(b, home).Approvals(t.Context(), store.ApprovalFilter{Tenant: "t", Limit: 10})
			inside := b.Write(t.Context(), func(tx store.Tx) error { _, err := tx.Approval(t.Context(), "t", id); return err })
			if (outside == nil) != (inside == nil) || (outside == nil) != (listed == nil) {
				t.Errorf("%s: %v, %v, %v", id, outside, listed, inside)
			}
			return outside
		}
		if err := read(asked.ID); err != nil {
			t.Fatalf("%s: %v", state, err)
		}
		names, number := signedColumns(t, db, "approvals")
		edit(t, db, "INSERT INTO kept SELECT * FROM approvals")
		back := func() {
			edit(t, db, "DELETE FROM approvals")
			edit(t, db, "INSERT INTO approvals SELECT * FROM kept")
		}
		for _, name := range names {
			if name == "tenant" || name == "id" { // it is then another's
				continue
			}
			edit(t, db, fmt.Sprintf(`UPDATE approvals SET "%s" = %s`, name, changedValue(b, "approvals", name, number[name])))
			if err := read(asked.ID); !errors.Is(err, store.ErrTampered) {
				t.Errorf("%s, %s changed: %v", state, name, err)
			}
			back()
		}
		edit(t, db, `UPDATE approvals SET id = 'forged', token_hash = ''`)
		if err := read("forged"); !errors.Is(err, store.ErrTampered) {
			t.Errorf("%s, one that there never was: %v", state, err)
		}
		back()
		if err := read(asked.ID); err != nil {
			t.Fatalf("%s, put back: %v", state, err)
		}
		edit(t, db, "DELETE FROM approvals")
		edit(t, db, "DELETE FROM kept")
	}
}

// A database that has rows and no ledger was written past the host.
func authorityWithoutLedger(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	edit(t, db, "INSERT INTO policies (tenant, name, text, put_by, put_at) VALUES ('t', 'theirs', 'permit (principal, action, resource);', 'eve', 0)")
	var found *store.AuthorityError
	if err := holds(t, b); !errors.As(err, &found) {
		t.Errorf("before the first entry: %v", err)
	}
	if err := b.Write(t.Context(), appendNote("one")); !errors.Is(err, store.ErrTampered) {
		t.Errorf("the first entry signs them: %v", err)
	}
}

// The rows of a ledger that an earlier release wrote are signed once, with an entry.
func authoritySignedOnce(t *testing.T, b *bundle) {
	db, home := b.engine.Edit(t)
	b.home = home
	write(t, b, func(tx store.Tx) error { return authorityChanges["policies"](tx, "") })
	key, err := store.ReadKey(home)
	if err != nil {
		t.Fatal(err)
	}
	heads, err := b.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := heads[0]
	old.Authority = ""
	edit(t, db, fmt.Sprintf("UPDATE chains SET authority = '', mac = '%s' WHERE id = %d", key.Sign(old), old.ID))
	if none, err := store.Unsigned(t.Context(), b, nil); !none || err != nil {
		t.Fatalf("unsigned: %t, %v", none, err)
	}
	for range 2 {
		write(t, b, func(tx store.Tx) error { return tx.SignAuthority() })
	}
	var signed int
	for _, e := range checkChains(t, b) {
		if e.Kind == plugin.EntryAuthoritySigned {
			signed++
		}
	}
	if none, err := store.Unsigned(t.Context(), b, nil); none || err != nil || signed != 1 || holds(t, b) != nil {
		t.Errorf("unsigned: %t, %v, %d entries, %v", none, err, signed, holds(t, b))
	}
	edit(t, db, "UPDATE policies SET text = 'permit (principal, action, resource);'")
	tampered(t, b, "policies", "a policy of an earlier release")
}

// Changes by several nodes at once leave what the newest head signs.
func authorityByMany(t *testing.T, b *bundle) {
	_, home := b.engine.Edit(t)
	b.home = home
	nodes := []store.Store{b, b.another(t), b.another(t)}
	var all sync.WaitGroup
	for i, st := range nodes {
		all.Go(func() {
			for n := range 12 {
				table := store.AuthorityTables[(i+n)%len(store.AuthorityTables)]
				if table == "agents" || table == "approvals" || table == "kv" || table == "schedules" {
					table = "policies"
				}
				if err := st.Write(t.Context(), func(tx store.Tx) error {
					tx.Append(note(table))
					return authorityChanges[table](tx, fmt.Sprint(i, n))
				}); err != nil {
					t.Errorf("node %d, change %d of %s: %v", i, n, table, err)
				}
			}
		})
	}
	all.Wait()
	if err := holds(t, b); err != nil {
		t.Error(err)
	}
}
