package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A bundle is a kernel with a real store, ledger, policy and broker, whose
// registry and runner are written here: a test says what the plugin does.
type bundle struct {
	*kernel.Kernel
	store   *sqlite.Store
	ledger  *ledger.Ledger
	broker  *service.Broker
	targets map[string]*plugin.Target
	do      func(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error)
	runs    atomic.Int64

	preview   func(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (json.RawMessage, error)
	reconcile func(ctx context.Context, t *plugin.Target, call *plugin.Call, effects []protocol.Effect, s plugin.Services) (protocol.Reconciled, error)
}

func (b *bundle) Resolve(_ context.Context, ref string) (*plugin.Target, error) {
	ref, _, _ = strings.Cut(ref, "@")
	if t := b.targets[ref]; t != nil {
		return t, nil
	}
	return nil, plugin.Errorf(plugin.CodeNotFound, "no plugin %s", ref)
}

func (b *bundle) ResolveFor(ctx context.Context, ref string, sees func(*plugin.Manifest) ([]*plugin.Operation, bool)) (*plugin.Target, error) {
	return seen(ctx, b, ref, sees)
}

// seen resolves as a registry does for who sees only part of it.
func seen(ctx context.Context, r interface {
	Resolve(ctx context.Context, ref string) (*plugin.Target, error)
}, ref string, sees func(*plugin.Manifest) ([]*plugin.Operation, bool)) (*plugin.Target, error) {
	t, err := r.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if operations, whole := sees(t.Manifest); !whole && !slices.Contains(operations, t.Operation) {
		return nil, plugin.Errorf(plugin.CodeNotFound, "no plugin %s", ref)
	}
	return t, nil
}

func (b *bundle) Run(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
	b.runs.Add(1)
	return b.do(ctx, t, call, s)
}

func (b *bundle) Preview(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (json.RawMessage, error) {
	return b.preview(ctx, t, call, s)
}

func (b *bundle) Reconcile(ctx context.Context, t *plugin.Target, call *plugin.Call, effects []protocol.Effect, s plugin.Services) (protocol.Reconciled, error) {
	return b.reconcile(ctx, t, call, effects, s)
}

func (b *bundle) Isolation(*plugin.Target) string { return "none" }

func newBundle(t testing.TB, rules []policy.Rule, targets ...*plugin.Target) *bundle {
	t.Helper()
	return newBundleOn(t, func(st store.Store) store.Store { return st }, rules, targets...)
}

// newBundleOn is newBundle with what the ledger is kept in.
func newBundleOn(t testing.TB, on func(store.Store) store.Store, rules []policy.Rule, targets ...*plugin.Target) *bundle {
	t.Helper()
	b := &bundle{targets: map[string]*plugin.Target{}}
	for _, target := range targets {
		b.targets[target.Name()] = target
	}
	b.do = func(_ context.Context, _ *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.Succeeded, Data: call.Input}, nil
	}
	var err error
	if b.store, err = sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	if b.ledger, err = ledger.Open(t.Context(), on(b.store), ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.ledger.Close(), b.store.Close()); err != nil {
			t.Error(err)
		}
	})
	list, err := policy.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	b.broker = service.New()
	t.Cleanup(func() { _ = b.broker.Close() })
	b.Kernel = kernel.New(kernel.Options{Registry: b, Policy: list, Ledger: b.ledger, Runner: b, Services: b.broker})
	b.broker.Call = b.Call
	return b
}

func target(t testing.TB, name, operation string, change ...func(*plugin.Target)) *plugin.Target {
	t.Helper()
	in, err := schema.Compile([]byte(`{"type":"object","properties":{"n":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	op := &plugin.Operation{Name: operation, Kind: plugin.Tool, Timeout: time.Minute}
	target := &plugin.Target{
		Manifest:  &plugin.Manifest{Name: name, Version: "1.2.3", Operations: []*plugin.Operation{op}},
		Operation: op, Package: plugin.Package{Digest: "sha256:" + name}, Input: in, Output: schema.Any,
	}
	for _, f := range change {
		f(target)
	}
	return target
}

func operator(effects ...string) func(*plugin.Target) {
	return func(t *plugin.Target) { t.Operation.Kind, t.Operation.Effects = plugin.Operator, effects }
}

func asking(operation, input string) plugin.Call {
	return plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "ann"}, Asker: "os:1", Origin: plugin.OriginCLI,
		Operation: operation, Input: json.RawMessage(input),
	}
}

// records returns the entries about calls, oldest first, as "kind code".
func (b *bundle) records(t *testing.T) (lines []string, recs []plugin.CallRecord) {
	t.Helper()
	entries, err := b.ledger.List(t.Context(), ledger.Filter{Kind: "call."})
	if err != nil {
		t.Fatal(err)
	}
	for i := len(entries) - 1; i >= 0; i-- {
		var rec plugin.CallRecord
		if err := json.Unmarshal(entries[i].Body, &rec); err != nil {
			t.Fatal(err)
		}
		line := string(entries[i].Kind)
		if rec.Error != nil {
			line += " " + string(rec.Error.Code)
		}
		lines, recs = append(lines, line), append(recs, rec)
	}
	return lines, recs
}

func (b *bundle) want(t *testing.T, lines ...string) {
	t.Helper()
	if got, _ := b.records(t); strings.Join(got, "; ") != strings.Join(lines, "; ") {
		t.Errorf("the ledger has %q, want %q", got, lines)
	}
}

func wantCode(t *testing.T, err error, code plugin.Code) {
	t.Helper()
	if got := plugin.CodeOf(err); got != code {
		t.Fatalf("got %q (%v), want %q", got, err, code)
	}
}

func TestACallLeavesOneEntryWithAllThatTheContractAsks(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "text.count", "words"))
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{
			Status: plugin.Succeeded, Data: json.RawMessage(`{"words":2}`), Metrics: plugin.Metrics{"tokens_in": 3.0},
			Nondeterminism: &plugin.Nondeterminism{Is: true, Reasons: []string{"llm_sampling"}, Stability: "low"},
		}, nil
	}
	call := asking("text.count/words", `{"n":1}`)
	call.Trace = plugin.Trace{Correlation: "corr-1", Workflow: "w", Step: "s3"}
	res, err := b.Call(t.Context(), call)
	if err != nil || string(res.Data) != `{"words":2}` || res.Correlation != "corr-1" || res.SchemaVersion == "" || res.Operation != "text.count/words" {
		t.Fatalf("%+v, %v", res, err)
	}
	b.want(t, "call.succeeded")
	_, recs := b.records(t)
	rec := recs[0]
	if rec.Plugin != "text.count" || rec.Version != "1.2.3" || rec.PackageDigest != "sha256:text.count" || rec.CallID != res.CallID ||
		!strings.HasPrefix(rec.InputHash, "sha256:") || !strings.HasPrefix(rec.ResultHash, "sha256:") || rec.InputHash == rec.ResultHash ||
		rec.Metrics["tokens_in"] != 3.0 || rec.Metrics["latency_ms"] == nil || rec.Nondeterminism == nil || !rec.Nondeterminism.Is || rec.Nondeterminism.Stability != "low" ||
		rec.Correlation != "corr-1" || rec.Workflow != "w" || rec.Step != "s3" || rec.Principal != "ann" || rec.Origin != plugin.OriginCLI ||
		rec.Decision == nil || rec.Decision.Verdict != plugin.Allow || rec.Isolation != "none" || rec.SchemaVersion == "" || rec.Status != plugin.Succeeded {
		t.Errorf("%+v", rec)
	}
}

// Each stage refuses in its own words, runs nothing, and leaves one entry.
func TestEveryStageRefusesWithItsOwnCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*plugin.Call)
		code   plugin.Code
	}{
		{"no principal", func(c *plugin.Call) { c.Principal.ID = "" }, plugin.CodeUnauthenticated},
		{"no tenant", func(c *plugin.Call) { c.Tenant = "" }, plugin.CodeUnauthenticated},
		{"nothing of that name", func(c *plugin.Call) { c.Operation = "text.none" }, plugin.CodeNotFound},
		{"no permission", func(c *plugin.Call) { c.Operation = "mail/draft" }, plugin.CodeScopeDenied},
		{"not JSON", func(c *plugin.Call) { c.Input = json.RawMessage(`{"n":`) }, plugin.CodeInvalidInput},
		{"two values", func(c *plugin.Call) { c.Input = json.RawMessage(`{} {}`) }, plugin.CodeInvalidInput},
		{"duplicate names", func(c *plugin.Call) { c.Input = json.RawMessage(`{"n":1,"n":2}`) }, plugin.CodeInvalidInput},
		{"too deep", func(c *plugin.Call) {
			c.Input = json.RawMessage(`{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`)
		}, plugin.CodeInvalidInput},
		{"against the schema", func(c *plugin.Call) { c.Input = json.RawMessage(`{"n":"one"}`) }, plugin.CodeInvalidInput},
		{"too large", func(c *plugin.Call) { c.Input = json.RawMessage(`"` + strings.Repeat("a", 5<<20) + `"`) }, plugin.CodeInputTooLarge},
		{"a strange key", func(c *plugin.Call) { c.Key = "a\nb" }, plugin.CodeInvalidInput},
		{"nested too deep", func(c *plugin.Call) { c.Depth = 9 }, plugin.CodeLimitExceeded},
		{"no rule", func(c *plugin.Call) { c.Operation = "mail/send" }, plugin.CodePolicyDenied},
		{"an integer beyond 53 bits", func(c *plugin.Call) {
			c.Operation, c.Input = "mail/pay", json.RawMessage(`{"n":9007199254740993}`)
		}, plugin.CodeInvalidInput},
	} {
		b := newBundle(t, append(policy.Default, policy.Rule{Effects: []string{"payment"}, Operations: []string{"mail/pay"}}),
			target(t, "text.count", "words"), target(t, "mail", "send", operator("gmail_send")), target(t, "mail", "pay", operator("payment")),
			target(t, "mail", "draft", func(t *plugin.Target) { t.Operation.Permissions = []string{"email:draft"} }))
		call := asking("text.count/words", `{"n":1}`)
		c.change(&call)
		res, err := b.Call(t.Context(), call)
		heard := c.code
		if heard == plugin.CodePolicyDenied { // she may not even know of it
			heard = plugin.CodeNotFound
		}
		if plugin.CodeOf(err) != heard || len(res.Data) > 0 || b.runs.Load() != 0 {
			t.Errorf("%s: %v, %s, %d runs", c.name, err, res.Data, b.runs.Load())
		}
		b.want(t, "call.refused "+string(c.code))
	}
}

func TestAPluginThatBreaksItsPromiseFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		res  plugin.Result
		err  error
		code plugin.Code
	}{
		{"against its schema", plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{"words":"two"}`)}, nil, plugin.CodeInvalidOutput},
		{"with a number that takes the memory of its exponent", plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{"words":1e99999999}`)}, nil, plugin.CodeInvalidOutput},
		{"too large", plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`"` + strings.Repeat("a", 5<<20) + `"`)}, nil, plugin.CodeOutputTooLarge},
		{"not finished", plugin.Result{Status: plugin.InProgress}, nil, plugin.CodeInvalidOutput},
		{"its own error", plugin.Result{Metrics: plugin.Metrics{"tokens_in": 9.0}}, &plugin.Error{Code: plugin.CodePluginError, PluginCode: "NOPE", Message: "no"}, plugin.CodePluginError},
		{"a fault of ours", plugin.Result{}, errors.New("a secret path"), plugin.CodeInternal},
	} {
		b := newBundle(t, policy.Default, target(t, "text.count", "words", func(target *plugin.Target) {
			out, err := schema.Compile([]byte(`{"type":["object","string"],"properties":{"words":{"type":"integer"}}}`))
			if err != nil {
				t.Fatal(err)
			}
			target.Output = out
		}))
		b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
			return c.res, c.err
		}
		res, err := b.Call(t.Context(), asking("text.count/words", `{}`))
		if plugin.CodeOf(err) != c.code || len(res.Data) > 0 || strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: %v, %s", c.name, err, res.Data)
		}
		b.want(t, "call.failed "+string(c.code))
		if _, recs := b.records(t); c.name == "its own error" && (recs[0].Error.PluginCode != "NOPE" || recs[0].Metrics["tokens_in"] != 9.0) {
			t.Errorf("%+v", recs[0])
		}
	}
}

func TestATimeoutIsAFailure(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "text.count", "words", func(t *plugin.Target) { t.Operation.Timeout = 30 * time.Millisecond }))
	b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		<-ctx.Done()
		return plugin.Result{}, context.Cause(ctx)
	}
	_, err := b.Call(t.Context(), asking("text.count/words", `{}`))
	wantCode(t, err, plugin.CodeTimeout)
	if !strings.Contains(err.Error(), "30ms") {
		t.Error(err)
	}
	b.want(t, "call.failed timeout")
}

// A caller who has hung up is still on the record.
func TestACallerWhoHungUpIsOnTheRecord(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "text.count", "words"))
	ctx, cancel := context.WithCancel(t.Context())
	b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		cancel()
		return plugin.Result{}, ctx.Err()
	}
	_, err := b.Call(ctx, asking("text.count/words", `{}`))
	wantCode(t, err, plugin.CodeCancelled)
	b.want(t, "call.failed cancelled")
}

func TestAPureToolIsAskedOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "text.count", "words"))
	for _, input := range []string{`{"n":1,"m":2}`, `{"m":2, "n":1.0}`} {
		if _, err := b.Call(t.Context(), asking("text.count/words", input)); err != nil {
			t.Fatal(err)
		}
	}
	res, err := b.Call(t.Context(), asking("text.count/words", `{"n":1,"m":2}`))
	if err != nil || !res.Cached || string(res.Data) != `{"n":1,"m":2}` || b.runs.Load() != 1 {
		t.Errorf("%+v, %v, %d runs", res, err, b.runs.Load())
	}
	if _, recs := b.records(t); len(recs) != 3 || !recs[2].Cached || recs[2].ResultHash != recs[0].ResultHash {
		t.Errorf("%+v", recs)
	}
	fresh := asking("text.count/words", `{"n":1,"m":2}`)
	fresh.Fresh = true
	if res, err := b.Call(t.Context(), fresh); err != nil || res.Cached || b.runs.Load() != 2 {
		t.Errorf("%+v, %v, %d runs", res, err, b.runs.Load())
	}
}

// TestAnAnswerIsReusedForWhoAskedAlone: a tool is told who asks, so its answer is kept for exactly
// that. The cases are the members of what it is told; a new one without a case fails.
func TestAnAnswerIsReusedForWhoAskedAlone(t *testing.T) {
	t.Parallel()
	changes := map[string]func(*plugin.Call){
		"Tenant":      func(c *plugin.Call) { c.Tenant = "other" },
		"PrincipalID": func(c *plugin.Call) { c.Principal.ID = "other" },
		"Principal":   func(c *plugin.Call) { c.Principal.Type = "service" }, // of the same id
		"Scopes":      func(c *plugin.Call) { c.Principal.Scopes = []string{"other"} },
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[protocol.Auth]()) {
		change := changes[f.Name]
		if change == nil {
			t.Errorf("a tool is told %s of who asks, and no case changes it", f.Name)
			continue
		}
		b := newBundle(t, []policy.Rule{{}}, target(t, "text.count", "words"))
		for range 2 { // each of the two asks twice
			for _, by := range []func(*plugin.Call){func(*plugin.Call) {}, change} {
				call := asking("text.count/words", `{}`)
				by(&call)
				if _, err := b.Call(t.Context(), call); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := b.runs.Load(); n != 2 {
			t.Errorf("calls that differ in %s alone ran %d times, want 2: once for each of two who ask", f.Name, n)
		}
	}
}

// What does not follow from input and code alone is asked each time.
func TestWhatIsNotPureIsNotCached(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*plugin.Target){
		"an operator":          operator(),
		"with services":        func(t *plugin.Target) { t.Manifest.Capabilities = []string{"cache"} },
		"that calls others":    func(t *plugin.Target) { t.Manifest.Requires.Tools = []string{"a"} },
		"that says so":         func(t *plugin.Target) { t.Operation.NoCache = true },
		"other code":           func(*plugin.Target) {},
		"not deterministic":    func(*plugin.Target) {},
		"in a session":         func(*plugin.Target) {},
		"another tenant":       func(*plugin.Target) {},
		"failing":              func(*plugin.Target) {},
		"with artifacts given": func(*plugin.Target) {},
		"with a file":          func(*plugin.Target) {}, // under a name that is spelled in another way
		"decided by the host":  func(*plugin.Target) {},
	} {
		b := newBundle(t, []policy.Rule{{}}, target(t, "text.count", "words", change))
		b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
			res := plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`1`)}
			if name == "not deterministic" {
				res.Nondeterminism = &plugin.Nondeterminism{Is: true}
			}
			if name == "failing" {
				return res, plugin.Errorf(plugin.CodePluginError, "no")
			}
			return res, nil
		}
		for i := range 2 {
			call := asking("text.count/words", `{}`)
			switch name {
			case "in a session":
				call.Session = "s"
			case "another tenant":
				call.Tenant = fmt.Sprint("tenant-", i)
			case "other code":
				b.targets["text.count/words"].Package.Digest = fmt.Sprint("sha256:", i)
			case "with artifacts given":
				call.Input = json.RawMessage(`{"artifacts":[]}`)
			case "with a file":
				call.Input = json.RawMessage(`{"\u0061rtifacts":[{"artifact_id":"art_0000000000000001"}]}`)
				call.Files = []plugin.File{{Handle: "art_0000000000000001", Path: "/a"}}
			case "decided by the host":
				call.Overlay = json.RawMessage(fmt.Sprintf(`{"auth":{"mail":{"subject":"%d"}}}`, i))
			}
			_, _ = b.Call(t.Context(), call)
		}
		if b.runs.Load() != 2 {
			t.Errorf("%s: asked %d times", name, b.runs.Load())
		}
	}
}

func TestAKeyGetsItsFirstAnswer(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
	var sent atomic.Int64
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(fmt.Sprintf(`{ "sent":%d,  "at":1.50 }`, sent.Add(1)))}, nil
	}
	call := asking("mail/send", `{"n":1}`)
	call.Key = "order-1"
	first, err := b.Call(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	call.Input = json.RawMessage(`{ "n" : 1.0 }`) // the same, spelled otherwise
	again, err := b.Call(t.Context(), call)
	if err != nil || string(again.Data) != string(first.Data) || !again.Replayed || again.CallID != first.CallID || sent.Load() != 1 {
		t.Errorf("%+v, %v, sent %d", again, err, sent.Load())
	}
	b.want(t, "call.started", "call.succeeded", "call.replayed")

	call.Input = json.RawMessage(`{"n":2}`)
	_, err = b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeKeyConflict)
	call.Input, call.Principal.ID = json.RawMessage(`{"n":1}`), "bob"
	_, err = b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeKeyConflict)
	if sent.Load() != 1 {
		t.Errorf("sent %d", sent.Load())
	}
}

func TestARefusalBurnsNoKey(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
	call := asking("mail/send", `{"n":"x"}`)
	call.Key = "order-1"
	_, err := b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeInvalidInput)
	call.Input = json.RawMessage(`{"n":1}`)
	if _, err := b.Call(t.Context(), call); err != nil {
		t.Error(err)
	}
}

func TestManyCallersWithOneKeyCauseOneEffect(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
	const callers = 50
	var begun sync.WaitGroup
	begun.Add(callers)
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		begun.Wait()
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`"sent"`)}, nil
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			begun.Done()
			call := asking("mail/send", `{"n":1}`)
			call.Key = "order-1"
			res, err := b.Call(t.Context(), call)
			if err != nil || res.Status != plugin.InProgress && string(res.Data) != `"sent"` {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if b.runs.Load() != 1 {
		t.Errorf("%d runs", b.runs.Load())
	}
}

// An operator that says nothing more after it had the call may have had its
// effect: that is unknown, and not tried again.
func TestAnUnobservedEffectIsUnknown(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
	fail := plugin.Errorf(plugin.CodeCrashed, "it crashed")
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{}, fail
	}
	call := asking("mail/send", `{}`)
	call.Key = "order-1"
	_, err := b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeCrashed)
	if !strings.Contains(err.Error(), "may or may not have had its effect") {
		t.Errorf("it does not say that the outcome is unknown: %v", err)
	}
	b.want(t, "call.started", "call.unknown crashed")
	_, err = b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeOutcomeUnknown)
	if b.runs.Load() != 1 {
		t.Errorf("%d runs", b.runs.Load())
	}
	// One that never had the call had no effect.
	call.Key, fail = "order-2", plugin.Errorf(plugin.CodeLaunchFailed, "it was not started")
	_, err = b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeLaunchFailed)
	row, err := b.store.CallByKey(t.Context(), "local", "mail/send", "k:order-2")
	if err != nil || row.State != store.CallFailed {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestAPluginCallsOnlyWhatItDeclared(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default,
		target(t, "outer", "run", func(t *plugin.Target) { t.Manifest.Requires.Tools = []string{"inner/run"} }),
		target(t, "inner", "run"), target(t, "other", "run"))
	ask := "inner/run"
	b.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if target.Manifest.Name != "outer" {
			return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(fmt.Sprintf(`{"depth":%d,"by":%q}`, call.Depth, call.Principal.ID))}, nil
		}
		raw, err := s.Serve(ctx, "operations.call", json.RawMessage(fmt.Sprintf(`{"call":"t","operation":%q,"input":{}}`, ask)))
		return plugin.Result{Status: plugin.Succeeded, Data: raw}, err
	}
	res, err := b.Call(t.Context(), asking("outer/run", `{}`))
	if err != nil || !strings.Contains(string(res.Data), `"data":{"depth":1,"by":"ann"}`) {
		t.Errorf("%s, %v", res.Data, err)
	}
	_, recs := b.records(t)
	if len(recs) != 2 || recs[0].Parent != recs[1].CallID || recs[0].Origin != plugin.OriginCall || recs[0].Actor != "plugin:outer" || recs[0].Correlation != recs[1].Correlation {
		t.Errorf("%+v", recs)
	}
	ask = "other/run"
	_, err = b.Call(t.Context(), asking("outer/run", `{}`))
	wantCode(t, err, plugin.CodeServiceDenied)
}

// A result that cannot be recorded is not given out.
func TestNoResultWithoutARecord(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		_ = b.ledger.Close()
		_ = b.store.Close()
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`"sent"`)}, nil
	}
	res, err := b.Call(t.Context(), asking("mail/send", `{}`))
	wantCode(t, err, plugin.CodeOutcomeUnknown)
	if len(res.Data) > 0 {
		t.Errorf("%s", res.Data)
	}
}

func BenchmarkCall(b *testing.B) {
	dir := b.TempDir()
	st, err := sqlite.Open(b.Context(), dir, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l, err := ledger.Open(b.Context(), st, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close(); _ = st.Close() }()
	in, err := schema.Compile([]byte(`{"type":"object","additionalProperties":{"type":"string"}}`))
	if err != nil {
		b.Fatal(err)
	}
	op := &plugin.Operation{Name: "words", Kind: plugin.Tool, Timeout: time.Minute, NoCache: true}
	f := &bundle{targets: map[string]*plugin.Target{"a/words": {
		Manifest: &plugin.Manifest{Name: "a", Version: "1.0.0"}, Operation: op, Package: plugin.Package{Digest: "sha256:a"}, Input: in, Output: in,
	}}}
	f.do = func(_ context.Context, _ *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.Succeeded, Data: call.Input}, nil
	}
	rules, err := policy.New(policy.Default)
	if err != nil {
		b.Fatal(err)
	}
	k := kernel.New(kernel.Options{Registry: f, Policy: rules, Ledger: l, Runner: f, Services: service.New()})
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, `,"property_%c":"%s"`, 'a'+i, strings.Repeat("v", 34))
	}
	call := asking("a/words", "{"+text.String()[1:]+"}")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.Call(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

// An effect that was sent, and of which no answer came, is unknown whatever
// the plugin makes of it. One that never got out has not happened.
func TestAnEffectWithoutAnAnswerIsUnknown(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("http_write"), func(t *plugin.Target) {
		t.Manifest.Capabilities = []string{"http"}
		t.Manifest.HTTP.Hosts = []string{"mail.example.com", "mail.invalid"}
	}))
	mute := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	t.Cleanup(mute.Close)
	b.broker.Egress = egress.Grants{Map: map[string]string{"mail.example.com": mute.Listener.Addr().String()}}
	b.do = func(ctx context.Context, _ *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		_, err := s.Serve(ctx, "http.fetch", call.Input)
		return plugin.Result{}, &plugin.Error{Code: plugin.CodePluginError, PluginCode: "NO_ANSWER", Message: fmt.Sprint(err)}
	}
	for _, host := range []string{"mail.example.com", "mail.invalid"} {
		_, err := b.Call(t.Context(), asking("mail/send", `{"method":"POST","url":"http://`+host+`/"}`))
		wantCode(t, err, plugin.CodePluginError)
	}
	b.want(t, "call.started", "call.unknown plugin_error", "call.started", "call.failed plugin_error")
}

// Below a tool nothing has effects, however deep.
func TestNothingBelowAToolHasEffects(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}},
		target(t, "outer", "run", func(t *plugin.Target) { t.Manifest.Requires.Tools = []string{"mail/send"} }),
		target(t, "mail", "send", operator("gmail_send")))
	b.do = func(ctx context.Context, t *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if t.Manifest.Name == "mail" {
			return plugin.Result{Status: plugin.Succeeded}, nil
		}
		_, err := s.Serve(ctx, "operations.call", json.RawMessage(`{"call":"t","operation":"mail/send","input":{}}`))
		return plugin.Result{}, err
	}
	_, err := b.Call(t.Context(), asking("outer/run", `{}`))
	wantCode(t, err, plugin.CodeEffectUndeclared)
	if b.runs.Load() != 1 {
		t.Errorf("%d runs", b.runs.Load())
	}
}
