package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

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
