package quota_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/quota"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// A bench has quotas on a real store, with a clock that a test sets.
type bench struct {
	testing.TB
	store store.Store
	rules *quota.Rules
	now   atomic.Pointer[time.Time]
	*quota.Quotas
}

var ann = plugin.Principal{Type: "user", ID: "ann"}

func on(t testing.TB, st store.Store, rules *quota.Rules) *bench {
	b := &bench{TB: t, store: st, rules: rules}
	b.at("2026-03-31T23:59:30Z")
	b.open()
	return b
}

func (b *bench) open() {
	b.Quotas = quota.New(quota.Options{Counts: bridge.Counts{Of: b.store}, Rules: func(string) *quota.Rules { return b.rules }, Now: func() time.Time { return *b.now.Load() }})
}

func (b *bench) at(text string) {
	b.Helper()
	now, err := time.Parse(time.RFC3339, text)
	if err != nil {
		b.Fatal(err)
	}
	b.now.Store(&now)
}

func lite(t testing.TB) store.Store {
	t.Helper()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// mail is an operation that acts with an account of Google.
func mail(operation string) *plugin.Target {
	op := &plugin.Operation{Name: operation, Auth: &plugin.Auth{Provider: "google"}}
	return &plugin.Target{Manifest: &plugin.Manifest{Name: "mail", Operations: []*plugin.Operation{op}}, Operation: op}
}

func (b *bench) take(who plugin.Principal, operation string) (func(bool), error) {
	return b.Take(context.Background(), mail(operation), &plugin.Call{Tenant: "t", Principal: who}, false, true)
}

// calls makes n calls that run, and expects that many.
func (b *bench) calls(who plugin.Principal, operation string, n int) {
	b.Helper()
	for i := range n {
		done, err := b.take(who, operation)
		if err != nil {
			b.Fatalf("call %d of %d: %v", i+1, n, err)
		}
		done(true)
	}
}

// refused expects that no call can be made, and returns why.
func (b *bench) refused(who plugin.Principal, operation string, code plugin.Code) (*plugin.Error, map[string]any) {
	b.Helper()
	_, err := b.take(who, operation)
	if plugin.CodeOf(err) != code {
		b.Fatalf("%v, want %s", err, code)
	}
	e, details := plugin.AsError(err), map[string]any{}
	if err := json.Unmarshal(e.Details, &details); err != nil {
		b.Fatal(err)
	}
	return e, details
}

func TestADayAndAMonthEndInTheZoneOfTheSite(t *testing.T) {
	t.Parallel()
	b := on(t, lite(t), &quota.Rules{Default: quota.Bound{Day: 3, Month: 5}})
	b.calls(ann, "send", 3)
	e, details := b.refused(ann, "send", plugin.CodeBudgetExceeded)
	if e.RetryAfter != 30*time.Second || details["period"] != "daily" || details["limit"] != 3.0 || details["reset_in"] != 30.0 || !e.Retryable {
		t.Errorf("%+v %v", e, details)
	}
	b.calls(plugin.Principal{Type: "service", ID: "ann"}, "send", 1) // another principal
	b.at("2026-04-01T00:00:00Z")
	b.calls(ann, "send", 3) // a new day, and a new month
	b.at("2026-04-02T12:00:00Z")
	b.calls(ann, "send", 2)
	e, details = b.refused(ann, "send", plugin.CodeBudgetExceeded)
	if want := 28*24*time.Hour + 12*time.Hour; e.RetryAfter != want || details["period"] != "monthly" {
		t.Errorf("%+v %v", e, details)
	}
	b.at("2026-05-01T00:00:00Z")
	b.calls(ann, "send", 3)

	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	b = on(t, lite(t), &quota.Rules{Zone: berlin, Default: quota.Bound{Day: 1}})
	b.at("2026-03-28T22:59:59Z")
	b.calls(ann, "send", 1)
	b.at("2026-03-28T23:00:00Z")
	b.calls(ann, "send", 1)
	if e, _ := b.refused(ann, "send", plugin.CodeBudgetExceeded); e.RetryAfter != 23*time.Hour {
		t.Errorf("the day on which summer time begins has %s", e.RetryAfter)
	}
}

func TestWhoHasABoundOfTheirOwnHasNotTheDefault(t *testing.T) {
	t.Parallel()
	b := on(t, lite(t), &quota.Rules{
		Default: quota.Bound{Day: 1}, Principals: map[string]quota.Bound{"ann": {Day: 4}, "root": {}},
		Plugins: map[string]quota.Bound{"mail/send": {Day: 2}},
	})
	b.calls(ann, "send", 2)
	if _, details := b.refused(ann, "send", plugin.CodeBudgetExceeded); details["of"] != "mail/send" {
		t.Errorf("%v", details)
	}
	b.calls(ann, "read", 2) // what the other bound refused was not counted by the first
	b.refused(ann, "read", plugin.CodeBudgetExceeded)
	ben := plugin.Principal{Type: "user", ID: "ben"}
	b.calls(ben, "read", 1)
	b.refused(ben, "read", plugin.CodeBudgetExceeded)
	b.calls(plugin.Principal{Type: "user", ID: "root"}, "read", 10)
}

// A total is of all principals of a tenant together, beside the bounds of each.
func TestATotalIsOfAllPrincipals(t *testing.T) {
	t.Parallel()
	b := on(t, lite(t), &quota.Rules{Total: quota.Bound{Day: 5}, Default: quota.Bound{Day: 3}})
	ben := plugin.Principal{Type: "user", ID: "ben"}
	b.calls(ann, "send", 3)
	if _, details := b.refused(ann, "send", plugin.CodeBudgetExceeded); details["of"] != "all operations" {
		t.Errorf("%v", details)
	}
	b.calls(ben, "read", 2)
	e, details := b.refused(ben, "read", plugin.CodeBudgetExceeded)
	if details["of"] != "all principals" || !strings.Contains(e.Message, "the tenant has made the 5 calls") {
		t.Errorf("%s %v", e, details)
	}
	if done, err := b.Take(context.Background(), mail("send"), &plugin.Call{Tenant: "u", Principal: ann}, false, true); err != nil {
		t.Errorf("another tenant: %v", err)
	} else {
		done(true)
	}
	uses, err := b.Uses(t.Context(), "t", ben)
	if err != nil || len(uses) != 2 || uses[0].Of != "all principals" || uses[0].Used != 5 || uses[1].Used != 2 {
		t.Errorf("%+v, %v", uses, err)
	}
}

// Rules that take the place of others hold for the next call: what was counted counts, and
// what was charged in advance does not let more calls pass than the new bound has.
func TestRulesThatChangeHoldAtOnce(t *testing.T) {
	t.Parallel()
	b := on(t, lite(t), &quota.Rules{Default: quota.Bound{Day: 10_000}})
	b.calls(ann, "send", 3) // a block of more than a hundred was charged
	b.Adopt(&quota.Rules{Default: quota.Bound{Day: 5}})
	b.calls(ann, "send", 2)
	b.refused(ann, "send", plugin.CodeBudgetExceeded)
	b.Adopt(nil)
	b.calls(ann, "send", 3)
	b.Adopt(&quota.Rules{Default: quota.Bound{Day: 6}}) // those of the time without a bound were not counted
	b.calls(ann, "send", 1)
	b.refused(ann, "send", plugin.CodeBudgetExceeded)
}

func TestWhatDidNotRunIsNotCounted(t *testing.T) {
	t.Parallel()
	b := on(t, lite(t), &quota.Rules{Default: quota.Bound{Day: 2, Month: 2, Minute: 2, Concurrent: 1}})
	for range 5 {
		done, err := b.take(ann, "send")
		if err != nil {
			t.Fatal(err)
		}
		done(false)
		done(true) // only the first counts
	}
	b.calls(ann, "send", 2)
	b.refused(ann, "send", plugin.CodeRateLimited)
}

func TestAMinuteFillsEvenly(t *testing.T) {
	t.Parallel()
	b := on(t, lite(t), &quota.Rules{Plugins: map[string]quota.Bound{"mail": {Minute: 6}}})
	b.at("2026-03-01T12:00:00Z")
	b.calls(ann, "send", 6)
	if e, details := b.refused(ann, "read", plugin.CodeRateLimited); e.RetryAfter != 10*time.Second || details["of"] != "mail" {
		t.Errorf("%+v", e)
	}
	b.at("2026-03-01T12:00:10Z")
	b.calls(ann, "send", 1)
	b.refused(ann, "send", plugin.CodeRateLimited)
}

func TestCallsAtOnceAreOfAProviderOrAPlugin(t *testing.T) {
	t.Parallel()
	b := on(t, lite(t), &quota.Rules{Providers: map[string]int{"google": 2}, Plugins: map[string]quota.Bound{"mail/slow": {Concurrent: 1}}})
	slow, err := b.take(ann, "slow")
	if err != nil {
		t.Fatal(err)
	}
	ben := plugin.Principal{Type: "user", ID: "ben"}
	if e, details := b.refused(ben, "slow", plugin.CodeRateLimited); e.RetryAfter != time.Second || details["of"] != "mail/slow" {
		t.Errorf("%+v", e)
	}
	other, err := b.take(ben, "send") // what was refused holds no room of the provider
	if err != nil {
		t.Fatal(err)
	}
	if _, details := b.refused(ann, "send", plugin.CodeRateLimited); details["provider"] != "google" {
		t.Errorf("%v", details)
	}
	// One that is only put on record needs no room now, and one that was, needs no more than that.
	call := &plugin.Call{Tenant: "t", Principal: ann}
	if _, err := b.Take(t.Context(), mail("send"), call, false, false); err != nil {
		t.Error(err)
	}
	if _, err := b.Take(t.Context(), mail("send"), call, true, true); plugin.CodeOf(err) != plugin.CodeRateLimited {
		t.Error(err)
	}
	slow(true)
	other(false)
	b.calls(ann, "slow", 5)
}

// The count is exact: of 200 callers on each of two nodes, as many get through as the bound
// says, whatever was charged in advance.
func TestTheCountIsExact(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (one, two store.Store){
		"sqlite": func(t *testing.T) (one, two store.Store) { st := lite(t); return st, st },
		"postgres": func(t *testing.T) (one, two store.Store) {
			url, home := pgtest.Open(t), t.TempDir()
			var nodes []store.Store
			for range 2 {
				st, err := postgres.Open(t.Context(), url, postgres.Options{Home: home})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := st.Close(); err != nil {
						t.Error(err)
					}
				})
				nodes = append(nodes, st)
			}
			return nodes[0], nodes[1]
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := open(t)
			for _, bound := range []int64{1, 250, 4_000} {
				rules := &quota.Rules{Plugins: map[string]quota.Bound{fmt.Sprintf("mail/of%d", bound): {Day: bound}}}
				nodes := []*bench{on(t, one, rules), on(t, two, rules)}
				var through, refused atomic.Int64
				var wg sync.WaitGroup
				for i := range 400 {
					wg.Go(func() {
						for range max(1, bound/200) {
							switch done, err := nodes[i%2].take(ann, fmt.Sprintf("of%d", bound)); plugin.CodeOf(err) {
							case "":
								done(true)
								through.Add(1)
							case plugin.CodeBudgetExceeded:
								refused.Add(1)
							default:
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
				if through.Load() != bound || refused.Load() != 400*max(1, bound/200)-bound {
					t.Errorf("%d got through and %d were refused; the bound is %d", through.Load(), refused.Load(), bound)
				}
			}
		})
	}
}

// A host that ends gives back what it charged in advance; one that is killed leaves it
// counted, and never counts less than was made.
func TestARestartKeepsTheCount(t *testing.T) {
	t.Parallel()
	b := on(t, lite(t), &quota.Rules{Default: quota.Bound{Day: 6400}})
	used := func(want int64) {
		t.Helper()
		uses, err := b.Uses(t.Context(), "t", ann)
		if err != nil || len(uses) != 1 || uses[0].Used != want || uses[0].Of != "all operations" || uses[0].Period != "daily" || uses[0].Limit != 6400 {
			t.Errorf("%+v, %v; want %d", uses, err, want)
		}
	}
	b.calls(ann, "send", 10)
	used(10)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	used(10)
	b.calls(ann, "send", 1)
	used(11)
	b.open() // it was killed
	if uses, err := b.Uses(t.Context(), "t", ann); err != nil || uses[0].Used < 11 || uses[0].Used > 11+6400/64 {
		t.Errorf("%+v, %v", uses, err)
	}
}

// A count that cannot be kept is a call that is not made.
func TestNothingIsCalledThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	st := lite(t)
	b := on(t, st, &quota.Rules{Default: quota.Bound{Day: 100}})
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.take(ann, "send"); plugin.CodeOf(err) != plugin.CodeInternal {
		t.Errorf("%v", err)
	}
}

// BenchmarkTake is what counting costs a call far from its bounds.
func BenchmarkTake(b *testing.B) {
	bench := on(b, lite(b), &quota.Rules{Default: quota.Bound{Day: 1e11, Month: 1e12, Minute: 1e7, Concurrent: 1e5}, Plugins: map[string]quota.Bound{"mail": {Day: 1e11}}})
	t, call := mail("send"), &plugin.Call{Tenant: "t", Principal: ann}
	b.ReportAllocs()
	for b.Loop() {
		done, err := bench.Take(b.Context(), t, call, false, true)
		if err != nil {
			b.Fatal(err)
		}
		done(true)
	}
}
