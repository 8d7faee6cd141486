package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

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
