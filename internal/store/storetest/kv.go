package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
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

// expected holds writes against what their caller has seen, in the transaction of each.
func expected(t *testing.T, b *bundle) {
	key := store.KVKey{Tenant: "t", Owner: "notes", Scope: "user::ada", Namespace: "storage/", Key: "seen"}
	other := b.another(t)
	putTo := func(ctx context.Context, st store.Store, text string) error {
		return st.Write(ctx, func(tx store.Tx) error {
			return tx.PutKV(store.KVRow{KVKey: key, Value: []byte(text), UpdatedAt: epoch})
		})
	}
	put := func(ctx context.Context, text string) error { return putTo(ctx, b, text) }
	read := func(ctx context.Context, from store.Reader) (string, error) {
		row, err := from.KV(ctx, key)
		if row == nil || err != nil {
			return "", err
		}
		return string(row.Value), nil
	}
	expect := func() (context.Context, func() error) {
		t.Helper()
		expecting, done, err := store.Expect(t.Context(), b, read)
		if err != nil {
			t.Fatal(err)
		}
		return expecting, done
	}
	is := func(want string) {
		t.Helper()
		if got, err := read(t.Context(), b); got != want || err != nil {
			t.Errorf("there is %q, %v; want %q", got, err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	seen, _ := expect()
	must(b.Write(seen, func(store.Tx) error { return nil })) // what changes nothing ends nothing
	must(put(t.Context(), "one"))
	if err := put(seen, "lost"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("a change of what another changed is answered %v", err)
	}
	is("one")
	must(put(store.ExpectNothing(seen), "two"))
	is("two")
	seen, _ = expect()
	must(put(seen, "three"))
	must(put(seen, "four")) // the change that was meant has been made
	is("four")
	seen, done := expect()
	must(put(t.Context(), "five"))
	if err := done(); !errors.Is(err, store.ErrChanged) {
		t.Errorf("where nothing was written, what another changed is answered %v", err)
	}
	must(put(seen, "six"))
	is("six")
	seen, done = expect()
	must(b.Write(seen, func(store.Tx) error { return nil }))
	must(put(t.Context(), "seven"))
	must(done()) // it was as it was seen when something was written

	const callers = 20 // of which one is first, on two handles
	var all sync.WaitGroup
	errs := make([]error, callers)
	var seens [callers]context.Context
	for i := range callers {
		seens[i], _ = expect()
	}
	for i, seen := range seens {
		all.Go(func() { errs[i] = putTo(seen, []store.Store{b, other}[i%2], string(rune('a'+i))) })
	}
	all.Wait()
	won := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	for i, err := range errs {
		if i != won && !errors.Is(err, store.ErrChanged) {
			t.Errorf("caller %d beside %d is answered %v", i, won, err)
		}
	}
	if won >= 0 {
		is(string(rune('a' + won)))
	}
}
