package storetest

import (
	"context"
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
