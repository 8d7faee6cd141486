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
