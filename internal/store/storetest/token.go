package storetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

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
