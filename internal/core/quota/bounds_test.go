package quota

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// ledger keeps counts in memory, and says which there are.
type ledger struct {
	mu     sync.Mutex
	counts map[[3]string]int64
}

func (l *ledger) Add(_ context.Context, tenant, subject, period string, n, limit int64) (int64, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := [3]string{tenant, subject, period}
	if n > 0 && l.counts[at]+n > limit {
		return l.counts[at], false, nil
	}
	l.counts[at] = max(0, l.counts[at]+n)
	return l.counts[at], true, nil
}

func (l *ledger) Total(_ context.Context, tenant, subject, period string) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[[3]string{tenant, subject, period}], nil
}

func (l *ledger) Forget(_ context.Context, tenant, _, day, month string) (more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for at := range l.counts {
		before := month
		if len(at[2]) == len(day) {
			before = day
		}
		if at[0] == tenant && at[2] < before {
			delete(l.counts, at)
			return true, nil // one at a time
		}
	}
	return false, nil
}

// benchQuotas returns quotas with one bound of each kind, and a function that makes one call.
func benchQuotas(t *testing.T, now *time.Time) (*Quotas, *ledger, func(principal, operation string)) {
	counts := &ledger{counts: map[[3]string]int64{}}
	rules := &Rules{Default: Bound{Day: 1 << 40, Month: 1 << 40}, Plugins: map[string]Bound{"mail": {Day: 1 << 40}}}
	q := New(Options{Rules: func(string) *Rules { return rules }, Counts: counts, Now: func() time.Time { return *now }})
	return q, counts, func(principal, operation string) {
		t.Helper()
		op := &plugin.Operation{Name: operation}
		call := &plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: "user", ID: principal}}
		done, err := q.Take(t.Context(), &plugin.Target{Manifest: &plugin.Manifest{Name: "mail"}, Operation: op}, call, false, true)
		if err != nil {
			t.Fatal(err)
		}
		done(true)
	}
}

// However many principals make calls, a bounded number of counters is in memory, and what they
// charged in advance comes back: the store has the calls that were made.
func TestCountersInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	q, counts, call := benchQuotas(t, &now)
	const principals = maxCounters/3 + 500 // three counters of each
	for i := range principals {
		call(fmt.Sprintf("p%d", i), "send")
		if n := len(q.counters); n > maxCounters || n != q.recent.Len() {
			t.Fatalf("%d counters are in memory, and %d in the order of their use, want at most %d", n, q.recent.Len(), maxCounters)
		}
	}
	if _, err := q.Uses(t.Context(), "t", plugin.Principal{Type: "user", ID: "other"}); err != nil {
		t.Fatal(err)
	}
	if n := len(q.counters); n > maxCounters {
		t.Errorf("a question about uses left %d counters in memory", n)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	for at, n := range counts.counts {
		if n != 1 {
			t.Errorf("%v has %d calls, want 1", at, n)
		}
	}
	if len(counts.counts) != 3*principals {
		t.Errorf("the store has %d counts, want %d", len(counts.counts), 3*principals)
	}
}

// A question makes no counter.
func TestAQuestionAboutUsesKeepsNothing(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	q, _, _ := benchQuotas(t, &now)
	for i := range 100 {
		if uses, err := q.Uses(t.Context(), "t", plugin.Principal{Type: "user", ID: fmt.Sprint(i)}); err != nil || len(uses) != 3 {
			t.Fatalf("%+v, %v, want three bounds", uses, err)
		}
	}
	if n := len(q.counters); n != 0 {
		t.Errorf("questions left %d counters in memory, want none", n)
	}
}

// The store keeps the counts of the last two days and months, however long the host runs.
func TestCountsOfThePastAreDeleted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	_, counts, call := benchQuotas(t, &now)
	most := 0
	for range 120 { // a call an hour deletes one count
		for range 6 {
			call("ann", "send")
		}
		now = now.AddDate(0, 0, 1)
		most = max(most, len(counts.counts))
	}
	if most > 2*2+2 { // ann's days, with and without the plugin, and months
		t.Errorf("the store had up to %d counts of one principal, want at most 6", most)
	}
	for at := range counts.counts {
		if at[2] < "2026-03-01" && at[2] != "2026-03" && at[2] != "2026-04" {
			t.Errorf("the count %v is kept", at)
		}
	}
}

// Bounds that no rule has any more keep no buckets.
func TestBucketsOfMinutesAreThoseOfTheRules(t *testing.T) {
	t.Parallel()
	q := New(Options{Rules: func(string) *Rules { return nil }, Counts: &ledger{counts: map[[3]string]int64{}}})
	for i := range 100 {
		rules := &Rules{Default: Bound{Minute: i + 1}, Plugins: map[string]Bound{"mail": {Minute: 7}}}
		if err := q.Adopt(rules); err != nil {
			t.Fatal(err)
		}
		done, err := q.Take(t.Context(), &plugin.Target{Manifest: &plugin.Manifest{Name: "mail"}, Operation: &plugin.Operation{Name: "send"}},
			&plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: "user", ID: fmt.Sprint(i)}}, false, true)
		if err != nil {
			t.Fatal(err)
		}
		done(true)
	}
	if n := len(q.minutes); n > 2 {
		t.Errorf("there are buckets of %d bounds, want 2", n)
	}
}
