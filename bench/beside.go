package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// besideCallers is how many make the calls that are timed.
const besideCallers = 4

// companies are who a well-behaved plugin has beside it, each called again as soon as its call ends.
var companies = []struct {
	name    string
	plugins []string
	target  target
}{
	{"floor: alone", nil, target{}},
	{"beside 16 threads that burn processor time", []string{"bench.burn"}, target{}},
	{"beside a flood of stderr and progress", []string{"bench.flood"}, target{}},
	{"beside one that takes memory at every other call until it is ended", []string{"bench.hoard"}, target{}},
	{"beside one that answers every other call with nonsense and exits", []string{"bench.crash"}, target{}},
	{"beside all of them", []string{"bench.burn", "bench.flood", "bench.hoard", "bench.crash"}, atMostRatio(2)},
}

// beside is table S3: calls of a well-behaved plugin through a whole host, alone and beside hostile ones.
func beside(ctx context.Context, l *lab) (tables []table, err error) {
	a, err := l.besideHost(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	n, turn := 7, time.Second
	if l.quick {
		n, turn = 1, 300*time.Millisecond
	}
	if _, err := besideTurn(ctx, a, turn, nil); err != nil { // caches
		return nil, err
	}
	var middle, late rounds
	for range n {
		var p50s, p99s []float64
		for _, c := range companies {
			took, err := besideTurn(ctx, a, turn, c.plugins)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			slices.Sort(took)
			p50s = append(p50s, float64(took[len(took)/2])/float64(time.Microsecond))
			p99s = append(p99s, float64(took[len(took)*99/100])/float64(time.Microsecond))
		}
		middle, late = append(middle, p50s), append(late, p99s)
	}
	title := fmt.Sprintf("S3. Warm call of the whole kernel beside hostile plugins, 1 KB echo, %d callers, unpinned", besideCallers)
	for unit, r := range map[string]rounds{"p50 us": middle, "p99 us": late} {
		t := table{Title: title, Unit: unit}
		for i, c := range companies {
			figure, ratio := r.median(i)
			goal := c.target
			if unit != "p99 us" {
				goal = target{}
			}
			t.Rows = append(t.Rows, judged(c.name, figure, ratio, goal))
		}
		tables = append(tables, t)
	}
	slices.SortFunc(tables, func(a, b table) int { return strings.Compare(a.Unit, b.Unit) })
	return tables, nil
}

// besideHost returns a host as it serves, with the plugins of the table.
func (l *lab) besideHost(ctx context.Context) (*app.App, error) {
	a, err := l.serving(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range companies[len(companies)-1].plugins {
		dir := filepath.Join(l.dir, name)
		manifest := strings.NewReplacer("name: bench.echo", "name: "+name, "[./echo]", "[./hostile, -name, "+name+"]", "no_cache: true", "no_cache: true\n    timeout: 20s").Replace(hostManifest)
		err := errors.Join(os.Mkdir(dir, 0o755), os.Link(l.program("hostile"), filepath.Join(dir, "hostile")),
			os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(manifest), 0o644))
		if err == nil {
			_, err = a.Registry.Register(ctx, dir, registry.RegisterOptions{Enable: true})
		}
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return a, nil
}

// besideTurn calls the well-behaved plugin for a turn, while each of others is called again and again, and returns how long its
// calls took.
func besideTurn(ctx context.Context, a *app.App, turn time.Duration, others []string) (took []time.Duration, err error) {
	besides, stop := context.WithCancel(ctx)
	var harm, good sync.WaitGroup
	for _, name := range others {
		harm.Go(func() {
			for besides.Err() == nil {
				request := *newCall(payload())
				request.ID, request.Operation = "", name
				_, err := a.Kernel.Call(besides, request)                               // most fail, as they are meant to
				if failed := plugin.AsError(err); err != nil && failed.RetryAfter > 0 { // a caller that does not wait is another matter
					select {
					case <-time.After(failed.RetryAfter):
					case <-besides.Done():
					}
				}
			}
		})
	}
	defer harm.Wait()
	defer stop()
	if len(others) > 0 {
		time.Sleep(turn / 5) // until they are at it
	}
	var mu sync.Mutex
	for range besideCallers {
		good.Go(func() {
			var own []time.Duration
			var failed error
			for begin, last := time.Now(), time.Now(); last.Sub(begin) < turn && failed == nil; {
				request := *newCall(payload())
				request.ID, request.Operation = "", "bench.echo"
				_, failed = a.Kernel.Call(ctx, request)
				now := time.Now()
				own, last = append(own, now.Sub(last)), now
			}
			mu.Lock()
			defer mu.Unlock()
			took, err = append(took, own...), errors.Join(err, failed)
		})
	}
	good.Wait()
	return took, err
}
