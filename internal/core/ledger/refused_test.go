package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A refusing store does not write while it has a reason.
type refusing struct {
	store.Store
	reason   atomic.Pointer[error]
	refusals atomic.Int64
	most     int64 // refusals before it writes again; 0 for no limit
}

func (r *refusing) because(err error) { r.reason.Store(&err) }

// refusal returns why the store does not write now.
func (r *refusing) refusal() error {
	reason := r.reason.Load()
	if reason == nil || *reason == nil || r.most > 0 && r.refusals.Add(1) > r.most {
		return nil
	}
	return *reason
}

func (r *refusing) Write(ctx context.Context, fn func(store.Tx) error) error {
	if err := r.refusal(); err != nil {
		return err
	}
	return r.Store.Write(ctx, fn)
}

func (r *refusing) WriteLast(ctx context.Context, fn func(store.Tx) error) error {
	if err := r.refusal(); err != nil {
		return err
	}
	return r.Store.WriteLast(ctx, fn)
}

// A store that refuses for a while loses no entry that was taken, and the ledger
// says meanwhile that it is not written; one that has failed for good stays so.
func TestAStoreThatRefusesForAWhileLosesNoEntry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause  error
		passes bool
	}{
		"busy":              {errors.New("database is locked (5)"), true},
		"a lost connection": {errors.New("connection reset by peer"), true},
		"full":              {fmt.Errorf("%w: no space left", store.ErrFull), true},
		"failed":            {fmt.Errorf("%w: input/output error", store.ErrFailed), false},
		"closed":            {store.ErrClosed, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := &refusing{Store: openStore(t, t.TempDir())}
			l := openLedger(t, st, ledger.Options{Flush: 5 * time.Millisecond})
			add := func(id string) error {
				return l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record(id), at, false)
			}
			if err := add("before"); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(l.Flush(t.Context()), l.Writing()); err != nil {
				t.Fatal(err)
			}
			st.because(c.cause)
			if err := add("taken"); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "the ledger says that it is not written", func() bool { return l.Writing() != nil })
			if err := add("refused"); !errors.Is(err, c.cause) {
				t.Errorf("while the store refuses, a call is recorded: %v", err)
			}
			st.because(nil)
			if c.passes {
				testwait.Until(t, "the ledger is written again", func() bool { return l.Writing() == nil })
			}
			if err := l.Writing(); (err == nil) != c.passes {
				t.Errorf("once the store takes writes: %v", err)
			}
			want := []string{"before"}
			if c.passes {
				if err := errors.Join(add("after"), l.Flush(t.Context())); err != nil {
					t.Error(err)
				}
				want = []string{"before", "taken", "after"}
			}
			var got []string
			for e, err := range st.Entries(t.Context(), store.EntryFilter{Tenant: "t"}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Subject)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the ledger has %v, want %v", got, want)
			}
		})
	}
}

// A ledger that closes while the store refuses waits for it a little.
func TestALedgerThatClosesWaitsForAStoreThatRefuses(t *testing.T) {
	t.Parallel()
	st := &refusing{Store: openStore(t, t.TempDir()), most: 2}
	l := openLedger(t, st, ledger.Options{Flush: never})
	if err := l.Record(t.Context(), "t", plugin.EntryCallSucceeded, record("taken"), at, false); err != nil {
		t.Fatal(err)
	}
	st.because(errors.New("database is locked (5)"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for e, err := range st.Entries(t.Context(), store.EntryFilter{Tenant: "t"}) {
		if err == nil && e.Subject == "taken" {
			return
		}
	}
	t.Error("the entry is lost")
}
