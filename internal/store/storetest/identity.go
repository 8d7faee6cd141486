package storetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func identities(t *testing.T, b *bundle) {
	row := store.IdentityRow{
		Tenant: "t", Provider: "slack", ExternalID: "U1", PrincipalType: "user", PrincipalID: "ada", Scopes: []string{"run", "approve"},
		By: "user:root", Adapter: "events", At: epoch,
	}
	second, third, foreign := row, row, row
	second.ExternalID, second.Scopes = "U2", []string{}
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
		Tenant: "t", ID: "u1", PrincipalType: "user", PrincipalID: "ann", By: "root", CreatedAt: epoch, InviteHash: "00", InviteExpires: epoch.Add(time.Hour),
		Identities: []store.UserIdentity{
			{Asker: "os:1", LinkedAt: epoch},
			{Asker: "oidc:a/b", Issuer: "https://a", Subject: "«b»", LinkedAt: epoch, UnlinkedAt: epoch.Add(time.Minute)},
		},
	}
	second, foreign := first, first
	second.ID, second.PrincipalID, second.Identities, second.InviteHash, second.InviteExpires = "u2", "bob", []store.UserIdentity{}, "", time.Time{}
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
	first.DisabledAt, first.InviteHash, first.InviteExpires = epoch.Add(time.Hour), "", time.Time{}
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
	first := store.BrowserSessionRow{Tenant: "t", ID: "s1", Hash: "11", User: "u1", Asker: "oidc:a/b", CreatedAt: epoch, SignedInAt: epoch.Add(time.Minute), ExpiresAt: epoch.Add(time.Hour)}
	second, foreign := first, first
	second.ID, second.Hash = "s2", "22"
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
	write(t, b, func(tx store.Tx) error { return tx.UseBrowserSession("s1", first.UsedAt, first.UsedFrom) })
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
