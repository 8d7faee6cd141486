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
		select {}
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
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("working: %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Error("working did not end")
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

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestAWakeUpReachesAnyWorker(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		command, host := open(t, o), open(t, o)
		wake(t, command, job.Call, "before", time.Time{})
		var s seen
		working(t, host, 4, s.handle)
		eventually(t, "wake-ups sent before a worker started", func() bool { return len(s.all()) == 1 })
		start := time.Now()
		wake(t, command, job.Plan, "other process", time.Time{})
		wake(t, host, job.Call, "same process", time.Time{})
		eventually(t, "all three", func() bool { return len(s.all()) == 3 })
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("it took %s", took)
		}
		want := []string{"call acme before", "call acme same process", "plan acme other process"}
		if got := s.all(); !slices.Equal(got, want) {
			t.Errorf("handled %q, want %q", got, want)
		}
	})
}

func TestAWakeUpWaitsForItsTime(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := open(t, o)
		var s seen
		working(t, q, 1, s.handle)
		at := time.Now().Add(2 * time.Second)
		wake(t, q, job.Call, "later", at)
		eventually(t, "its time has come", func() bool { return len(s.all()) == 1 })
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
		eventually(t, "both were tried", func() bool { return len(s.all()) == 2 })
		time.Sleep(3 * time.Second) // River's first retry would come after one
		if got := s.all(); len(got) != 2 {
			t.Errorf("handled %q", got)
		}
	})
}

func TestNoMoreIsHandledAtATimeThanThereAreWorkers(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := open(t, o)
		var mu sync.Mutex
		now, most, all := 0, 0, 0
		working(t, q, 3, func(context.Context, string, string, string) error {
			mu.Lock()
			now, all = now+1, all+1
			most = max(most, now)
			mu.Unlock()
			time.Sleep(50 * time.Millisecond)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		})
		for i := range 12 {
			wake(t, q, job.Call, fmt.Sprint(i), time.Time{})
		}
		eventually(t, "all were handled", func() bool { mu.Lock(); defer mu.Unlock(); return all == 12 && now == 0 })
		if most > 3 || most < 2 {
			t.Errorf("%d at a time", most)
		}
	})
}

func TestWorkWaitsForWhatIsBeingHandled(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, o job.Options) {
		q := open(t, o)
		begun, release := make(chan struct{}), make(chan struct{})
		var s seen
		stop := working(t, q, 1, func(ctx context.Context, kind, tenant, id string) error {
			close(begun)
			<-release
			if ctx.Err() != nil {
				return s.handle(ctx, "cut off", tenant, id)
			}
			return s.handle(ctx, kind, tenant, id)
		})
		wake(t, q, job.Call, "a", time.Time{})
		<-begun
		wake(t, q, job.Call, "b", time.Time{})
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		select {
		case <-stopped:
			t.Fatal("it did not wait")
		case <-time.After(300 * time.Millisecond):
		}
		close(release)
		<-stopped
		if got := s.all(); !slices.Equal(got, []string{"call acme a"}) {
			t.Errorf("handled %q", got)
		}
		// What was not taken is for the next one.
		working(t, open(t, o), 1, s.handle)
		eventually(t, "the second was handled", func() bool { return len(s.all()) == 2 })
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
		eventually(t, "the one that is free takes it", func() bool { return slices.Contains(s.all(), "call acme shared") })
		if err := cmd.Process.Kill(); err != nil { // the one that leads the queue's upkeep
			t.Fatal(err)
		}
		wake(t, q, job.Plan, "later", time.Time{})
		wake(t, q, job.Plan, "at its time", time.Now().Add(time.Second))
		eventually(t, "the survivor gets later ones", func() bool { return len(s.all()) == 3 })
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
		eventually(t, "all eight", func() bool { return len(s.all()) == 8 })
	})
}

func TestTheQueueOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	server := pgtest.New(t)
	q := open(t, job.Options{Home: t.TempDir(), Database: server.Open(t)})
	var s seen
	stop := working(t, q, 2, s.handle)
	wake(t, q, job.Call, "before", time.Time{})
	eventually(t, "it was handled", func() bool { return len(s.all()) == 1 })
	server.Stop(t, "immediate")
	if err := q.Wake(t.Context(), job.Call, "acme", "meanwhile", time.Time{}); err == nil {
		t.Error("a wake-up was queued without a server")
	}
	server.Start(t)
	wake(t, q, job.Call, "after", time.Time{})
	eventually(t, "it goes on", func() bool { return slices.Contains(s.all(), "call acme after") })
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
		eventually(t, "the young one", func() bool { return len(s.all()) > 0 })
		time.Sleep(500 * time.Millisecond)
		if got := s.all(); !slices.Equal(got, []string{"call acme young"}) {
			t.Errorf("handled %q", got)
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

// TestOpeningIsCheap: a command that sends a wake-up must not be noticeably
// slower. The bound is loose, for busy machines; it takes some 5 ms on a quiet
// one.
func TestOpeningIsCheap(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	first := job.Open(job.Options{Home: home})
	if _, err := os.Stat(filepath.Join(home, job.File)); !os.IsNotExist(err) {
		t.Errorf("an unused queue has a file: %v", err)
	}
	wake(t, first, job.Call, "0", time.Time{})
	first.Close()
	best := time.Hour
	for i := range 5 {
		start := time.Now()
		q := job.Open(job.Options{Home: home})
		wake(t, q, job.Call, fmt.Sprint(i), time.Time{})
		q.Close()
		best = min(best, time.Since(start))
	}
	t.Logf("opening, waking and closing takes %s", best)
	if best > 100*time.Millisecond {
		t.Errorf("it takes %s", best)
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
