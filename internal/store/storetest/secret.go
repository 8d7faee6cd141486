package storetest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func newSecret(key int64) store.SecretRow {
	return store.SecretRow{
		SecretName: store.SecretName{Tenant: "t", Owner: "notes", Scope: "user", Subject: "user::ada", Name: "api_key"},
		Ciphertext: []byte{0, 0xff, 7}, Key: key, UpdatedAt: epoch,
	}
}

func insertSecretKey(t *testing.T, st store.Store, row store.SecretKeyRow, want bool) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		added, err := tx.InsertSecretKey(row)
		if added != want {
			t.Errorf("adding key %d: %t, want %t", row.N, added, want)
		}
		return err
	})
}

func putSecret(t *testing.T, st store.Store, row store.SecretRow, want bool) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		current, err := tx.PutSecret(row)
		if current != want {
			t.Errorf("keeping a secret under key %d: %t, want %t", row.Key, current, want)
		}
		return err
	})
}

func secrets(t *testing.T, b *bundle) {
	first := store.SecretKeyRow{N: 1, Master: "m1", Wrapped: []byte{1, 0}, CreatedAt: epoch}
	row := newSecret(1)
	putSecret(t, b, row, false) // there is no key yet
	insertSecretKey(t, b, first, true)
	insertSecretKey(t, b.another(t), store.SecretKeyRow{N: 1, Master: "m2", Wrapped: []byte{2}, CreatedAt: epoch}, false)

	foreign, system := row, row
	foreign.Tenant = "u"
	system.Scope, system.Subject, system.Owner = "system", "", "*"
	for _, r := range []store.SecretRow{row, foreign, system} {
		putSecret(t, b, r, true)
	}
	row.Ciphertext, row.UpdatedAt = []byte{9}, epoch.Add(time.Second)
	putSecret(t, b, row, true)
	for _, want := range []store.SecretRow{row, foreign, system} {
		if got, err := b.Secret(t.Context(), want.SecretName); err != nil || got == nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	if got, err := b.Secrets(t.Context(), store.SecretFilter{Tenant: "t"}); err != nil || !reflect.DeepEqual(got, []store.SecretRow{system, row}) {
		t.Errorf("the secrets of one tenant are %+v, %v", got, err)
	}
	if got, err := b.Secrets(t.Context(), store.SecretFilter{Limit: 2}); err != nil || len(got) != 2 {
		t.Errorf("two of all are %+v, %v", got, err)
	}
	if got, err := b.Secrets(t.Context(), store.SecretFilter{Before: 1}); err != nil || len(got) != 0 {
		t.Errorf("under earlier keys are %+v, %v", got, err)
	}
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteSecret(row.SecretName)
			if found != want {
				t.Errorf("deleting it: %t, want %t", found, want)
			}
			return err
		})
	}
	if got, err := b.Secret(t.Context(), row.SecretName); got != nil || err != nil {
		t.Errorf("a deleted one is %+v, %v", got, err)
	}
}

func secretKeys(t *testing.T, b *bundle) {
	first := store.SecretKeyRow{N: 1, Master: "m1", Wrapped: []byte{1}, CreatedAt: epoch}
	second := store.SecretKeyRow{N: 2, Master: "m2", Wrapped: []byte{2}, CreatedAt: epoch.Add(time.Second)}
	insertSecretKey(t, b, first, true)
	row := newSecret(1)
	putSecret(t, b, row, true)
	insertSecretKey(t, b, second, true)
	other := newSecret(1)
	other.Name = "other"
	putSecret(t, b.another(t), other, false) // the first is not the last any more
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			won, err := tx.RewrapSecretKey(1, "m1", "m2", []byte{3})
			if won != want {
				t.Errorf("encrypting a key again: %t, want %t", won, want)
			}
			return err
		})
	}
	first.Master, first.Wrapped = "m2", []byte{3}
	remove := func(want bool, left ...store.SecretKeyRow) {
		t.Helper()
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteSecretKeys(2)
			if found != want {
				t.Errorf("deleting the keys before the second: %t, want %t", found, want)
			}
			return err
		})
		if got, err := b.SecretKeys(t.Context()); err != nil || !reflect.DeepEqual(got, left) {
			t.Errorf("the keys are %+v, %v, want %+v", got, err, left)
		}
	}
	remove(false, first, second) // a secret needs it
	if got, err := b.Secrets(t.Context(), store.SecretFilter{Before: 2}); err != nil || !reflect.DeepEqual(got, []store.SecretRow{row}) {
		t.Errorf("under earlier keys are %+v, %v", got, err)
	}
	row.Key = 2
	putSecret(t, b, row, true)
	remove(true, second)
	remove(false, second)
}

// leases: of all callers of all handles one has a name at a time.
func leases(t *testing.T, b *bundle) {
	handles := []store.Store{b.Store, b.another(t), b.another(t)}
	var inside, most atomic.Int32
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			release, err := store.Lease(t.Context(), handles[n%len(handles)], "t", "an account\x00of ada")
			if err != nil {
				t.Error(err)
				return
			}
			most.Store(max(most.Load(), inside.Add(1)))
			inside.Add(-1)
			release()
		})
	}
	all.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d callers had the lease at a time, want 1", n)
	}

	// Other names and other tenants are apart, one who waits goes with its context, and what was
	// given back is free.
	release, err := store.Lease(t.Context(), b, "t", "one")
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range [][2]string{{"t", "two"}, {"u", "one"}} {
		free, err := store.Lease(t.Context(), handles[1], other[0], other[1])
		if err != nil {
			t.Fatal(err)
		}
		free()
	}
	gaveUp := errors.New("gave up")
	waits, stop := context.WithCancelCause(t.Context())
	stop(gaveUp)
	if _, err := store.Lease(waits, handles[1], "t", "one"); !errors.Is(err, gaveUp) {
		t.Errorf("a caller who gave up got %v, want the cause", err)
	}
	release()
	if release, err = store.Lease(t.Context(), handles[1], "t", "one"); err != nil {
		t.Fatal(err)
	}

	// A lease whose holder is gone ends by itself, and is not given back for who has it then.
	late := clockAhead{handles[2]}
	taken, err := store.Lease(t.Context(), late, "t", "one")
	if err != nil {
		t.Fatal(err)
	}
	release()
	ended, end := context.WithCancelCause(t.Context())
	end(gaveUp)
	if _, err := store.Lease(ended, late, "t", "one"); !errors.Is(err, gaveUp) {
		t.Errorf("a lease that had ended was given back for its next holder: %v", err)
	}
	taken()
}

// clockAhead is a store an hour later.
type clockAhead struct{ store.Store }

// Now implements [store.Clock].
func (s clockAhead) Now() time.Time { return s.Store.Now().Add(time.Hour) }
