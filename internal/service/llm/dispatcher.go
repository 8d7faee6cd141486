package llm

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Options say how models are asked. They are copied.
type Options struct {
	Models    []Model
	Embedding *EmbeddingModel // what makes vectors of texts; nil for none
	Allow     []string        // plugins that may ask: names, or beginnings that end in *
	Limits    Limits          // budgets
	PerMinute int             // queries of a tenant; 0 for no bound
	AtOnce    int             // queries under way; 16 where it is 0
	Timeout   time.Duration   // of one attempt; 5 minutes where it is 0
	Budgets   Budgets         // one in memory where it is nil

	// Record puts an exchange on record. An answer that cannot be recorded is
	// not given out. Nothing is recorded where it is nil.
	Record func(ctx context.Context, e *Exchange) error

	// Scrubber takes secrets out of what is sent. Nothing is taken out where it is nil.
	Scrubber Scrubber

	Now  func() time.Time                                 // time.Now where it is nil
	Wait func(ctx context.Context, d time.Duration) error // a timer where it is nil
}

// A Dispatcher asks models. It is safe for concurrent use, and owns nothing
// that must be closed.
type Dispatcher struct {
	opts   Options
	models []*Model
	slots  chan struct{} // one for each query under way
	pace   *pace

	adopted *atomic.Pointer[Dispatcher] // what came in its place; nil in what stays as it is
}

// New returns a dispatcher.
func New(o Options) *Dispatcher {
	d := &Dispatcher{opts: o, adopted: new(atomic.Pointer[Dispatcher])}
	for _, m := range o.Models {
		d.models = append(d.models, &m)
	}
	d.opts.Models = nil
	if d.opts.AtOnce == 0 {
		d.opts.AtOnce = 16
	}
	if d.opts.Timeout == 0 {
		d.opts.Timeout = 5 * time.Minute
	}
	if d.opts.Budgets == nil {
		d.opts.Budgets = NewBudgets()
	}
	if d.opts.Now == nil {
		d.opts.Now = time.Now
	}
	if d.opts.Wait == nil {
		d.opts.Wait = wait
	}
	d.slots = make(chan struct{}, d.opts.AtOnce)
	d.pace = newPace(o.PerMinute, d.opts.Now)
	return d
}

// Adopt has queries from now on asked as another dispatcher does. Those under way go on as
// they were begun. How many a tenant made in this minute stays known, where as many may be
// made.
func (d *Dispatcher) Adopt(other *Dispatcher) {
	if old := d.current(); old.pace.perMinute == other.pace.perMinute {
		other.pace = old.pace
	}
	d.adopted.Store(other)
}

// current returns the dispatcher as it is now.
func (d *Dispatcher) current() *Dispatcher {
	if d == nil || d.adopted == nil {
		return d
	}
	if other := d.adopted.Load(); other != nil {
		return other
	}
	return d
}

// Enabled reports whether a plugin may ask, and there is a model to answer.
func (d *Dispatcher) Enabled(name string) bool {
	d = d.current()
	return d != nil && len(d.models) > 0 && d.Allowed(name)
}

// Allowed reports whether a plugin may ask.
func (d *Dispatcher) Allowed(name string) bool {
	return slices.ContainsFunc(d.current().opts.Allow, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return open && strings.HasPrefix(name, prefix) || name == pattern
	})
}

// Reads reports whether some model reads documents of a MIME type by itself.
func (d *Dispatcher) Reads(mime string) bool {
	return slices.ContainsFunc(d.current().models, func(m *Model) bool { return m.Reads(mime) })
}

// Models returns the models there are, in the order of the configuration.
func (d *Dispatcher) Models() []Model {
	d = d.current()
	all := make([]Model, len(d.models))
	for i, m := range d.models {
		all[i] = *m
	}
	return all
}

// Only returns a dispatcher like d that asks one of its models and no other.
func (d *Dispatcher) Only(name string) (*Dispatcher, bool) {
	if d == nil {
		return nil, false
	}
	only := *d.current()
	only.adopted = nil
	only.models = filter(only.models, func(m *Model) bool { return m.Name == name })
	return &only, len(only.models) > 0
}

// Spent returns what a tenant has spent today, and what it may.
func (d *Dispatcher) Spent(ctx context.Context, tenant string) (spent, limit MicroCents, err error) {
	d = d.current()
	spent, err = d.opts.Budgets.Spent(ctx, tenant, DaySubject, Today(d.opts.Now()))
	return spent, d.opts.Limits.Day, err
}

// Ask puts a query to the model that fits. It returns once there is an answer,
// no more to be tried, or ctx has ended.
func (d *Dispatcher) Ask(ctx context.Context, by Caller, q Query) Answer {
	if d == nil {
		return Answer{Err: noModel()}
	}
	d = d.current()
	d.clean(&q)
	x := &exchange{d: d, by: by, q: &q, began: d.opts.Now(), system: q.System, prompt: grounded(q.Grounding, q.Prompt)}
	x.day = Today(x.began)
	a := x.ask(ctx)
	if err := x.record(ctx, &a); err != nil {
		a = Answer{Err: &Error{Kind: Internal, Message: "the answer could not be put on record, so it is not given", Err: err}, Path: a.Path, Attempts: a.Attempts, Cost: a.Cost}
	}
	return a
}
