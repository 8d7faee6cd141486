package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// A lap is what a runner is asked: to call the first of the path, so many times
// at once, and have that one go on with the rest.
type lap struct {
	Path []string `json:"path"`
	Fan  int      `json:"fan"`
	Key  string   `json:"key,omitempty"` // of the calls it makes; their place is added
	Wait int      `json:"wait"`          // milliseconds at the end of the path
}

// A tally is what came of a lap and all below it.
type tally struct {
	Made  int            `json:"made"`
	Codes map[string]int `json:"codes"`
	Keys  []string       `json:"keys"` // of those that were refused
}

// runnerPlugin calls others, which may call it.
func runnerPlugin(name string, concurrency int) {
	p := mortise.New(name, "1.0.0")
	p.Concurrency = concurrency
	forth := func(c *mortise.Call, in lap) (tally, error) {
		sum := tally{Codes: map[string]int{}, Keys: []string{}}
		if len(in.Path) == 0 {
			time.Sleep(time.Duration(in.Wait) * time.Millisecond) // so that more calls of a storm are at work at a time; no test depends on it
			return sum, nil
		}
		var mu sync.Mutex
		var all sync.WaitGroup
		for n := range in.Fan {
			all.Go(func() {
				next := lap{Path: in.Path[1:], Fan: in.Fan, Wait: in.Wait}
				args := map[string]any{"operation": in.Path[0]}
				if in.Key != "" {
					next.Key = fmt.Sprintf("%s.%d", in.Key, n)
					args["key"] = next.Key
				}
				args["input"] = next
				var res struct {
					Data tally `json:"data"`
				}
				err := c.Service("operations.call", args, &res)
				mu.Lock()
				defer mu.Unlock()
				sum.Made += 1 + res.Data.Made
				for code, n := range res.Data.Codes {
					sum.Codes[code] += n
				}
				sum.Keys = append(sum.Keys, res.Data.Keys...)
				var refused *mortise.ServiceError
				if errors.As(err, &refused) {
					sum.Codes[refused.Code]++
					if next.Key != "" {
						sum.Keys = append(sum.Keys, in.Path[0]+" "+next.Key)
					}
				} else if err != nil {
					sum.Codes["lost"]++
				}
			})
		}
		all.Wait()
		return sum, nil
	}
	mortise.Tool(p, "go", "Go on.", forth, mortise.Timeout("5m"))
	mortise.Operator(p, "act", "Go on, with effects.", forth, mortise.Effects("db_write"), mortise.Timeout("5m"))
	p.Run()
}

// track opens a host with two plugins of that isolation, which may call each
// other, and an agent that has both.
func track(t *testing.T, isolation string, perTenant, concurrency int, log *slog.Logger) *app.App {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	write(t, home, "mortise.yaml", fmt.Sprintf("%ssandbox: \"off\"\nprocesses: {per_tenant: %d, max: 24}\n", allowAll, perTenant))
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range []string{"ring_a", "ring_b"} {
		dir := t.TempDir()
		write(t, dir, "manifest.yaml", fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: Runs.\nisolation: %s\nrunner: {kind: process, command: [%q, runner, %s, %q]}\nrequires: {tools: [ring_a, ring_b]}\n",
			name, isolation, self, name, fmt.Sprint(concurrency)))
		register(t, a, dir, false)
	}
	hire(t, a, "hare", agent.Settings{})
	assign(t, a, "hare", "ring_a", true)
	assign(t, a, "hare", "ring_b", true)
	return a
}

// ring is a path of n calls that goes through the operations in turn.
func ring(n int, operations ...string) (path []string) {
	for i := range n {
		path = append(path, operations[i%len(operations)])
	}
	return path
}

// run makes a lap in the scope, and returns what came of it.
func (in lap) run(ctx context.Context, a *app.App, isolation, operation, key string) (tally, error) {
	raw, _ := json.Marshal(in)
	c := plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: operation, Input: raw, Key: key, Fresh: true}
	switch isolation {
	case "session":
		c.Session = "0192aaaa-0000-7000-8000-000000000001"
	case "agent":
		c.Agent = "hare"
	}
	res, err := a.Kernel.Run(ctx, c)
	var sum tally
	if err == nil {
		err = json.Unmarshal(res.Data, &sum)
	}
	return sum, err
}

// subjects are the calls that the ledger has entries of.
func subjects(t *testing.T, a *app.App) map[string]bool {
	t.Helper()
	if err := a.Ledger.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := a.Ledger.List(t.Context(), ledger.Filter{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range all {
		if strings.HasPrefix(string(e.Kind), "call.") {
			seen[e.Subject] = true
		}
	}
	return seen
}

// Calls of plugins into themselves and in cycles end at once, in every scope, at
// every depth and with every size of a pool: each is served, or refused before
// its key is burnt; and each has an entry.
func TestCyclicCallsNeitherStarveNorBurnKeysNorVanish(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"call", "session", "agent", "tenant"} {
		for _, size := range []struct{ perTenant, concurrency int }{{1, 1}, {2, 1}, {1, 2}, {3, 1}} {
			if size.perTenant > 1 && isolation != "tenant" {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d of %d", isolation, size.perTenant, size.concurrency), func(t *testing.T) {
				t.Parallel()
				a := track(t, isolation, size.perTenant, size.concurrency, quiet)
				made := 0
				judge := func(what string, sum tally, err error) {
					t.Helper()
					if made++; err != nil {
						t.Errorf("%s: %v", what, err)
					}
					made += sum.Made
					for code := range sum.Codes {
						if code != "overloaded" && code != "limit_exceeded" {
							t.Errorf("%s: a call ended with %s: %v", what, code, sum.Codes)
						}
					}
					if isolation == "tenant" && len(sum.Codes) > 0 && strings.HasPrefix(what, "alone") {
						t.Errorf("%s: a pool has room for calls into itself: %v", what, sum.Codes)
					}
					for _, refused := range sum.Keys {
						operation, key, _ := strings.Cut(refused, " ")
						if prior, err := a.Ledger.Lookup(t.Context(), "local", operation, "k:"+key); prior != nil || err != nil {
							t.Errorf("%s: the refused call burnt its key %s: %+v %v", what, key, prior, err)
						}
					}
				}
				for _, op := range []string{"go", "act"} {
					for _, depth := range []int{1, 2, 8} {
						for _, path := range [][]string{ring(depth, "ring_a/"+op), ring(depth, "ring_b/"+op, "ring_a/"+op)} {
							what := fmt.Sprintf("alone %s %d deep", path[0], depth)
							sum, err := lap{Path: path, Fan: 1, Key: fmt.Sprint(path[0], depth)}.run(t.Context(), a, isolation, "ring_a/"+op, "")
							judge(what, sum, err)
						}
					}
				}
				var mu sync.Mutex
				var storm sync.WaitGroup
				many, laps := 12, 3
				if isolation == "call" { // where each call is a start
					many, laps = 8, 2
				}
				for i := range many { // begin at either, so that each holds what the other wants
					storm.Go(func() {
						from, to := "ring_a/go", "ring_b/go"
						if i%2 == 1 {
							from, to = to, from
						}
						sum, err := lap{Path: ring(laps, to, from), Fan: 2, Wait: 5, Key: fmt.Sprint("storm", i)}.run(t.Context(), a, isolation, from, "")
						mu.Lock()
						defer mu.Unlock()
						judge("storm", sum, err)
					})
				}
				storm.Wait()
				if entries := len(subjects(t, a)); entries != made {
					t.Errorf("%d calls were made, and %d are in the ledger", made, entries)
				}
			})
		}
	}
}

// A host that closes in the middle of a storm of cyclic calls records every call:
// those at work, those that wait, and those that it refuses because it closes.
func TestAHostThatClosesInAStormRecordsEveryCall(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"call", "session", "agent", "tenant"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			for round := range 2 {
				var log bytes.Buffer
				var lock sync.Mutex
				a := track(t, isolation, 2, 1, slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
					lock.Lock()
					defer lock.Unlock()
					return log.Write(p)
				}), nil)))
				home, codes := a.Home, map[string]int{}
				var mu sync.Mutex
				var top, begun atomic.Int64
				var storm sync.WaitGroup
				stop := make(chan struct{})
				for i := range 8 {
					storm.Go(func() {
						for n := 0; ; n++ {
							select {
							case <-stop:
								return
							default:
							}
							from, to := "ring_a/act", "ring_b/act"
							if i%2 == 1 {
								from, to = to, from
							}
							begun.Add(1)
							_, err := lap{Path: ring(3, to, from), Fan: 2, Wait: 5}.run(t.Context(), a, isolation, from, fmt.Sprintf("k%d.%d", i, n))
							if err != nil && strings.Contains(err.Error(), "the host is closed") {
								return // it is gone, and did nothing
							}
							top.Add(1)
							mu.Lock()
							codes[string(plugin.CodeOf(err))]++
							mu.Unlock()
						}
					})
				}
				testwait.Until(t, "the storm is on", func() bool {
					if round == 0 { // while processes start
						return begun.Load() >= 8
					}
					return top.Load() >= 8
				})
				if err := a.Close(); err != nil {
					t.Error(err)
				}
				close(stop)
				storm.Wait()
				lock.Lock()
				if text := log.String(); strings.Contains(text, "could not be recorded") {
					t.Errorf("round %d: entries were lost: %.600s", round, text)
				}
				lock.Unlock()
				if codes[string(plugin.CodeInternal)] > 0 {
					t.Errorf("round %d: calls ended with %v", round, codes)
				}
				roots, running := recorded(t, open(t, home))
				if int64(roots) != top.Load() {
					t.Errorf("round %d: %d calls were made, and %d are in the ledger (%v)", round, top.Load(), roots, codes)
				}
				if len(running) > 0 {
					t.Errorf("round %d: these were left without an end: %v", round, running)
				}
			}
		})
	}
}

// recorded returns how many calls the ledger has that no other call made, and
// those that began and did not end before the next host found them.
func recorded(t *testing.T, a *app.App) (roots int, lost []string) {
	t.Helper()
	all, err := a.Ledger.List(t.Context(), ledger.Filter{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range all {
		var body plugin.CallRecord
		if !strings.HasPrefix(string(e.Kind), "call.") || json.Unmarshal(e.Body, &body) != nil {
			continue
		}
		if body.Parent == "" {
			seen[e.Subject] = true
		}
		if body.Error != nil && strings.Contains(body.Error.Message, "the host ended") {
			lost = append(lost, e.Subject)
		}
	}
	return len(slices.Collect(maps.Keys(seen))), lost
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
