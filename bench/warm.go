package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const callers = 16

// warm is table A: a call to a plugin that runs already.
func warm(ctx context.Context, l *lab) ([]table, error) {
	one, err := onePinned(ctx, l, "role-pinned")
	if err != nil {
		return nil, err
	}
	many, err := manyCallers(ctx, l)
	return []table{one, many}, err
}

// length is how many rounds there are, and how long each contestant's turn is.
func (l *lab) length() (n int, turn time.Duration) {
	if l.quick {
		return 3, 60 * time.Millisecond
	}
	return 15, 300 * time.Millisecond
}

// onePinned has the latency of one caller measured by a copy of this program,
// in one of its roles, that is bound, with all it starts, to one core.
func onePinned(ctx context.Context, l *lab, role string) (t table, err error) {
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	cmd := exec.CommandContext(ctx, self, role, l.dir, fmt.Sprint(l.quick))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return t, err
	}
	if err := pinned(cmd.Start); err != nil {
		return t, err
	}
	decoded := json.NewDecoder(out).Decode(&t)
	if err := cmd.Wait(); err != nil {
		return t, err
	}
	return t, decoded
}

// pinnedRounds is that copy. It writes the table to its standard output.
func pinnedRounds(args []string) error {
	ctx := context.Background()
	l, err := openLab(ctx, args[0], args[1] == "true")
	if err != nil {
		return err
	}
	if n := runtime.GOMAXPROCS(0); n != 1 {
		return fmt.Errorf("pinned to one core and yet GOMAXPROCS is %d", n)
	}
	all, closeAll, err := openAll(ctx, l, warmOpeners)
	defer closeAll()
	if err != nil {
		return err
	}
	n, turn := l.length()
	var r rounds
	for range n {
		var round []float64
		for _, c := range all {
			took, err := latencies(ctx, c, turn)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			round = append(round, p50(took, time.Microsecond))
		}
		r = append(r, round)
	}
	t := table{Title: "A1. Warm call, 1 KB echo, one caller, host and plugin pinned to one core", Unit: "p50 us"}
	for i, c := range all {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.pinned))
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// latencies calls c for as long as its turn is.
func latencies(ctx context.Context, c *contestant, turn time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	runtime.GC() // of what the one before left
	took := make([]time.Duration, 0, 100_000)
	begin := time.Now()
	for last := begin; last.Sub(begin) < turn; {
		if err := c.call(ctx); err != nil {
			return nil, err
		}
		now := time.Now()
		took = append(took, now.Sub(last))
		last = now
	}
	return took, nil
}

// manyCallers measures what 16 callers get done, on all cores.
func manyCallers(ctx context.Context, l *lab) (table, error) {
	t := table{Title: fmt.Sprintf("A2. Warm call, 1 KB echo, %d callers, unpinned (x floor 2)", callers), Unit: "calls/s"}
	all, closeAll, err := openAll(ctx, l, warmOpeners)
	defer closeAll()
	if err != nil {
		return t, err
	}
	var able []*contestant
	for _, c := range all {
		if !c.single {
			able = append(able, c)
		}
	}
	n, turn := l.length()
	var r rounds
	for range n {
		var round []float64
		for _, c := range able {
			rate, err := throughput(ctx, callers, turn, c.call)
			if err != nil {
				return t, fmt.Errorf("%s: %w", c.name, err)
			}
			round = append(round, rate)
		}
		r = append(r, round)
	}
	for i, c := range able {
		figure, ratio := r.median(i)
		t.Rows = append(t.Rows, judged(c.name, figure, ratio, c.shared))
	}
	return t, nil
}

// throughput returns the calls a second that so many callers make.
func throughput(ctx context.Context, callers int, turn time.Duration, call func(context.Context) error) (float64, error) {
	var (
		over  atomic.Bool
		calls atomic.Int64
		mu    sync.Mutex
		first error
		all   sync.WaitGroup
	)
	begin := time.Now()
	for range callers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			n := int64(0)
			for !over.Load() {
				if err := call(ctx); err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
					return
				}
				n++
			}
			calls.Add(n)
		})
	}
	time.Sleep(turn)
	over.Store(true)
	all.Wait()
	return float64(calls.Load()) / time.Since(begin).Seconds(), first
}
