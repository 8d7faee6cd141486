package process_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

func isolated(scope plugin.Isolation) func(*plugin.Manifest) {
	return func(m *plugin.Manifest) { m.Isolation = scope }
}

func pidIn(t *testing.T, r *process.Runner, scope plugin.Isolation, change func(*plugin.Call)) string {
	t.Helper()
	c := call(`{}`)
	if change != nil {
		change(c)
	}
	res, err := run(t, r, target("good", "pid", isolated(scope)), c)
	if err != nil {
		t.Fatal(err)
	}
	return string(res.Data)
}

func TestProcessesAreSharedNoWiderThanTheirScope(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	for _, c := range []struct {
		name   string
		scope  plugin.Isolation
		a, b   func(*plugin.Call)
		shared bool
	}{
		{"one tenant", plugin.IsolationTenant, nil, nil, true},
		{"two tenants", plugin.IsolationTenant, nil, func(c *plugin.Call) { c.Tenant = "other" }, false},
		{"one call each", plugin.IsolationCall, nil, nil, false},
		{"one session", plugin.IsolationSession, session("a"), session("a"), true},
		{"two sessions", plugin.IsolationSession, session("a"), session("b"), false},
		{"no session", plugin.IsolationSession, nil, nil, false},
		{"one agent", plugin.IsolationAgent, agent("a"), agent("a"), true},
		{"two agents", plugin.IsolationAgent, agent("a"), agent("b"), false},
	} {
		a, b := pidIn(t, r, c.scope, c.a), pidIn(t, r, c.scope, c.b)
		if (a == b) != c.shared {
			t.Errorf("%s: processes %s and %s", c.name, a, b)
		}
	}
}

// beginning has a call tell when the plugin says that it has begun, as sleep, nap
// and deaf do.
func beginning(c *plugin.Call, begun chan<- struct{}) *plugin.Call {
	c.Observe = func(plugin.Event) { begun <- struct{}{} }
	return c
}

func session(id string) func(*plugin.Call) { return func(c *plugin.Call) { c.Session = id } }
func agent(id string) func(*plugin.Call)   { return func(c *plugin.Call) { c.Agent = id } }

func TestATenantsPoolGrowsToItsLimit(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 3})
	var mu sync.Mutex
	pids := map[string]bool{}
	var wg sync.WaitGroup
	for range 9 {
		wg.Go(func() {
			res, err := run(t, r, target("serial", "nap"), call(`{"ms":300}`))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			pids[string(res.Data)] = true
			mu.Unlock()
		})
	}
	wg.Wait()
	if len(pids) < 2 || len(pids) > 3 {
		t.Errorf("%d processes served", len(pids))
	}
}

func TestAnIdleProcessEnds(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{Idle: 100 * time.Millisecond, PerTenant: 1})
	pid := pidOf(t, r, "good")
	testwait.Until(t, "the idle process ends", func() bool { return !alive(pid) })
	if again := pidOf(t, r, "good"); again == pid {
		t.Error("the same process?")
	}
}

func TestAStandbyIsReadyBeforeTheNextCall(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{Standby: true})
	seen := map[string]bool{}
	for range 5 {
		pid := pidIn(t, r, plugin.IsolationCall, nil)
		if seen[pid] {
			t.Fatal("a process of scope call was used twice")
		}
		seen[pid] = true
		work(20) // so that the standby is ready before some calls
	}
}

func TestTheHostsCapEvictsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{MaxProcesses: 2})
	a := pidIn(t, r, plugin.IsolationSession, session("a"))
	b := pidIn(t, r, plugin.IsolationSession, session("b"))
	_ = pidIn(t, r, plugin.IsolationSession, session("a")) // b is now the one used least recently
	_ = pidIn(t, r, plugin.IsolationSession, session("c"))
	if again := pidIn(t, r, plugin.IsolationSession, session("a")); again != a {
		t.Errorf("a's process %s became %s", a, again)
	}
	if again := pidIn(t, r, plugin.IsolationSession, session("b")); again == b {
		t.Error("b's process was not evicted")
	}
}

func TestAFullHostSaysSo(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{MaxProcesses: 1})
	busy, begun := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		c := beginning(call(`{"ms":1000}`), begun)
		c.Session = "a"
		_, err := run(t, r, target("good", "sleep", isolated(plugin.IsolationSession)), c)
		busy <- err
	}()
	<-begun
	c := call(`{}`)
	c.Session = "b"
	_, err := run(t, r, target("good", "pid", isolated(plugin.IsolationSession)), c)
	wantCode(t, err, plugin.CodeOverloaded, "1 plugin processes")
	if err := <-busy; err != nil {
		t.Error(err)
	}
}

func TestCloseFailsWhatIsInFlightAndLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	pid := pidOf(t, r, "good")
	errs, begun := make(chan error, 4), make(chan struct{}, 4)
	for range 4 {
		go func() {
			_, err := run(t, r, target("good", "deaf"), beginning(call(`{"ms":60000}`), begun))
			errs <- err
		}()
	}
	for range 4 {
		<-begun
	}
	start := time.Now()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	testwait.AtMost(t, "closing", time.Since(start), 4*time.Second)
	for range 4 {
		wantCode(t, <-errs, plugin.CodeUnavailable)
	}
	if alive(pid) {
		t.Error("the process lives on")
	}
	_, err := run(t, r, target("good", "pid"), call(`{}`))
	wantCode(t, err, plugin.CodeUnavailable)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestACallerMayGiveUpWhileThePluginStarts(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Run(ctx, target("good", "pid"), call(`{}`), nil)
	wantCode(t, err, plugin.CodeCancelled)
	if pid := pidOf(t, r, "good"); pid == 0 {
		t.Error("no process")
	}
}
