package job_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store/job"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// TestMain makes this binary a second process where the environment asks for
// one (see [worker]).
func TestMain(m *testing.M) {
	if os.Getenv("MORTISE_TEST_WORKER") != "" {
		worker()
		return
	}
	goleak.VerifyTestMain(m)
}

// worker works on a queue and never finishes what it takes.
func worker() {
	q := job.Open(job.Options{Home: os.Getenv("MORTISE_TEST_WORKER"), Database: os.Getenv("MORTISE_TEST_DATABASE")})
	err := q.Work(context.Background(), 1, func(_ context.Context, kind, tenant, id string) error {
		fmt.Println(kind, tenant, id)
		testwait.Block()
		return nil
	})
	fmt.Println(err)
}

// databases runs a test on both kinds of database.
func databases(t *testing.T, test func(t *testing.T, o job.Options)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, job.Options{Home: t.TempDir()})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, job.Options{Home: t.TempDir(), Database: pgtest.Open(t)})
	})
}

// open opens a queue, as one of any number of processes would.
func open(t *testing.T, o job.Options) *job.Queue {
	t.Helper()
	q := job.Open(o)
	t.Cleanup(func() { q.Close() })
	return q
}

// seen collects what was handled.
type seen struct {
	mu  sync.Mutex
	got []string
}

func (s *seen) handle(_ context.Context, kind, tenant, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, kind+" "+tenant+" "+id)
	return nil
}

func (s *seen) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.got))
}

// working works on a queue until the returned function is called, which returns
// once that has ended.
func working(t *testing.T, q *job.Queue, workers int, handle job.Handle) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Work(ctx, workers, handle) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := testwait.Receive(t, "the end of Work", ended); err != nil {
			t.Errorf("Work ended with %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func wake(t *testing.T, q *job.Queue, kind, id string, at time.Time) {
	t.Helper()
	if err := q.Wake(t.Context(), kind, "acme", id, at); err != nil {
		t.Fatal(err)
	}
}

func TestAWakeUpReachesAnyWorker(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		command, host := open(t, o), open(t, o)
		wake(t, command, job.Call, "before", time.Time{})
		var s seen
		working(t, host, 4, s.handle)
		testwait.Until(t, "the wake-up that was sent before a worker started is handled", func() bool { return len(s.all()) == 1 })
		wake(t, command, job.Plan, "other process", time.Time{})
		wake(t, host, job.Call, "same process", time.Time{})
		testwait.Until(t, "all three wake-ups are handled", func() bool { return len(s.all()) == 3 })
		want := []string{"call acme before", "call acme same process", "plan acme other process"}
		if got := s.all(); !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
		t.Run("soon", func(t *testing.T) {
			if testing.Short() {
				t.Skip("make test-long: the time that a wake-up from another process takes")
			}
			start := time.Now()
			wake(t, command, job.Plan, "soon", time.Time{})
			testwait.Until(t, "the wake-up is handled", func() bool { return len(s.all()) == 4 })
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("the wake-up took %s, want at most 2s", took)
			}
		})
	})
}

func TestAWakeUpWaitsForItsTime(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := open(t, o)
		var s seen
		working(t, q, 1, s.handle)
		at := time.Now().Add(2 * time.Second).Truncate(time.Millisecond) // SQLite keeps no more
		wake(t, q, job.Call, "later", at)
		testwait.Until(t, "the wake-up is handled", func() bool { return len(s.all()) == 1 })
		if early := time.Until(at); early > 0 {
			t.Errorf("it came %s too early", early)
		}
	})
}

func TestAFailedWakeUpIsForgotten(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := open(t, o)
		var s seen
		working(t, q, 1, func(ctx context.Context, kind, tenant, id string) error {
			_ = s.handle(ctx, kind, tenant, id)
			if id == "panics" {
				panic("as it must not")
			}
			return errors.New("it does not work")
		})
		wake(t, q, job.Call, "fails", time.Time{})
		wake(t, q, job.Call, "panics", time.Time{})
		testwait.Until(t, "both wake-ups are handled", func() bool { return len(s.all()) == 2 })
		// The queue hands wake-ups to its only worker in the order of their times, and River's first
		// retry is due after one second. A retry would come before this wake-up.
		wake(t, q, job.Call, "the last", time.Now().Add(2*time.Second))
		testwait.Until(t, "the last wake-up is handled", func() bool { return slices.Contains(s.all(), "call acme the last") })
		if got, want := s.all(), []string{"call acme fails", "call acme panics", "call acme the last"}; !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
	})
}

func TestNoMoreIsHandledAtATimeThanThereAreWorkers(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := open(t, o)
		var mu sync.Mutex
		now, most, all := 0, 0, 0
		finish := make(chan struct{})
		working(t, q, 3, func(context.Context, string, string, string) error {
			mu.Lock()
			now, all = now+1, all+1
			most = max(most, now)
			mu.Unlock()
			<-finish
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		})
		for i := range 12 {
			wake(t, q, job.Call, fmt.Sprint(i), time.Time{})
		}
		handled := func(n, left int) func() bool {
			return func() bool { mu.Lock(); defer mu.Unlock(); return all == n && now == left }
		}
		testwait.Until(t, "three wake-ups are being handled", func() bool { mu.Lock(); defer mu.Unlock(); return now >= 3 })
		for i := range 12 {
			finish <- struct{}{}
			testwait.Until(t, "every worker that is free has the next wake-up", handled(min(12, 4+i), min(3, 11-i)))
		}
		if most != 3 {
			t.Errorf("%d wake-ups were handled at a time, want 3", most)
		}
	})
}

func TestWorkWaitsForWhatIsBeingHandled(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := open(t, o)
		// work hands wake-ups to a single worker, which keeps the first until release is closed.
		work := func(ctx context.Context, q *job.Queue, s *seen) (begun, release chan struct{}, ended chan error) {
			begun, release, ended = make(chan struct{}), make(chan struct{}), make(chan error, 1)
			first := sync.OnceFunc(func() { close(begun) })
			go func() {
				ended <- q.Work(ctx, 1, func(ctx context.Context, kind, tenant, id string) error {
					first()
					<-release
					if ctx.Err() != nil {
						kind = "cut off"
					}
					return s.handle(ctx, kind, tenant, id)
				})
			}()
			return begun, release, ended
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var here, there seen
		begun, release, ended := work(ctx, q, &here)
		wake(t, q, job.Call, "a", time.Time{})
		testwait.Receive(t, "the first wake-up", begun)
		wake(t, q, job.Call, "b", time.Time{})
		wake(t, q, job.Call, "c", time.Time{})
		cancel()

		// Another process takes the next wake-up meanwhile, and leaves the third.
		other, stop := context.WithCancel(t.Context())
		defer stop()
		begunThere, releaseThere, endedThere := work(other, open(t, o), &there)
		testwait.Receive(t, "the second wake-up, in the other process", begunThere)
		select {
		case err := <-ended:
			t.Fatalf("Work did not wait for the wake-up that is being handled: it returned %v", err)
		default:
		}
		close(release)
		if err := testwait.Receive(t, "the end of Work", ended); err != nil {
			t.Errorf("Work ended with %v", err)
		}
		if got := here.all(); !slices.Equal(got, []string{"call acme a"}) {
			t.Errorf("handled %q, want only the first wake-up", got)
		}
		// Wake-ups that were not taken are for the next process.
		close(releaseThere)
		testwait.Until(t, "the other wake-ups are handled", func() bool { return len(there.all()) == 2 })
		stop()
		if err := testwait.Receive(t, "the end of Work in the other process", endedThere); err != nil {
			t.Errorf("Work ended with %v", err)
		}
		if got := there.all(); !slices.Equal(got, []string{"call acme b", "call acme c"}) {
			t.Errorf("the other process handled %q, want the second and the third wake-up", got)
		}
	})
}

func TestAfterAKillTheOtherGetsTheWakeUps(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := open(t, o)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "MORTISE_TEST_WORKER="+o.Home, "MORTISE_TEST_DATABASE="+o.Database)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		wake(t, q, job.Call, "taken", time.Time{})
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil || strings.TrimSpace(line) != "call acme taken" {
			t.Fatalf("the other process said %q, %v", line, err)
		}
		var s seen
		working(t, q, 1, s.handle)
		wake(t, q, job.Call, "shared", time.Time{})
		testwait.Until(t, "the process that is free takes the wake-up", func() bool { return slices.Contains(s.all(), "call acme shared") })
		if err := cmd.Process.Kill(); err != nil { // the one that leads the queue's upkeep
			t.Fatal(err)
		}
		wake(t, q, job.Plan, "later", time.Time{})
		wake(t, q, job.Plan, "at its time", time.Now().Add(time.Second))
		testwait.Until(t, "the survivor gets later wake-ups", func() bool { return len(s.all()) == 3 })
		if slices.Contains(s.all(), "call acme taken") {
			t.Error("what the dead one had taken came again: that is for the sweep, which looks at what became of it")
		}
	})
}

func TestManyOpenTheQueueAtOnce(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				q := job.Open(o)
				defer q.Close()
				if err := q.Wake(t.Context(), job.Call, "acme", fmt.Sprint(i), time.Time{}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var s seen
		working(t, open(t, o), 2, s.handle)
		testwait.Until(t, "all eight wake-ups are handled", func() bool { return len(s.all()) == 8 })
	})
}

func TestTheQueueOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	q := open(t, job.Options{Home: t.TempDir(), Database: server.Open(t)})
	var s seen
	stop := working(t, q, 2, s.handle)
	wake(t, q, job.Call, "before", time.Time{})
	testwait.Until(t, "the wake-up is handled", func() bool { return len(s.all()) == 1 })
	server.Stop(t, "immediate")
	if err := q.Wake(t.Context(), job.Call, "acme", "meanwhile", time.Time{}); err == nil {
		t.Error("a wake-up was queued without a server")
	}
	server.Start(t)
	wake(t, q, job.Call, "after", time.Time{})
	testwait.Until(t, "the queue hands out wake-ups again", func() bool { return slices.Contains(s.all(), "call acme after") })
	server.Stop(t, "immediate")
	stop() // without a server too
}

// TestUnclaimedJobsExpire: commands alone, without a host that stays,
// must not fill the disk.
func TestUnclaimedJobsExpire(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := job.Open(o)
		wake(t, q, job.Call, "old", time.Now().Add(-25*time.Hour))
		wake(t, q, job.Call, "young", time.Now().Add(-23*time.Hour))
		q.Close()
		if err := q.Wake(t.Context(), job.Call, "acme", "x", time.Time{}); !errors.Is(err, job.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		var s seen
		working(t, open(t, o), 1, s.handle)
		testwait.Until(t, "the young wake-up is handled", func() bool { return slices.Contains(s.all(), "call acme young") })
		// The queue hands wake-ups to its only worker in the order of their times.
		if got := s.all(); !slices.Equal(got, []string{"call acme young"}) {
			t.Errorf("handled %q, want only the young wake-up", got)
		}
	})
}

func TestOnSQLiteAWakeUpLeavesOneRowAndNoOther(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	q := open(t, job.Options{Home: home})
	for i := range 3 {
		wake(t, q, job.Call, fmt.Sprint(i), time.Time{})
	}
	db, err := sql.Open("sqlite", filepath.Join(home, job.File))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var jobs, notes int
	if err := db.QueryRow("SELECT (SELECT count(*) FROM river_job), (SELECT count(*) FROM river_notification)").Scan(&jobs, &notes); err != nil {
		t.Fatal(err)
	}
	if jobs != 3 || notes != 0 {
		t.Errorf("%d jobs and %d notifications", jobs, notes)
	}
}

func TestAnUnusedQueueHasNoFile(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	q := job.Open(job.Options{Home: home})
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(home, job.File)); !os.IsNotExist(err) {
		t.Errorf("the state of the file of an unused queue is %v, want that it does not exist", err)
	}
}

// TestOpeningIsCheap: a command that sends a wake-up must not be noticeably
// slower. Opening takes some 5 ms on a quiet machine.
func TestOpeningIsCheap(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long: the time that a queue takes to open")
	}
	home := t.TempDir()
	best := time.Hour
	for i := range 6 { // the first makes the file
		start := time.Now()
		q := job.Open(job.Options{Home: home})
		wake(t, q, job.Call, fmt.Sprint(i), time.Time{})
		q.Close()
		best = min(best, time.Since(start))
	}
	t.Logf("opening, waking and closing takes %s", best)
	if best > 100*time.Millisecond {
		t.Errorf("opening, waking and closing takes %s, want at most 100ms", best)
	}
}

func TestAPasswordStaysOutOfErrors(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://mortise:hunter2@127.0.0.1:1/none?connect_timeout=1",
		"postgres://mortise:hunter2@127.0.0.1:nonsense/none",
		"postgres://127.0.0.1:1/none?password=hunter2&connect_timeout=1",
	} {
		q := open(t, job.Options{Home: t.TempDir(), Database: url})
		err := q.Wake(t.Context(), job.Call, "acme", "1", time.Time{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
	}
}
