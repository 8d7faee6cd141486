package storetest

import (
	"bytes"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func values(t *testing.T, b *bundle) {
	key := store.KVKey{Tenant: "t", Owner: "notes", Scope: "user::ada", Namespace: "storage/", Key: "a/é"}
	row := store.KVRow{KVKey: key, Value: []byte{0, 1, 0xff}, Labels: []string{"private"}, ExpiresAt: epoch.Add(time.Hour), UpdatedAt: epoch}
	var others []store.KVRow
	for i := range 5 {
		other := row
		*[]*string{&other.Tenant, &other.Owner, &other.Scope, &other.Namespace, &other.Key}[i] = "other"
		other.Value, other.Labels, other.ExpiresAt = []byte{byte(i)}, []string{}, time.Time{}
		others = append(others, other)
	}
	check := func(want store.KVRow) {
		t.Helper()
		if got, err := b.KV(t.Context(), want.KVKey); err != nil || got == nil || !sameKept([]store.KVRow{*got}, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	if got, err := b.KV(t.Context(), key); got != nil || err != nil {
		t.Errorf("before anything was kept there is %+v, %v", got, err)
	}
	write(t, b, func(tx store.Tx) error {
		for _, r := range append(others, row) {
			if err := tx.PutKV(r); err != nil {
				return err
			}
		}
		got, err := tx.KV(ctx(), key)
		if err == nil && (got == nil || !bytes.Equal(got.Value, row.Value)) {
			t.Errorf("its own transaction sees %+v", got)
		}
		return err
	})
	check(row)
	row.Value, row.Labels, row.ExpiresAt, row.UpdatedAt = []byte{}, []string{"untrusted"}, time.Time{}, epoch.Add(time.Second)
	write(t, b, func(tx store.Tx) error { return tx.PutKV(row) })
	row.Labels = []string{"private", "untrusted"} // see labelsOnlyGrow
	check(row)
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteKV(key)
			if found != want {
				t.Errorf("deleting it: %t, want %t", found, want)
			}
			return err
		})
	}
	if got, err := b.KV(t.Context(), key); got != nil || err != nil {
		t.Errorf("after it was deleted there is %+v, %v", got, err)
	}
	for _, other := range others {
		check(other)
	}
}
