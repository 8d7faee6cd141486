// Package worker does what is waiting: calls that may run, plans that can go
// on, the books of dead nodes.
//
// It is for processes that stay. A wake-up (package job) says that there is something
// to do now; a sweep of the store, at the start and from time to time, finds what no
// wake-up told of. Both may name the same thing, and so may two nodes: the handler's
// own fencing prevents a second execution, not this package.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/job"
)

// An Item is something that waits.
type Item struct{ Kind, Tenant, ID string }

// A Sweeper knows what of one kind waits, and how to do it.
type Sweeper interface {
	// Kind is what wake-ups call it: job.Call, job.Plan.
	Kind() string
	// Due returns what can be done now, the longest waiting first.
	Due(ctx context.Context, limit int) ([]Item, error)
	// Do does it, or finds that there is nothing to do any more. It returns soon
	// after ctx ends, which happens only if the host cannot wait for it.
	Do(ctx context.Context, item Item) error
}

// A Sweep is a [Sweeper] made of functions.
type Sweep struct {
	Name string
	Find func(ctx context.Context, limit int) ([]Item, error)
	Take func(ctx context.Context, tenant, id string) error
}

// Kind implements [Sweeper].
func (s Sweep) Kind() string { return s.Name }

// Due implements [Sweeper].
func (s Sweep) Due(ctx context.Context, limit int) ([]Item, error) { return s.Find(ctx, limit) }

// Do implements [Sweeper].
func (s Sweep) Do(ctx context.Context, item Item) error { return s.Take(ctx, item.Tenant, item.ID) }

// Items returns the rows that are due as items of a kind.
func Items[T any](kind string, rows []T, err error, id func(*T) (tenant, id string)) ([]Item, error) {
	items := make([]Item, len(rows))
	for i := range rows {
		tenant, id := id(&rows[i])
		items[i] = Item{kind, tenant, id}
	}
	return items, err
}

// Options say what is done, and how.
type Options struct {
	Queue    *job.Queue
	Sweepers []Sweeper
	Recover  func(context.Context) (int, error) // settles what dead nodes left and returns how many there were

	Workers int           // how much of each kind is done at a time; 8 where it is 0
	Drain   time.Duration // how long what was begun may take once there is no more to be begun; none where it is 0
	Log     *slog.Logger  // of what fails; discarded where it is nil

	RecoverEvery time.Duration // 2 s where it is 0
	SweepEvery   time.Duration // 10 s where it is 0
}

const (
	batch   = 100         // how much a sweep asks for at a time
	resting = 1000        // how many failures are remembered
	woken   = 1000        // how many of a kind that were woken may wait until others are done
	rest    = time.Minute // for which a sweep leaves alone what failed
	leave   = time.Second // for what was told to end, before it is left behind
)

// errDrained is why work ends that takes longer than the host can wait.
var errDrained = errors.New("the host is stopping and cannot wait any longer")

// A pool does items, a bounded number at a time and none twice at a time. Its
// goroutines belong to [Run]: one for each item that is being done or was woken,
// one for each kind that sweeps, one that recovers, and one in which the queue works.
type pool struct {
	opts  Options
	work  context.Context // of what is being done; it outlives the order to stop
	stop  context.CancelCauseFunc
	lanes []*lane
	wg    sync.WaitGroup

	mu     sync.Mutex         // guards the three below
	doing  map[Item]bool      // what is being done here, and whether it was woken meanwhile
	tired  map[Item]time.Time // what failed, and until when a sweep leaves it alone
	failed error              // why Run ends of itself
}

// A lane is one kind of work, with a budget of its own: however much there is of one
// kind and however long it takes, the others go on.
type lane struct {
	sweeper Sweeper
	slots   chan struct{} // one for each item that is being done
	nudged  chan struct{} // asks for a sweep
	waiting atomic.Int64  // that were woken and have no slot yet
}

func newLane(s Sweeper, workers int) *lane {
	return &lane{sweeper: s, slots: make(chan struct{}, workers), nudged: make(chan struct{}, 1)}
}

func (l *lane) nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// Run works until ctx ends. Then it begins nothing more, waits for what was
// begun until the time to drain is over, tells the rest to end, and returns an
// error if something did not. It returns of itself only if the store has failed
// or the queue cannot be opened.
func Run(ctx context.Context, opts Options) error {
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	opts.Workers = cmp.Or(max(opts.Workers, 0), 8)
	opts.RecoverEvery = cmp.Or(max(opts.RecoverEvery, 0), 2*time.Second)
	opts.SweepEvery = cmp.Or(max(opts.SweepEvery, 0), 10*time.Second)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	p := &pool{opts: opts, work: work, stop: stop, doing: map[Item]bool{}, tired: map[Item]time.Time{}}
	for _, s := range opts.Sweepers {
		l := newLane(s, opts.Workers)
		p.lanes = append(p.lanes, l)
		p.wg.Go(func() { p.sweep(ctx, l) })
	}
	p.wg.Go(func() { p.recover(ctx) })
	p.wg.Go(func() { p.listen(ctx) })

	<-ctx.Done()
	ended := make(chan struct{})
	go func() {
		p.wg.Wait()
		close(ended)
	}()
	if !within(ended, opts.Drain) {
		opts.Log.Warn("what is still being done is told to end", "items", p.busy(), "drain", opts.Drain)
		end(errDrained)
		if !within(ended, leave) {
			return fmt.Errorf("%d pieces of work are left behind: %w", p.busy(), errDrained)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// within reports whether ended is closed in time.
func within(ended <-chan struct{}, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}

// fail ends Run with an error.
func (p *pool) fail(err error) {
	p.mu.Lock()
	if p.failed == nil {
		p.failed = err
	}
	p.mu.Unlock()
	p.stop(err)
}

// listen does what wake-ups name. It waits for none of it: those of one kind would
// keep the others from being heard.
func (p *pool) listen(ctx context.Context) {
	err := p.opts.Queue.Work(ctx, p.opts.Workers, func(_ context.Context, kind, tenant, id string) error {
		for _, l := range p.lanes {
			if l.sweeper.Kind() == kind {
				p.wake(ctx, l, Item{kind, tenant, id})
				return nil
			}
		}
		return fmt.Errorf("this host has no handler for a %s: is a newer host using this database?", kind)
	})
	if err != nil {
		p.fail(err)
	}
}

// wake does an item as soon as its kind has a slot. Where too many wait for one, the
// sweep finds it.
func (p *pool) wake(ctx context.Context, l *lane, item Item) {
	if l.waiting.Add(1) > woken {
		l.waiting.Add(-1)
		l.nudge()
		return
	}
	p.wg.Go(func() { p.begin(ctx, l, item, nil) })
}

// begin does an item once there is a slot. An item that is being done already is not
// begun; if it was woken, it is looked at once more. Where patience ends before there
// is a slot it reports false: a sweep looks again then. It is nil for what was woken.
func (p *pool) begin(ctx context.Context, l *lane, item Item, patience <-chan time.Time) bool {
	woken := patience == nil
	if woken {
		defer l.waiting.Add(-1)
	}
	p.mu.Lock()
	if _, busy := p.doing[item]; busy {
		p.doing[item] = p.doing[item] || woken
		p.mu.Unlock()
		return true
	}
	p.doing[item] = false
	p.mu.Unlock()
	got := false
	select {
	case l.slots <- struct{}{}:
		got = true
	case <-ctx.Done():
	case <-patience:
	}
	if !got || ctx.Err() != nil { // with the slot, if it got one: nothing more is begun
		p.mu.Lock()
		again := p.doing[item]
		delete(p.doing, item)
		p.mu.Unlock()
		if again && ctx.Err() == nil { // it was woken while the sweep waited
			p.wake(ctx, l, item)
		}
		return false
	}
	p.wg.Go(func() {
		for p.ended(item, p.do(l.sweeper, item)) && ctx.Err() == nil {
		}
		<-l.slots
	})
	return true
}

// do does an item.
func (p *pool) do(s Sweeper, item Item) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("it panicked: %v\n%s", fault, debug.Stack())
		}
	}()
	return s.Do(p.work, item)
}

// ended notes how an item ended, and reports whether it was woken meanwhile. One
// that failed rests, so that sweeps come to what waits behind it.
func (p *pool) ended(item Item, err error) (again bool) {
	p.mu.Lock()
	if again = p.doing[item]; again {
		p.doing[item] = false
	} else {
		delete(p.doing, item)
	}
	delete(p.tired, item)
	if err != nil && len(p.tired) < resting {
		p.tired[item] = time.Now().Add(rest)
	}
	p.mu.Unlock()
	if err != nil {
		p.opts.Log.Warn("what was due could not be done", "kind", item.Kind, "tenant", item.Tenant, "id", item.ID, "cause", err.Error())
	}
	if fatal(err) {
		p.fail(err)
	}
	return again
}

// busy returns how many items are being done.
func (p *pool) busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.doing)
}

// fatal reports whether an error says that nothing more can be done.
func fatal(err error) bool { return errors.Is(err, store.ErrFailed) || errors.Is(err, store.ErrClosed) }
