package storetest

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
)

func spend(t *testing.T, st store.Store, delta, limit, wantTotal int64, wantOK bool) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		total, ok, err := tx.Spend("t", "plugin:x", "2026-02", delta, limit)
		if err == nil && (total != wantTotal || ok != wantOK) {
			t.Errorf("spending %d within %d: %d, %t, want %d, %t", delta, limit, total, ok, wantTotal, wantOK)
		}
		return err
	})
}

func spendRace(t *testing.T, b *bundle) {
	stores := []store.Store{b.Store, b.another(t)}
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			var granted bool
			err := stores[i%2].Write(ctx(), func(tx store.Tx) error {
				total, ok, err := tx.Spend("t", "plugin:x", "2026-02", 30, 100)
				if granted = ok; total > 100 {
					t.Errorf("the total is %d", total)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			} else if granted {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if got, err := b.Spent(t.Context(), "t", "plugin:x", "2026-02"); got != 90 || won.Load() != 3 || err != nil {
		t.Errorf("%d spent, by %d, %v; want 90 by 3", got, won.Load(), err)
	}
}

func spendGivenBack(t *testing.T, b *bundle) {
	spend(t, b, 101, 100, 0, false)
	spend(t, b, -5, 100, 0, true)
	spend(t, b, 100, 100, 100, true)
	spend(t, b, 1, 100, 100, false)
	spend(t, b, 0, 100, 100, true)
	spend(t, b, 0, 99, 100, false)
	spend(t, b, -40, 0, 60, true)
	spend(t, b, 41, 100, 60, false)
	spend(t, b, 40, 100, 100, true)
	spend(t, b, 1, math.MaxInt64, 101, true)
	spend(t, b, math.MaxInt64, math.MaxInt64, 101, false)
	spend(t, b, 1, -1, 101, false)
	spend(t, b, math.MinInt64, 0, 0, true)
	spend(t, b, math.MaxInt64, math.MaxInt64, math.MaxInt64, true)
	for _, other := range [][3]string{{"u", "plugin:x", "2026-02"}, {"t", "plugin:y", "2026-02"}, {"t", "plugin:x", "2026-03"}} {
		if got, err := b.Spent(t.Context(), other[0], other[1], other[2]); got != 0 || err != nil {
			t.Errorf("%v has spent %d, %v", other, got, err)
		}
	}
}

func claims(t *testing.T, b *bundle) {
	for _, test := range [][3]string{{"blobs", "one", "one"}, {"blobs", "two", "one"}, {"other", "two", "two"}} {
		write(t, b.another(t), func(tx store.Tx) error {
			holder, err := tx.Claim(test[0], test[1])
			if holder != test[2] {
				t.Errorf("%s is %q's, want %q's", test[0], holder, test[2])
			}
			return err
		})
	}
}

// forgottenSpend deletes only what was spent in earlier periods of the same kind, of the subjects
// that are named, a few at a time.
func forgottenSpend(t *testing.T, b *bundle) {
	type budget struct{ tenant, subject, period string }
	kept := []budget{
		{"t", "calls", "2026-03-01"}, {"t", "calls", "2026-03-02"}, {"t", "calls", "2026-02"}, {"t", "calls:user:ann", "2026-03-01"},
		{"t", "callsign", "2026-02-01"}, {"t", "plugin:x", "2026-02-01"}, {"t", "definition:calls", "sha256:0"}, {"t", "calls", ""}, {"other", "calls", "2026-02-01"},
	}
	gone := []budget{{"t", "calls", "2026-02-28"}, {"t", "calls", "2025-12-31"}, {"t", "calls:user:ann", "2026-02-28"}, {"t", "calls:user:ann:mail/send", "2026-01-01"}}
	write(t, b, func(tx store.Tx) error {
		for _, one := range append(append([]budget{}, kept...), gone...) {
			if _, _, err := tx.Spend(one.tenant, one.subject, one.period, 1, 10); err != nil {
				return err
			}
		}
		return nil
	})
	for i, want := range []bool{true, true, false} { // three, the one that is left, none
		write(t, b, func(tx store.Tx) error {
			got, err := tx.ForgetSpent("t", "calls", "2026-03-01", 3)
			if err == nil && got != want {
				t.Errorf("round %d deleted some: %t, want %t", i, got, want)
			}
			return err
		})
	}
	for n, budgets := range map[int64][]budget{0: gone, 1: kept} {
		for _, one := range budgets {
			if got, err := b.Spent(t.Context(), one.tenant, one.subject, one.period); err != nil || got != n {
				t.Errorf("%+v: %d is spent, %v, want %d", one, got, err, n)
			}
		}
	}
}
