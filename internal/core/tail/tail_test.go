package tail_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/tail"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) store.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

func add(t *testing.T, st store.Store, subjects ...string) {
	t.Helper()
	err := st.Write(t.Context(), func(tx store.Tx) error {
		for _, subject := range subjects {
			tx.Append(plugin.Entry{At: time.Now(), Tenant: "local", Kind: plugin.EntryCallStarted, Subject: subject, Body: []byte("{}")})
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func numbers(from, to int) (all []string) {
	for n := from; n < to; n++ {
		all = append(all, fmt.Sprint(n))
	}
	return all
}

func reader(t *testing.T, tl *tail.Tail, after string, want bool) *tail.Reader {
	t.Helper()
	var p tail.Position
	if after != "" {
		var ok bool
		if p, ok = tail.Parse(after); !ok {
			t.Fatalf("%q is no position", after)
		}
	}
	r, lost, err := tl.Open(t.Context(), p)
	if err != nil || lost != want {
		t.Fatalf("%v, %v", lost, err)
	}
	t.Cleanup(r.Close)
	return r
}

// next reads n entries and returns their subjects.
func next(t *testing.T, r *tail.Reader, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
	defer cancel()
	var got []string
	for range n {
		e, err := r.Next(ctx, ctx)
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got = append(got, e.Subject)
		r.Done()
	}
	return strings.Join(got, " ")
}

func none(t *testing.T, r *tail.Reader) {
	t.Helper()
	if e, err := r.Next(t.Context(), nil); e != nil || err != nil {
		t.Errorf("there is %+v, %v", e, err)
	}
}

func TestAReaderGetsWhatComesAndResumes(t *testing.T) {
	t.Parallel()
	st := open(t)
	add(t, st, "before")
	tl := tail.New(st, tail.Options{Ring: 4, Poll: time.Hour}) // so that a commit is what wakes it
	r := reader(t, tl, "", false)
	none(t, r)
	add(t, st, numbers(0, 3)...)
	if got := next(t, r, 3); got != "0 1 2" {
		t.Error(got)
	}
	none(t, r)
	at := r.Position().String()
	e, err := r.Next(t.Context(), nil)
	if e != nil || err != nil {
		t.Fatal(e, err)
	}
	add(t, st, numbers(3, 6)...)
	if got := next(t, r, 1); got != "3" {
		t.Error(got)
	}
	// From the ring, and, once that has forgotten, from the store.
	if got := next(t, reader(t, tl, at, false), 3); got != "3 4 5" {
		t.Error(got)
	}
	add(t, st, numbers(6, 900)...)
	want := strings.Join(numbers(4, 900), " ")
	if got := next(t, r, 896); got != want { // it was slow
		t.Errorf("a slow reader got %s", got)
	}
	want = strings.Join(numbers(3, 900), " ")
	late := reader(t, tl, at, false)
	if got := next(t, late, 897); got != want {
		t.Errorf("a late reader got %s", got)
	}
	if late.Position().String() != r.Position().String() || late.Position().String() == at {
		t.Errorf("they are at %s and %s", late.Position(), r.Position())
	}
	// When all have gone nothing is followed, and who comes back has missed nothing.
	r.Close()
	late.Close()
	at = late.Position().String()
	add(t, st, "900")
	if got := next(t, reader(t, tl, at, false), 1); got != "900" {
		t.Error(got)
	}
}

func TestAReaderThatWaitsIsTold(t *testing.T) {
	t.Parallel()
	st := open(t)
	tl := tail.New(st, tail.Options{Poll: time.Hour})
	r := reader(t, tl, "0", false)
	gone, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it is enough"))
	if _, err := r.Next(t.Context(), gone); err == nil || err.Error() != "it is enough" {
		t.Error(err)
	}
	// An entry stays the next one until it is done.
	add(t, st, "a", "b")
	for range 3 {
		if e, err := r.Next(t.Context(), t.Context()); err != nil || e.Subject != "a" {
			t.Fatal(e, err)
		}
	}
	if r.Position().String() != "0" {
		t.Errorf("it is at %s", r.Position())
	}
	if got := next(t, r, 2); got != "a b" {
		t.Error(got)
	}
}

// What is no position of this history begins now, and says so: one of another database, one
// that was rewritten, one that is ahead, one too far back.
func TestWhatIsNoPositionIsLost(t *testing.T) {
	t.Parallel()
	st, other := open(t), open(t)
	add(t, st, numbers(0, 30)...)
	add(t, other, numbers(0, 29)...)
	add(t, other, "another", "and one")
	tl := tail.New(st, tail.Options{LookBack: 20})
	from := reader(t, tail.New(other, tail.Options{}), "", false).Position().String()
	now := reader(t, tl, "", false).Position().String()
	of := strings.Split(now, ".")
	for _, after := range []string{from, "1.31." + of[2], "1.29." + of[2], "2.1." + of[2], now + "_2.1." + of[2], "0"} {
		r := reader(t, tl, after, true)
		if r.Position().String() != now {
			t.Errorf("after %s it is at %s, want %s", after, r.Position(), now)
		}
	}
	for _, text := range []string{"", "x", "1", "1.2", "1.2.3", "01.2.12345678", "1.2.12345678_", "1.0.12345678", "-1.2.12345678", "2.1.12345678_1.1.12345678", "1.1.12345678_1.1.12345678",
		strings.Repeat("1.1.12345678_", 300) + "9.1.12345678"} {
		if p, ok := tail.Parse(text); ok {
			t.Errorf("%.40q is %v", text, p)
		}
	}
}

// Readers that come and go while many write: each gets all there is from where it began,
// once and in order.
func TestManyReadersWhileManyWrite(t *testing.T) {
	t.Parallel()
	st := open(t)
	tl := tail.New(st, tail.Options{Ring: 16})
	const each, writers, readers = 100, 4, 8
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				add(t, st, fmt.Sprintf("%d:%d", w, n))
			}
		})
	}
	for i := range readers {
		all.Go(func() {
			at, last, seen := tail.Position{}, map[string]int{}, 0
			for seen < each*writers {
				r, lost, err := tl.Open(t.Context(), at)
				if err != nil || lost {
					t.Error(lost, err)
					return
				}
				for range 1 + i*7 {
					ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
					e, err := r.Next(ctx, ctx)
					if cancel(); err != nil {
						t.Error(err)
						break
					}
					var w, n int
					_, _ = fmt.Sscanf(e.Subject, "%d:%d", &w, &n)
					if key := fmt.Sprint(w); last[key] != n {
						t.Errorf("writer %d: %d came where %d was next", w, n, last[key])
					} else {
						last[key]++
					}
					r.Done()
					if seen++; seen == each*writers {
						break
					}
				}
				at, _ = tail.Parse(r.Position().String())
				r.Close()
				if t.Failed() {
					return
				}
			}
		})
	}
	all.Wait()
}

// Two nodes of one database write a chain each. A reader of either gets the entries of
// both, and goes on at the other where it left.
func TestAPositionHoldsOnEveryNode(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	node := func() store.Store {
		st, err := postgres.Open(t.Context(), url, postgres.Options{Home: home})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		return st
	}
	one, two := node(), node()
	add(t, one, "a")
	add(t, two, "b")
	first, second := tail.New(one, tail.Options{Ring: 4}), tail.New(two, tail.Options{Ring: 4})
	r, s := reader(t, first, "", false), reader(t, second, "", false)
	if r.Position().String() != s.Position().String() || len(r.Position()) != 2 {
		t.Fatalf("they are at %s and %s", r.Position(), s.Position())
	}
	var all sync.WaitGroup
	all.Go(func() { add(t, one, numbers(0, 50)...) })
	all.Go(func() { add(t, two, numbers(50, 100)...) })
	check := func(r *tail.Reader, n int, seen map[string]bool) {
		t.Helper()
		for subject := range strings.SplitSeq(next(t, r, n), " ") {
			if seen[subject] {
				t.Errorf("%s came twice", subject)
			}
			seen[subject] = true
		}
	}
	whole, parts := map[string]bool{}, map[string]bool{}
	check(s, 100, whole)
	check(r, 30, parts)
	check(reader(t, second, r.Position().String(), false), 70, parts)
	all.Wait()
	if len(whole) != 100 || len(parts) != 100 {
		t.Errorf("%d and %d", len(whole), len(parts))
	}
}
