package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
)

func TestAWarmProcessServesManyCalls(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	first, err := run(t, r, target("good", "pid"), call(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	second, err := run(t, r, target("good", "pid"), call(`{}`))
	if err != nil || string(first.Data) != string(second.Data) {
		t.Errorf("%s then %s, %v", first.Data, second.Data, err)
	}
}

// Sixteen callers on one warm plugin: nothing lost, crossed or doubled.
func TestCallersAreNotCrossed(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	const callers = 16
	total := 100_000
	if testing.Short() {
		total = 5_000
	}
	var answered atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range total / callers {
				want := fmt.Sprintf(`{"caller":%d,"n":%d,"pad":"%s"}`, caller, i, strings.Repeat("x", rand.IntN(300)))
				res, err := r.Run(t.Context(), target("broad", "echo"), call(want), nil)
				if err != nil || string(res.Data) != want {
					t.Errorf("sent %s, got %s, %v", want, res.Data, err)
					return
				}
				answered.Add(1)
			}
		})
	}
	wg.Wait()
	if got := answered.Load(); got != int64(total/callers*callers) {
		t.Errorf("%d answers", got)
	}
}

// A plugin that is killed fails exactly the calls in flight, and the next call
// finds a new one.
func TestKillingThePluginFailsTheCallsInFlight(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	for round := range 5 {
		res, err := run(t, r, target("broad", "pid"), call(`{}`))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		pid := hostPID(t, res.Data)
		const inFlight = 8
		errs, begun := make(chan error, inFlight), make(chan struct{}, inFlight)
		for range inFlight {
			go func() {
				_, err := run(t, r, target("broad", "sleep"), beginning(call(`{"ms":5000}`), begun))
				errs <- err
			}()
		}
		for range inFlight {
			<-begun
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for range inFlight {
			wantCode(t, <-errs, plugin.CodeCrashed, "killed")
		}
		if res, err := run(t, r, target("broad", "echo"), call(`1`)); err != nil || string(res.Data) != "1" {
			t.Fatalf("round %d, afterwards: %s %v", round, res.Data, err)
		}
		if alive(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func TestACrashComesWithItsLastWords(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	_, err := run(t, r, target("good", "exit"), call(`{"status":7}`))
	wantCode(t, err, plugin.CodeCrashed, "exit status 7", "these are my last words")
	_, err = run(t, r, target("good", "exit"), call(`{"status":0}`))
	wantCode(t, err, plugin.CodeCrashed, "exit status 0")
}

// A plugin that crashes on every call is put off for longer each time, and a
// call that would have to wait too long learns when to come back.
func TestRestartsBackOff(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	start := time.Now()
	var last error
	for range 12 {
		if _, last = run(t, r, target("good", "exit"), call(`{"status":1}`)); plugin.CodeOf(last) == plugin.CodeUnavailable {
			break
		}
		wantCode(t, last, plugin.CodeCrashed)
	}
	wantCode(t, last, plugin.CodeUnavailable, "in a row")
	if after := plugin.AsError(last).RetryAfter; after <= 0 || after > 30*time.Second {
		t.Errorf("try again after %s", after)
	}
	if took := time.Since(start); took < 1400*time.Millisecond {
		t.Errorf("it took only %s", took)
	}
}

func TestATimeoutIsNeverASuccess(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1, CancelGrace: time.Minute})
	pid := pidOf(t, r, "serial")
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, plugin.Errorf(plugin.CodeTimeout, "too slow"))
	defer cancel()
	_, err := r.Run(ctx, target("serial", "sleep"), call(`{"ms":5000}`), nil)
	wantCode(t, err, plugin.CodeTimeout, "too slow")
	testwait.AtMost(t, "the call", time.Since(start), time.Second)
	// It heeds the cancellation, and so serves on.
	if again := pidOf(t, r, "serial"); again != pid {
		t.Errorf("process %d was replaced by %d", pid, again)
	}
}

// A plugin that goes on working after its call was given up is replaced.
func TestAPluginDeafToCancellationIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1, CancelGrace: 100 * time.Millisecond})
	pid := pidOf(t, r, "serial")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, plugin.Errorf(plugin.CodeTimeout, "too slow"))
	defer cancel()
	_, err := r.Run(ctx, target("serial", "deaf"), call(`{"ms":60000}`), nil)
	wantCode(t, err, plugin.CodeTimeout)
	if again := pidOf(t, r, "serial"); again == pid {
		t.Error("the deaf process serves on")
	}
	if alive(pid) {
		t.Error("the deaf process lives on")
	}
}

func pidOf(t *testing.T, r *process.Runner, role string) int {
	t.Helper()
	res, err := run(t, r, target(role, "pid"), call(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	return hostPID(t, res.Data)
}

func TestASerialPluginGetsOneCallAtATime(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	start := time.Now()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := run(t, r, target("serial", "sleep"), call(`{"ms":100}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(start); took < 400*time.Millisecond {
		t.Errorf("four calls of 100 ms took %s", took)
	}
}

func TestTheEnvironmentIsNotInherited(t *testing.T) {
	t.Setenv("MORTISE_TEST_SECRET", "canary")
	r := newRunner(t, process.Options{})
	res, err := run(t, r, target("good", "environment"), call(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := json.Unmarshal(res.Data, &names); err != nil {
		t.Fatal(err)
	}
	for i := range names {
		names[i], _, _ = strings.Cut(names[i], "=")
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "GORACE" && through != nil }) // put there by the tests
	if got := strings.Join(names, " "); got != "PATH LANG TZ HOME TMPDIR" {
		t.Errorf("the plugin sees %s", got)
	}
}

func TestWhatAPluginSaysIsHeard(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	var heard []string
	c := call(`{}`)
	c.Observe = func(e plugin.Event) {
		heard = append(heard, fmt.Sprintf("%s %s %s %s", e.Kind, e.Level, e.Message, e.Data))
	}
	if _, err := run(t, r, target("good", "talk"), c); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(heard, "\n")
	for _, want := range []string{
		`log warning a record {"n":1}`,
		"log info a line \uFFFD[31mof stderr ",
		`progress   {"message":"half way","done":1,"total":2}`,
		`content   {"text":"some content"}`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from\n%s", want, got)
		}
	}
}

// Content is never dropped: a call that says more than is taken fails.
func TestContentThatIsNotTakenFailsTheCall(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	c := call(`{"n":5000}`)
	c.Observe = func(plugin.Event) { work(1) }
	_, err := run(t, r, target("good", "pour"), c)
	wantCode(t, err, plugin.CodeLimitExceeded)
	taken := 0
	c = call(`{"n":200}`)
	c.Observe = func(plugin.Event) { taken++ }
	if _, err := run(t, r, target("good", "pour"), c); err != nil || taken != 200 {
		t.Errorf("%d of 200 taken, %v", taken, err)
	}
}

// services answers with what it was asked.
type services struct{}

func (services) Serve(ctx context.Context, method string, args json.RawMessage) (json.RawMessage, error) {
	if method == "slow.answer" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if method == "no.such" {
		return nil, plugin.Errorf(plugin.CodeServiceDenied, "not granted")
	}
	return json.RawMessage(fmt.Sprintf(`{"method":%q,"args":%s}`, method, args)), nil
}

func TestThePluginIsAnswered(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	ask := func(method string) (plugin.Result, error) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), testwait.Limit, plugin.Errorf(plugin.CodeTimeout, "the limit of the test passed"))
		defer cancel()
		return r.Run(ctx, target("good", "ask"), call(fmt.Sprintf(`{"method":%q}`, method)), services{})
	}
	res, err := ask("cache.get")
	if err != nil || string(res.Data) != `{"method":"cache.get","args":{"a":1}}` {
		t.Errorf("%s, %v", res.Data, err)
	}
	_, err = ask("no.such")
	wantCode(t, err, plugin.CodePluginError, "service_denied")
	_, err = ask("nodot")
	wantCode(t, err, plugin.CodePluginError)
}

func TestTheInputIsOneLineHoweverItIsSpelled(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	res, err := run(t, r, target("good", "echo"), call("{\n  \"a\": [1,\r\n2]\n}"))
	if err != nil || string(res.Data) != `{"a":[1,2]}` {
		t.Errorf("%s, %v", res.Data, err)
	}
}
