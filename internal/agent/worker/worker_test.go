package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/agent/worker"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/job"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A board is a sweeper of things that wait until they were done.
type board struct {
	kind string
	act  func(ctx context.Context, id string) error // what doing one is; nothing where it is nil

	mu    sync.Mutex
	waits []string
	done  []string
	asked int // how often Due was
	now   int // being done
	most  int
	broke error // what Due says
}

func (b *board) Kind() string { return b.kind }

func (b *board) Due(_ context.Context, limit int) ([]worker.Item, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	var items []worker.Item
	for _, id := range b.waits[:min(limit, len(b.waits))] {
		items = append(items, worker.Item{Kind: b.kind, Tenant: "acme", ID: id})
	}
	return items, b.broke
}

func (b *board) Do(ctx context.Context, item worker.Item) error {
	b.mu.Lock()
	b.now++
	b.most = max(b.most, b.now)
	b.mu.Unlock()
	err := errors.New("it panicked")
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.now--
		b.done = append(b.done, item.ID)
		if err == nil {
			b.waits = slices.DeleteFunc(b.waits, func(id string) bool { return id == item.ID })
		}
	}()
	if b.act == nil {
		err = nil
		return nil
	}
	err = b.act(ctx, item.ID)
	return err
}

func (b *board) put(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waits = append(b.waits, ids...)
}

// count returns how often an id was done, or how many were where it is empty.
func (b *board) count(id string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, done := range b.done {
		if id == "" || id == done {
			n++
		}
	}
	return n
}

// atOnce returns how many were done at a time, at most.
func (b *board) atOnce() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

// swept waits until the board has been asked n times more.
func (b *board) swept(t *testing.T, n int) {
	t.Helper()
	asked := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.asked
	}
	before := asked()
	testwait.Until(t, "it was swept", func() bool { return asked() >= before+n })
}

// A run is a worker that is running.
type run struct {
	queue *job.Queue
	log   *lockedBuffer
	stop  context.CancelFunc
	ended chan struct{} // closed when it has ended
	err   error         // and what it said then
}

// start runs a worker; what options leave open is quick.
func start(t *testing.T, o worker.Options) *run {
	t.Helper()
	r := &run{queue: job.Open(job.Options{Home: t.TempDir()}), log: &lockedBuffer{}, ended: make(chan struct{})}
	o.Queue, o.Log = r.queue, slog.New(slog.NewTextHandler(r.log, nil))
	if o.Recover == nil {
		o.Recover = func(context.Context) (int, error) { return 0, nil }
	}
	if o.SweepEvery == 0 {
		o.SweepEvery = 20 * time.Millisecond
	}
	o.RecoverEvery = 20 * time.Millisecond
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.ended)
		r.err = worker.Run(ctx, o)
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
		r.queue.Close()
	})
	return r
}

// end stops the worker and returns the error of its Run.
func (r *run) end(t *testing.T) error {
	t.Helper()
	r.stop()
	return r.wait(t)
}

func (r *run) wait(t *testing.T) error {
	t.Helper()
	testwait.Receive(t, "the end of the worker", r.ended)
	return r.err
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestOneSweepComesAtOnce(t *testing.T) {
	t.Parallel()
	calls, plans := &board{kind: job.Call}, &board{kind: job.Plan}
	calls.put("a", "b")
	plans.put("p")
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls, plans}, SweepEvery: time.Hour})
	testwait.Until(t, "what waited was done", func() bool { return calls.count("") == 2 && plans.count("") == 1 })
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

func TestASweepFindsWhatNoWakeUpToldOf(t *testing.T) {
	t.Parallel()
	calls := &board{kind: job.Call}
	start(t, worker.Options{Sweepers: []worker.Sweeper{calls}})
	calls.swept(t, 2)
	calls.put("late")
	testwait.Until(t, "it was done", func() bool { return calls.count("late") == 1 })
}

func TestAWakeUpDoesNotWaitForTheSweep(t *testing.T) {
	t.Parallel()
	calls, plans := &board{kind: job.Call}, &board{kind: job.Plan}
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls, plans}, SweepEvery: time.Hour})
	for _, kind := range []string{job.Plan, "unheard of", job.Call} {
		if err := r.queue.Wake(t.Context(), kind, "acme", "x", time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "both were done", func() bool { return calls.count("x") == 1 && plans.count("x") == 1 })
}

func TestNoMoreIsDoneAtATimeThanConfigured(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	calls := &board{kind: job.Call, act: func(context.Context, string) error { <-release; return nil }}
	for i := range 30 {
		calls.put(fmt.Sprint(i))
	}
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls}, Workers: 3})
	for i := range 10 { // wake-ups share the slots with the sweep
		if err := r.queue.Wake(t.Context(), job.Call, "acme", fmt.Sprint("w", i), time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, "three are being done", func() bool { return calls.atOnce() >= 3 })
	calls.swept(t, 3) // each sweep finds 27 more
	close(release)
	testwait.Until(t, "all were done", func() bool { return calls.count("") >= 40 })
	if most := calls.atOnce(); most != 3 {
		t.Errorf("%d at a time, want 3", most)
	}
}

func TestNothingIsDoneTwiceAtATime(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	busy := map[string]bool{}
	begun, release := make(chan string, 100), make(chan struct{})
	calls := &board{kind: job.Call, act: func(_ context.Context, id string) error {
		mu.Lock()
		twice := busy[id]
		busy[id] = true
		mu.Unlock()
		select {
		case begun <- id:
		default:
		}
		<-release
		mu.Lock()
		delete(busy, id)
		mu.Unlock()
		if twice {
			t.Errorf("%s twice at a time", id)
		}
		return nil
	}}
	calls.put("a", "b")
	plans := &board{kind: job.Plan}
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls, plans}, SweepEvery: time.Millisecond})
	testwait.Receive(t, "the first of two", begun)
	testwait.Receive(t, "the second of two", begun)
	for range 5 {
		if err := r.queue.Wake(t.Context(), job.Call, "acme", "a", time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.queue.Wake(t.Context(), job.Plan, "acme", "after them", time.Time{}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the wake-ups were heard", func() bool { return plans.count("after them") == 1 })
	calls.swept(t, 5)
	close(release)
	testwait.Until(t, "both were done", func() bool { return calls.count("a") > 0 && calls.count("b") > 0 })
	if err := r.end(t); err != nil {
		t.Error(err)
	}
}

// TestAWakeUpWhileItIsBeingDoneCounts: what it told of may have come too late
// for the one that is at it.
func TestAWakeUpWhileItIsBeingDoneCounts(t *testing.T) {
	t.Parallel()
	first, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	plans := &board{kind: job.Plan}
	calls := &board{kind: job.Call, act: func(context.Context, string) error {
		once.Do(func() { close(first); <-release })
		return nil
	}}
	calls.put("a")
	// With one worker the queue brings one wake-up after the other.
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls, plans}, SweepEvery: time.Hour, Workers: 1})
	testwait.Receive(t, "the first time", first)
	if err := r.queue.Wake(t.Context(), job.Call, "acme", "a", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if err := r.queue.Wake(t.Context(), job.Plan, "acme", "after it", time.Time{}); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the queue has brought both", func() bool { return plans.count("after it") == 1 })
	close(release)
	testwait.Until(t, "it was looked at again", func() bool { return calls.count("a") == 2 })
}

func TestWhatFailsLetsOthersPass(t *testing.T) {
	t.Parallel()
	calls := &board{kind: job.Call, act: func(_ context.Context, id string) error {
		switch {
		case id == "panics":
			panic("as it must not")
		case strings.HasPrefix(id, "bad"):
			return errors.New("it cannot be done")
		}
		return nil
	}}
	calls.put("panics")
	for i := range 150 { // more than a sweep asks for
		calls.put(fmt.Sprint("bad", i))
	}
	calls.put("good")
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls}})
	testwait.Until(t, "what waits behind was done", func() bool { return calls.count("good") == 1 })
	calls.swept(t, 5)
	if n := calls.count("bad7") + calls.count("panics"); n != 2 {
		t.Errorf("what failed was tried %d times", n)
	}
	if !strings.Contains(r.log.String(), "id=bad7 cause=\"it cannot be done\"") || !strings.Contains(r.log.String(), "as it must not") {
		t.Errorf("the log does not tell: %.500s", r.log)
	}
}

func TestTheDeadAreRecoveredAndTheirWorkIsDueAtOnce(t *testing.T) {
	t.Parallel()
	calls := &board{kind: job.Call}
	var dead sync.Once
	died, looked := make(chan struct{}), make(chan struct{}, 1)
	start(t, worker.Options{Sweepers: []worker.Sweeper{calls}, SweepEvery: time.Hour, Recover: func(context.Context) (n int, err error) {
		select {
		case <-died:
			dead.Do(func() { calls.put("left behind"); n = 1 })
		default:
			select {
			case looked <- struct{}{}:
			default:
			}
		}
		return n, nil
	}})
	<-looked
	close(died)
	testwait.Until(t, "what it left was done", func() bool { return calls.count("left behind") == 1 })
}

func TestADatabaseThatIsAwayIsToldOnceAndWaitedFor(t *testing.T) {
	t.Parallel()
	calls := &board{kind: job.Call, broke: errors.New("connection refused")}
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls}})
	testwait.Until(t, "it was told", func() bool { return strings.Contains(r.log.String(), "connection refused") })
	calls.swept(t, 5)
	if n := strings.Count(r.log.String(), "connection refused"); n != 1 {
		t.Errorf("told %d times", n)
	}
	calls.mu.Lock()
	calls.broke = nil
	calls.mu.Unlock()
	calls.put("a")
	testwait.Until(t, "it went on", func() bool { return calls.count("a") == 1 && strings.Contains(r.log.String(), "works again") })
}

func TestAStoreThatFailedEndsTheWork(t *testing.T) {
	t.Parallel()
	calls := &board{kind: job.Call, act: func(context.Context, string) error { return fmt.Errorf("settling: %w", store.ErrFailed) }}
	calls.put("a")
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls}})
	if err := r.wait(t); !errors.Is(err, store.ErrFailed) {
		t.Errorf("it ended with %v", err)
	}
}

func TestStoppingWaitsForWhatWasBegun(t *testing.T) {
	t.Parallel()
	begun := make(chan string, 10)
	calls := &board{kind: job.Call, act: func(ctx context.Context, id string) error {
		begun <- id
		select {
		case <-ctx.Done():
			t.Errorf("it was cut off: %v", context.Cause(ctx))
		case <-time.After(100 * time.Millisecond): // the worker has stopped by then; later is as good
		}
		return nil
	}}
	calls.put("a", "b", "c")
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls}, Workers: 1, Drain: testwait.Limit})
	<-begun
	if err := r.end(t); err != nil {
		t.Error(err)
	}
	if n := calls.count(""); n != 1 {
		t.Errorf("%d were done, want the one that was begun", n)
	}
}

func TestWhatTakesLongerThanTheDrainIsToldToEnd(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	var cause error
	calls := &board{kind: job.Call, act: func(ctx context.Context, _ string) error {
		close(begun)
		<-ctx.Done()
		cause = context.Cause(ctx)
		return cause
	}}
	calls.put("a")
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls}, Drain: 200 * time.Millisecond})
	<-begun
	begin := time.Now()
	if err := r.end(t); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took < 200*time.Millisecond {
		t.Errorf("the work was told to end after %s, before its time was over", took)
	}
	if cause == nil || !strings.Contains(cause.Error(), "stopping") {
		t.Errorf("the cause was %v", cause)
	}
}

// TestWhatDoesNotEndIsLeftBehind runs beside no other test, because it waits until this
// process has no worker.
func TestWhatDoesNotEndIsLeftBehind(t *testing.T) {
	begun, release := make(chan struct{}, 2), make(chan struct{})
	calls := &board{kind: job.Call, act: func(context.Context, string) error { begun <- struct{}{}; <-release; return nil }}
	calls.put("a")
	r := start(t, worker.Options{Sweepers: []worker.Sweeper{calls}, Drain: 100 * time.Millisecond})
	<-begun
	if err := r.queue.Wake(t.Context(), job.Call, "acme", "b", time.Time{}); err != nil {
		t.Fatal(err)
	}
	<-begun
	err := r.end(t) // before the work ends
	if err == nil || !strings.Contains(err.Error(), "2 pieces of work are left behind") {
		t.Errorf("it said %v", err)
	}
	close(release)
	testwait.Until(t, "the queue has ended too", func() bool {
		stacks := make([]byte, 4<<20)
		return !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("worker.(*pool)"))
	})
}

func TestAQueueThatCannotBeOpenedEndsTheWork(t *testing.T) {
	t.Parallel()
	q := job.Open(job.Options{Home: "/nowhere/at/all"})
	defer q.Close()
	err := worker.Run(t.Context(), worker.Options{Queue: q, Recover: func(context.Context) (int, error) { return 0, nil }})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/at/all/jobs.db") {
		t.Errorf("it said %v", err)
	}
}
