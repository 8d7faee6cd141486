// Package quota bounds how many calls principals make: in a day, in a month, in a minute and
// at once.
//
// Days and months are counted in the store, for all nodes of a host and across restarts.
// Minutes and what runs at once are counted by each node for itself. Nothing here waits for
// a bound to lift: a call beyond one is refused, and says when to come again.
package quota

import (
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/base/ratelimit"
	"github.com/mortise-dev/mortise/plugin"
)

// A Bound is how many calls there may be; 0 is any number.
type Bound struct {
	Day, Month int64
	Minute     int // on each node
	Concurrent int // on each node
}

// Rules are the bounds of one tenant. They are not changed once they are in use.
type Rules struct {
	Total      Bound            // of all calls of all principals together
	Zone       *time.Location   // in which days and months begin; UTC where it is nil
	Default    Bound            // of all calls of a principal that Principals does not name
	Principals map[string]Bound // likewise, by [plugin.Principal.Member]
	Plugins    map[string]Bound // of the calls of each principal to a plugin, or to plugin/operation; concurrent is of all principals together
	Providers  map[string]int   // calls at once, on each node, of operations that act with an account of the provider
}

// Counts keeps numbers in the store that the nodes share.
type Counts interface {
	// Add adds n to a count where it stays within limit, and returns the count as it is
	// then; ok is false where it would not. A negative n takes away, and not below 0.
	Add(ctx context.Context, tenant, subject, period string, n, limit int64) (total int64, ok bool, err error)
	// Forget deletes some counts of days and of months before those, for subjects that are subject
	// or begin with it and a colon, and reports whether there may be more.
	Forget(ctx context.Context, tenant, subject, day, month string) (more bool, err error)
	// Total returns a count.
	Total(ctx context.Context, tenant, subject, period string) (int64, error)
}

// Options are the parts of quotas.
type Options struct {
	Rules  func(tenant string) *Rules // nil where nothing is bounded
	Counts Counts
	Now    func() time.Time // time.Now where it is nil
}

// Quotas count calls. They are safe for concurrent use. Close gives back what was charged
// in advance.
type Quotas struct {
	opts Options

	adopted atomic.Pointer[adopted]
	date    atomic.Pointer[date] // that it was last

	mu       sync.Mutex                        // guards the rest
	counters map[counterKey]*list.Element      // of *counter
	recent   list.List                         // of *counter, the last used first
	forgot   map[string]string                 // by tenant, the day on which the counts of earlier ones were deleted last
	minutes  map[int]*ratelimit.Limiter[place] // by the calls of a minute
	atOnce   map[place]int
}

// A place is where calls are counted together.
type place struct{ tenant, subject string }

// maxPlaces bounds the buckets of minutes; see [ratelimit.Limiter].
const maxPlaces = 100_000

// New returns quotas that consist of these parts.
func New(o Options) *Quotas {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Quotas{opts: o, counters: map[counterKey]*list.Element{}, forgot: map[string]string{}, minutes: map[int]*ratelimit.Limiter[place]{}, atOnce: map[place]int{}}
}

// adopted are the rules that took the place of [Options.Rules].
type adopted struct{ rules *Rules }

// Adopt has other rules hold from now on, nil for none. What was counted stays counted. What
// was charged in advance under the rules before is given back first, so that no bound is
// passed.
func (q *Quotas) Adopt(rules *Rules) error {
	q.adopted.Store(&adopted{rules})
	q.keepMinutes(rules)
	return q.Close()
}

// rules returns those that hold for a tenant.
func (q *Quotas) rules(tenant string) *Rules {
	if now := q.adopted.Load(); now != nil {
		return now.rules
	}
	return q.opts.Rules(tenant)
}

// A scope is a bound with what it counts.
type scope struct {
	who     string // whose calls they are, as messages call them; "" for the principal
	subject string // of days, months and minutes
	slots   string // of calls at once
	of      string // as messages call it
	bound   Bound
}

// scopes returns the bounds that hold for a call.
func (r *Rules) scopes(t *plugin.Target, call *plugin.Call) []scope {
	member := call.Principal.Member()
	var all []scope
	if r.Total != (Bound{}) {
		all = append(all, scope{"the tenant", subjects, "calls", "all principals", r.Total})
	}
	bound, own := r.Principals[member]
	if !own {
		bound = r.Default
	}
	if bound != (Bound{}) {
		all = append(all, scope{"", subjects + ":" + member, "calls:" + member, "all operations", bound})
	}
	for _, name := range [2]string{t.Manifest.Name, t.Name()} {
		if bound := r.Plugins[name]; bound != (Bound{}) {
			all = append(all, scope{"", subjects + ":" + member + ":" + name, "plugin:" + name, name, bound})
		}
	}
	return all
}

// providers returns the providers with whose accounts an operation acts.
func providers(t *plugin.Target) []string {
	if auth := t.Operation.Auth; auth != nil {
		return []string{auth.Provider}
	}
	var names []string
	for _, auth := range t.Manifest.Identities {
		names = append(names, auth.Provider)
	}
	return names
}

// A taken is what one call took, to be given back.
type taken struct {
	q        *Quotas
	slots    []place
	minutes  []minute
	counters []*counter
	periods  []string
	once     sync.Once
}

type minute struct {
	limiter *ratelimit.Limiter[place]
	place   place
}

// Take counts a call that is to run now, or to be put on record, or refuses it:
// budget_exceeded where its day or month is used up, rate_limited for a minute and for what
// runs at once, each with the time after which it may be made. again is of a call that was
// counted before, when it was put on record: it takes room alone. holds is of one that runs
// now, and not of one that is only put on record. done must be called when the call is
// over; what did not run is not counted.
func (q *Quotas) Take(ctx context.Context, t *plugin.Target, call *plugin.Call, again, holds bool) (done func(ran bool), err error) {
	rules := q.rules(call.Tenant)
	if rules == nil {
		return func(bool) {}, nil
	}
	scopes, took := rules.scopes(t, call), &taken{q: q}
	defer func() {
		if err != nil {
			took.done(false)
		}
	}()
	if holds {
		if err := q.takeSlots(rules, scopes, t, call.Tenant, took); err != nil {
			return nil, err
		}
	}
	if !again {
		now := q.opts.Now()
		if err := q.takeMinutes(scopes, call, now, took); err != nil {
			return nil, err
		}
		if err := q.takeDays(ctx, rules, scopes, call, now, took); err != nil {
			return nil, err
		}
	}
	return took.done, nil
}

// done gives back the room of a call, and all that was counted for one that did not run.
func (t *taken) done(ran bool) {
	t.once.Do(func() {
		t.q.mu.Lock()
		for _, at := range t.slots {
			if t.q.atOnce[at]--; t.q.atOnce[at] == 0 {
				delete(t.q.atOnce, at)
			}
		}
		t.q.mu.Unlock()
		if ran {
			return
		}
		for _, m := range t.minutes {
			m.limiter.Give(m.place, 1)
		}
		for i, c := range t.counters {
			c.give(t.periods[i])
		}
	})
}

// soon is when a call may be made again for which there was no room: no one knows when
// another ends.
const soon = time.Second

func (q *Quotas) takeSlots(rules *Rules, scopes []scope, t *plugin.Target, tenant string, took *taken) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range scopes {
		at := place{tenant, s.slots}
		if most := s.bound.Concurrent; most > 0 {
			if q.atOnce[at] >= most {
				return refusal(plugin.CodeRateLimited, soon, map[string]any{"of": s.of, "limit": most},
					"%d calls of %s are running, which is as many as may at a time", most, s.of)
			}
			q.hold(at, took)
		}
	}
	for _, name := range providers(t) {
		at := place{tenant, "provider:" + name}
		if most := rules.Providers[name]; most > 0 {
			if q.atOnce[at] >= most {
				return refusal(plugin.CodeRateLimited, soon, map[string]any{"provider": name, "limit": most},
					"%d calls act with accounts of %s, which is as many as may at a time", most, name)
			}
			q.hold(at, took)
		}
	}
	return nil
}

func (q *Quotas) hold(at place, took *taken) {
	q.atOnce[at]++
	took.slots = append(took.slots, at)
}

func (q *Quotas) takeMinutes(scopes []scope, call *plugin.Call, now time.Time, took *taken) error {
	for _, s := range scopes {
		if s.bound.Minute == 0 {
			continue
		}
		m := minute{q.limiter(s.bound.Minute), place{call.Tenant, s.subject}}
		if wait := m.limiter.Take(m.place, 1, now); wait > 0 {
			return refusal(plugin.CodeRateLimited, wait, map[string]any{"of": s.of, "limit": s.bound.Minute},
				"%s has made the %d calls of %s that a minute has room for", cmp.Or(s.who, call.Principal.Member()), s.bound.Minute, s.of)
		}
		took.minutes = append(took.minutes, m)
	}
	return nil
}

// keepMinutes drops the buckets that no rule counts in any more.
func (q *Quotas) keepMinutes(rules *Rules) {
	used := map[int]bool{}
	if rules != nil {
		used[rules.Total.Minute], used[rules.Default.Minute] = true, true
		for _, bounds := range []map[string]Bound{rules.Principals, rules.Plugins} {
			for _, b := range bounds {
				used[b.Minute] = true
			}
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.minutes, func(perMinute int, _ *ratelimit.Limiter[place]) bool { return !used[perMinute] })
}

// limiter returns the buckets of so many calls a minute.
func (q *Quotas) limiter(perMinute int) *ratelimit.Limiter[place] {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.minutes[perMinute]
	if l == nil {
		l = ratelimit.New[place](float64(perMinute)/60, float64(perMinute), maxPlaces)
		q.minutes[perMinute] = l
	}
	return l
}

func (q *Quotas) takeDays(ctx context.Context, rules *Rules, scopes []scope, call *plugin.Call, now time.Time, took *taken) error {
	for _, s := range scopes {
		for _, w := range q.windows(rules, s.bound, now) {
			if w.limit == 0 {
				continue
			}
			if err := q.forget(ctx, call.Tenant, q.today(rules, now)); err != nil {
				return err
			}
			c, ok, err := q.take(ctx, counterKey{call.Tenant, s.subject, w.name}, w)
			if err != nil {
				return err
			}
			if !ok {
				left := max(w.ends.Sub(now), time.Second)
				return refusal(plugin.CodeBudgetExceeded, left, map[string]any{"of": s.of, "limit": w.limit, "period": w.name, "reset_in": int64(math.Ceil(left.Seconds()))},
					"%s has made the %d calls of %s that a %s has room for; the next begins %s", cmp.Or(s.who, call.Principal.Member()), w.limit, s.of, w.noun, w.ends.Format(time.RFC3339))
			}
			took.counters, took.periods = append(took.counters, c), append(took.periods, w.period)
		}
	}
	return nil
}

// refusal is why a call may not be made now.
func refusal(code plugin.Code, after time.Duration, details map[string]any, format string, args ...any) *plugin.Error {
	raw, err := json.Marshal(details)
	if err != nil {
		panic(err) // it is text and numbers
	}
	return &plugin.Error{Code: code, Message: fmt.Sprintf(format, args...), Details: raw, Retryable: true, RetryAfter: after}
}

// A window is a day or a month with its bound.
type window struct {
	name, noun string // daily, day
	period     string // as it is kept
	limit      int64
	ends       time.Time
}

// today returns the day that it is in the zone of rules.
func (q *Quotas) today(rules *Rules, now time.Time) *date {
	d := q.date.Load()
	if d == nil || d.zone != rules.Zone || now.Before(d.begins) || !now.Before(d.dayEnds) {
		d = dateOf(now, rules.Zone)
		q.date.Store(d)
	}
	return d
}

func (q *Quotas) windows(rules *Rules, b Bound, now time.Time) [2]window {
	d := q.today(rules, now)
	return [2]window{{"daily", "day", d.day, b.Day, d.dayEnds}, {"monthly", "month", d.month, b.Month, d.monthEnds}}
}

// How days and months are named: the names of earlier ones are smaller.
const (
	dayForm   = "2006-01-02"
	monthForm = "2006-01"
)

// A date is a day in a zone, worked out once for all calls of the day.
type date struct {
	zone                       *time.Location
	day, month                 string
	begins, dayEnds, monthEnds time.Time
}

func dateOf(now time.Time, zone *time.Location) *date {
	in := zone
	if in == nil {
		in = time.UTC
	}
	now = now.In(in)
	y, m, d := now.Date()
	at := func(m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, in) }
	return &date{zone, now.Format(dayForm), now.Format(monthForm), at(m, d), at(m, d+1), at(m+1, 1)}
}

// A Use is what was used of one bound.
type Use struct {
	Of     string    `json:"of"`     // all principals, all operations, a plugin, or plugin/operation
	Period string    `json:"period"` // daily, monthly, minute, concurrent
	Limit  int64     `json:"limit"`
	Used   int64     `json:"used"` // of a minute and at once: on this node
	Ends   time.Time `json:"ends,omitzero"`
}

// Uses returns what a principal of a tenant has used of each bound that holds for them. A
// count has in it what nodes have charged and not used yet, at most 1/64 of what is left.
func (q *Quotas) Uses(ctx context.Context, tenant string, who plugin.Principal) ([]Use, error) {
	uses, rules := []Use{}, q.rules(tenant)
	if rules == nil {
		return uses, nil
	}
	member := who.Member()
	scopes := rules.scopes(&plugin.Target{Manifest: &plugin.Manifest{}, Operation: &plugin.Operation{}}, &plugin.Call{Principal: who})
	for _, name := range sorted(rules.Plugins) {
		scopes = append(scopes, scope{"", subjects + ":" + member + ":" + name, "plugin:" + name, name, rules.Plugins[name]})
	}
	now := q.opts.Now()
	for _, s := range scopes {
		for _, w := range q.windows(rules, s.bound, now) {
			if w.limit == 0 {
				continue
			}
			total, err := q.opts.Counts.Total(ctx, tenant, s.subject, w.period)
			if err != nil {
				return nil, err
			}
			total -= q.held(counterKey{tenant, s.subject, w.name}, w.period)
			uses = append(uses, Use{s.of, w.name, w.limit, max(total, 0), w.ends})
		}
		if most := s.bound.Minute; most > 0 {
			left := q.limiter(most).Left(place{tenant, s.subject}, now)
			uses = append(uses, Use{Of: s.of, Period: "minute", Limit: int64(most), Used: int64(most) - int64(left)})
		}
		if most := s.bound.Concurrent; most > 0 {
			uses = append(uses, Use{Of: s.of, Period: "concurrent", Limit: int64(most), Used: q.running(tenant, s.slots)})
		}
	}
	for _, name := range sorted(rules.Providers) {
		uses = append(uses, Use{Of: "accounts of " + name, Period: "concurrent", Limit: int64(rules.Providers[name]), Used: q.running(tenant, "provider:"+name)})
	}
	return uses, nil
}

func (q *Quotas) running(tenant, slots string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(q.atOnce[place{tenant, slots}])
}
