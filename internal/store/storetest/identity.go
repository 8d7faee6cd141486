package storetest

import (
	"context"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func identities(t *testing.T, b *bundle) {
	row := store.IdentityRow{
		Tenant: "t", Provider: "slack", ExternalID: "U1", PrincipalType: "user", PrincipalID: "ada", Scopes: []string{"run", "approve"},
		By: "user:root", Asker: "os:1", Adapter: "events", At: epoch,
	}
	second, third, foreign := row, row, row
	second.ExternalID, second.Scopes, second.Asker = "U2", []string{}, ""
	third.Provider = "github"
	foreign.Tenant, foreign.PrincipalID = "u", "eve"
	put := func(rows ...store.IdentityRow) {
		t.Helper()
		write(t, b, func(tx store.Tx) error {
			for _, row := range rows {
				if err := tx.PutIdentity(row); err != nil {
					return err
				}
			}
			return nil
		})
	}
	check := func(want ...store.IdentityRow) {
		t.Helper()
		if got, err := b.Identities(t.Context(), "t"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	put(second, foreign, row, third)
	check(third, row, second)
	if got, err := b.IdentitiesOf(t.Context(), "t", "user", "ada"); err != nil || !reflect.DeepEqual(got, []store.IdentityRow{third, row, second}) {
		t.Errorf("hers are %+v, %v", got, err)
	}
	row.PrincipalType, row.PrincipalID, row.Scopes, row.By, row.At, row.Adapter = "service", "bot", []string{"run"}, "user:bob", epoch.Add(time.Second), "other"
	put(row)
	check(third, row, second)
	if got, err := b.Identity(t.Context(), "t", "slack", "U1"); err != nil || got == nil || !reflect.DeepEqual(*got, row) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := b.IdentitiesOf(t.Context(), "t", "user", "ada"); err != nil || !reflect.DeepEqual(got, []store.IdentityRow{third, second}) {
		t.Errorf("hers are %+v, %v", got, err)
	}
	if got, err := b.Identity(t.Context(), "t", "slack", "u1"); got != nil || err != nil {
		t.Errorf("another id is linked: %+v, %v", got, err)
	}
	for range 2 {
		was, err := b.Identity(t.Context(), "t", "slack", "U1")
		if err != nil {
			t.Fatal(err)
		}
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteIdentity("t", "slack", "U1")
			if found != (was != nil) {
				t.Errorf("deleting %+v: %t", was, found)
			}
			return err
		})
	}
	check(third, second)
	if got, err := b.Identity(t.Context(), "u", "slack", "U1"); err != nil || got == nil || got.PrincipalID != "eve" {
		t.Errorf("another tenant's is %+v, %v", got, err)
	}
}

func users(t *testing.T, b *bundle) {
	first := store.UserRow{
		Tenant: "t", ID: "u1", PrincipalType: "user", PrincipalID: "ann", By: "root", CreatedAt: epoch, InviteHash: "00", InviteExpires: epoch.Add(time.Hour), InvitedBy: "os:2",
		Identities: []store.UserIdentity{
			{Asker: "os:1", LinkedAt: epoch},
			{Asker: "oidc:a/b", Issuer: "https://a", Subject: "«b»", LinkedAt: epoch, UnlinkedAt: epoch.Add(time.Minute), Seen: "user:root"},
		},
	}
	second, foreign := first, first
	second.ID, second.PrincipalID, second.Identities, second.InviteHash, second.InviteExpires, second.InvitedBy = "u2", "bob", []store.UserIdentity{}, "", time.Time{}, ""
	foreign.ID, foreign.Tenant = "u0", "u"
	put := func(rows ...store.UserRow) error {
		return b.Write(t.Context(), func(tx store.Tx) error {
			for _, row := range rows {
				if err := tx.PutUser(row); err != nil {
					return err
				}
			}
			return nil
		})
	}
	check := func(want ...store.UserRow) {
		t.Helper()
		if got, err := b.Users(t.Context(), "t"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	if err := put(second, foreign, first); err != nil {
		t.Fatal(err)
	}
	check(first, second)
	first.DisabledAt, first.InviteHash, first.InviteExpires, first.InvitedBy = epoch.Add(time.Hour), "", time.Time{}, ""
	if err := put(first); err != nil {
		t.Fatal(err)
	}
	check(first, second)
	for id, want := range map[string]*store.UserRow{"u1": &first, "u0": &foreign, "U1": nil, "": nil} {
		if got, err := b.User(t.Context(), id); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the user %q is %+v, %v", id, got, err)
		}
	}
	stolen, twin := first, first
	stolen.Tenant, twin.ID = "u", "u3"
	if put(stolen) == nil {
		t.Error("a tenant takes the user of another")
	}
	if put(twin) == nil {
		t.Error("a principal has two people")
	}
	check(first, second)
}

func browserSessions(t *testing.T, b *bundle) {
	first := store.BrowserSessionRow{Tenant: "t", ID: "s1", Hash: "11", User: "u1", Asker: "oidc:a/b", CreatedAt: epoch, SignedInAt: epoch.Add(time.Minute), ExpiresAt: epoch.Add(time.Hour), Given: []string{"«a»", "b"}}
	second, foreign := first, first
	second.ID, second.Hash, second.Given = "s2", "22", nil
	foreign.ID, foreign.Hash, foreign.Tenant = "s0", "00", "u"
	check := func(want ...store.BrowserSessionRow) {
		t.Helper()
		if got, err := b.BrowserSessions(t.Context(), "t"); err != nil || !reflect.DeepEqual(append([]store.BrowserSessionRow{}, got...), want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	for _, row := range []store.BrowserSessionRow{second, foreign, first} {
		write(t, b, func(tx store.Tx) error { return tx.InsertBrowserSession(row) })
	}
	check(first, second)
	first.UsedAt, first.UsedFrom = epoch.Add(time.Minute), "127.0.0.1"
	write(t, b, func(tx store.Tx) error { return tx.UseBrowserSession("u", "s1", epoch, "another tenant's") })
	write(t, b, func(tx store.Tx) error { return tx.UseBrowserSession("t", "s1", first.UsedAt, first.UsedFrom) })
	check(first, second)
	for hash, want := range map[string]*store.BrowserSessionRow{"11": &first, "00": &foreign, "s1": nil, "": nil} {
		if got, err := b.BrowserSession(t.Context(), hash); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the session of %q is %+v, %v", hash, got, err)
		}
	}
	twin := first
	twin.ID = "s3"
	if b.Write(t.Context(), func(tx store.Tx) error { return tx.InsertBrowserSession(twin) }) == nil {
		t.Error("two sessions have one secret")
	}
	for id, want := range map[string]bool{"s0": false, "s9": false, "s1": true} {
		var found bool
		write(t, b, func(tx store.Tx) (err error) { found, err = tx.DeleteBrowserSession("t", id); return err })
		if found != want {
			t.Errorf("deleting %s of the tenant: %v", id, found)
		}
	}
	check(second)
}

// joinedColumns has rows that were signed before a column joined keep their hash, and those
// that use it another.
func joinedColumns(t *testing.T, b *bundle) {
	row := store.UserRow{Tenant: "t", ID: "u1", PrincipalType: "user", PrincipalID: "ada", By: "root", CreatedAt: epoch}
	sum := func() string {
		t.Helper()
		got, err := b.AuthorityHash(t.Context(), "users")
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	write(t, b, func(tx store.Tx) error { return tx.PutUser(row) })
	before := store.NewAuthorityHash("users")
	var values [][]byte
	for _, value := range []string{"t", "u1", "user", "ada", "[]", "", "0", "root", strconv.FormatInt(epoch.UnixMicro(), 10), "0"} {
		values = append(values, []byte(value))
	}
	before.Row(values)
	if got := sum(); got != before.Sum() {
		t.Errorf("a row of an earlier schema has the hash %s, and had %s", got, before.Sum())
	}
	row.InvitedBy = "os:1"
	write(t, b, func(tx store.Tx) error { return tx.PutUser(row) })
	if sum() == before.Sum() {
		t.Error("who has seen an invitation is not signed")
	}
}

func policies(t *testing.T, b *bundle) {
	row := store.PolicyRow{Tenant: "t", Name: "mail", Text: "permit \"é\"\n", By: "user:ada", At: epoch}
	second, foreign := row, row
	second.Name = "Base" // before the others: names are compared byte by byte
	foreign.Tenant = "u"
	put := func(rows ...store.PolicyRow) {
		t.Helper()
		write(t, b, func(tx store.Tx) error {
			for _, row := range rows {
				if err := tx.PutPolicy(row); err != nil {
					return err
				}
			}
			return nil
		})
	}
	check := func(tenant string, want ...store.PolicyRow) {
		t.Helper()
		if got, err := b.Policies(t.Context(), tenant); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	put(row, foreign, second)
	check("t", second, row)
	row.Text, row.By, row.At = "forbid\n", "user:bob", epoch.Add(time.Second)
	put(row)
	check("t", second, row)
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeletePolicy("t", "mail")
			if found != want {
				t.Errorf("deleting it: %t, want %t", found, want)
			}
			return err
		})
	}
	check("t", second)
	check("u", foreign)
}
func tokens(t *testing.T, b *bundle) {
	first := store.TokenRow{
		Tenant: "t", ID: "a1", Hash: "00ff", Name: "ci", PrincipalType: "service", PrincipalID: "ci", Scopes: []string{"read", "run"}, Operations: []string{"mail/*"},
		By: "root", Asker: "os:1", CreatedAt: epoch, ExpiresAt: epoch.Add(time.Hour),
	}
	second, foreign := first, first
	second.ID, second.Scopes, second.Operations, second.ExpiresAt = "a2", []string{}, []string{}, time.Time{}
	foreign.ID, foreign.Tenant = "a0", "u"
	put := func(rows ...store.TokenRow) {
		t.Helper()
		write(t, b, func(tx store.Tx) error {
			for _, row := range rows {
				if err := tx.PutToken(row); err != nil {
					return err
				}
			}
			return nil
		})
	}
	check := func(want ...store.TokenRow) {
		t.Helper()
		if got, err := b.Tokens(t.Context(), "t"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	put(second, foreign, first)
	check(first, second)
	first.UsedAt, first.UsedFrom = epoch.Add(time.Minute), "127.0.0.1"
	write(t, b, func(tx store.Tx) error { return tx.UseToken("u", "a1", epoch, "another tenant's") })
	write(t, b, func(tx store.Tx) error { return tx.UseToken("t", "a1", first.UsedAt, first.UsedFrom) })
	check(first, second)
	first.RevokedAt, first.Hash, first.Asker = epoch.Add(2*time.Minute), "11", "user:ann"
	put(first)
	check(first, second)
	for id, want := range map[string]*store.TokenRow{"a1": &first, "a0": &foreign, "A1": nil, "": nil} {
		if got, err := b.Token(t.Context(), id); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("the token %q is %+v, %v", id, got, err)
		}
	}
	stolen := first
	stolen.Tenant = "u"
	if err := b.Write(t.Context(), func(tx store.Tx) error { return tx.PutToken(stolen) }); err == nil {
		t.Error("a tenant takes the token of another")
	}
	check(first, second)
}

// partOfAStore: a question that names no tenant is answered with the rows of the tenant whose
// part of the store is asked, and with all for work of the site alone.
func partOfAStore(t *testing.T, b *bundle) {
	for _, tenant := range []string{"t", "u"} {
		write(t, b, func(tx store.Tx) error {
			_, err := tx.InsertAgent(store.AgentRow{Tenant: tenant, ID: "same", CreatedBy: "ann", CreatedAt: epoch, Brain: "b", State: store.AgentStopped, UpdatedAt: epoch})
			if err != nil {
				return err
			}
			return tx.PutToken(store.TokenRow{Tenant: tenant, ID: "of-" + tenant, Hash: tenant, CreatedAt: epoch})
		})
	}
	part := b.Store.(store.Divisible).For("t")
	check := func(where string, r store.Reader, ctx context.Context, want int) {
		t.Helper()
		rows, err := r.Agents(ctx, "")
		if err != nil || len(rows) != want {
			t.Errorf("%s: %d agents, %v; there should be %d", where, len(rows), err, want)
		}
		if row, err := r.Token(ctx, "of-u"); err != nil || (row != nil) != (want == 2) {
			t.Errorf("%s: the token of the other tenant: %+v, %v", where, row, err)
		}
		entries := map[string]bool{}
		for e, err := range r.Entries(ctx, store.EntryFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			entries[e.Tenant] = true
		}
		if want == 1 && (len(entries) > 1 || len(entries) == 1 && !entries["t"]) {
			t.Errorf("%s: entries of %v", where, entries)
		}
	}
	ctx := t.Context()
	check("a part", part, ctx, 1)
	check("a part, for the site", part, store.Everywhere(ctx), 2)
	check("the whole", b.Store, ctx, 2)
	for where, st := range map[string]store.Store{"a part": part, "the whole": b.Store} {
		want := map[string]int{"a part": 1, "the whole": 2}[where]
		write(t, st, func(tx store.Tx) error { check(where+", writing", tx, ctx, want); return nil })
		if err := st.Snapshot(ctx, func(r store.Reader) error { check(where+", in a snapshot", r, ctx, want); return nil }); err != nil {
			t.Error(err)
		}
	}
	if err := part.Write(store.Everywhere(ctx), func(tx store.Tx) error {
		check("a part, writing for the site", tx, ctx, 2)
		return tx.UseToken("t", "of-u", epoch, "another tenant's")
	}); err != nil {
		t.Error(err)
	}
	if row, err := b.Token(ctx, "of-u"); err != nil || row.UsedFrom != "" {
		t.Errorf("the use of a token was noted for another tenant: %+v, %v", row, err)
	}
}
