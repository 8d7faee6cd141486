package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A mailbox is an outside service that keeps what it was sent, and that may
// hang up instead of answering.
type mailbox struct {
	*httptest.Server
	mu       sync.Mutex
	got      []string // key and body of each request
	hangUp   int      // how many of the next requests get no answer
	hangUpAt int      // and which one, counted from 1
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := &mailbox{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		m.got = append(m.got, strings.TrimSpace(r.Header.Get("Idempotency-Key")+" "+string(body)))
		hang := m.hangUp > 0 || len(m.got) == m.hangUpAt
		m.hangUp--
		m.mu.Unlock()
		if hang {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
			return
		}
		fmt.Fprintf(w, `{"received":%d}`, len(m.all()))
	}))
	t.Cleanup(m.Close)
	return m
}

// all returns the key and the body of each request so far.
func (m *mailbox) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.got)
}

// sender is an operator that posts as often as its input says, and hands on
// what it was answered.
func sender(t *testing.T, m *mailbox, change ...func(*plugin.Target)) (*bundle, func(calls int) func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error)) {
	t.Helper()
	return senderOn(t, m, func(st store.Store) store.Store { return st }, change...)
}

// senderOn is sender with what the ledger is kept in.
func senderOn(t *testing.T, m *mailbox, on func(store.Store) store.Store, change ...func(*plugin.Target)) (*bundle, func(calls int) func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error)) {
	t.Helper()
	change = append([]func(*plugin.Target){operator("http_write"), func(t *plugin.Target) {
		t.Operation.Brokered = true
		t.Manifest.Capabilities = []string{"http"}
		t.Manifest.HTTP.Hosts = []string{"mail.example.com"}
	}}, change...)
	b := newBundleOn(t, on, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", change...))
	b.broker.Egress = egress.Grants{Map: map[string]string{"mail.example.com": m.Listener.Addr().String()}}
	return b, func(calls int) func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
			answers := []json.RawMessage{}
			for i := range calls {
				raw, err := s.Serve(ctx, "http.fetch", json.RawMessage(fmt.Sprintf(`{"method":"POST","url":"http://mail.example.com/","body":"mail %d"}`, i)))
				if err != nil {
					return plugin.Result{}, err
				}
				var answer struct {
					JSON json.RawMessage `json:"json"`
					Body string          `json:"body"`
				}
				if err := json.Unmarshal(raw, &answer); err != nil {
					return plugin.Result{}, err
				}
				answers = append(answers, json.RawMessage(fmt.Sprintf("%q", answer.Body)))
			}
			data, err := json.Marshal(answers)
			return plugin.Result{Status: plugin.Succeeded, Data: data}, err
		}
	}
}

func (b *bundle) journal(t *testing.T, id string) (lines []string) {
	t.Helper()
	effects, err := b.store.Effects(t.Context(), "local", id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range effects {
		lines = append(lines, fmt.Sprintf("%d %s %s %s %d", e.N, e.Method, e.Effect, e.State, e.Attempt))
	}
	return lines
}

func TestEveryEffectIsInTheJournalBeforeAndAfter(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	b, send := sender(t, m)
	b.do = send(2)
	res, err := b.Call(t.Context(), asking("mail/send", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.journal(t, res.CallID); !slices.Equal(got, []string{"1 http.fetch http_write done 1", "2 http.fetch http_write done 1"}) {
		t.Errorf("%q", got)
	}
	var kinds []string
	for e, err := range b.store.Entries(t.Context(), store.EntryFilter{Subject: res.CallID}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(e.Kind))
	}
	if want := []string{"call.started", "effect.intent", "effect.done", "effect.intent", "effect.done", "call.succeeded"}; !slices.Equal(kinds, want) {
		t.Errorf("%q", kinds)
	}
	if !slices.Contains(res.Labels, plugin.Untrusted) {
		t.Errorf("what came from outside is not labelled: %q", res.Labels)
	}
}

// The other side takes a key: what was sent and not answered is sent again
// under the same key, and the answers that came are not asked for again.
func TestAnUnansweredEffectIsRepeatedUnderItsKey(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	b, send := sender(t, m, func(t *plugin.Target) {
		t.Manifest.HTTP.Idempotency = map[string]string{"mail.example.com": "Idempotency-Key"}
	})
	m.hangUpAt = 2 // the transport repeats nothing by itself
	inner := send(3)
	var attempts int
	b.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		attempts++
		return inner(ctx, target, call, s)
	}
	res, err := b.Kernel.Run(t.Context(), asking("mail/send", `{}`))
	if err != nil || res.Status != plugin.Succeeded {
		t.Fatalf("%+v, %v", res, err)
	}
	sent := m.all()
	if attempts != 2 || len(sent) != 4 || sent[1] != sent[2] || !strings.HasPrefix(sent[0], "mortise-") {
		t.Errorf("%d attempts sent %q", attempts, sent)
	}
	keys := map[string]bool{}
	for _, got := range sent {
		keys[strings.Fields(got)[0]] = true
	}
	if len(keys) != 3 {
		t.Errorf("3 effects had %d keys: %q", len(keys), sent)
	}
	if got := b.journal(t, res.CallID); !slices.Equal(got, []string{"1 http.fetch http_write done 1", "2 http.fetch http_write done 2", "3 http.fetch http_write done 2"}) {
		t.Errorf("%q", got)
	}
}

func TestAnUnansweredEffectWithoutAKeyIsUnknown(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	m.hangUp = 1
	b, send := sender(t, m)
	b.do = send(1)
	call := asking("mail/send", `{}`)
	call.Key = "order-1"
	_, err := b.Call(t.Context(), call)
	if err == nil {
		t.Fatal("it succeeded")
	}
	_, err = b.Kernel.Run(t.Context(), call)
	wantCode(t, err, plugin.CodeOutcomeUnknown)
	if b.runs.Load() != 1 || len(m.all()) != 1 {
		t.Errorf("%d runs sent %q", b.runs.Load(), m.all())
	}
}

// A failure after an effect that was answered is a failure, and says so: the
// journal knows what happened.
func TestAFailureAfterAnEffectSaysSo(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	b, send := sender(t, m)
	inner := send(1)
	b.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if _, err := inner(ctx, target, call, s); err != nil {
			return plugin.Result{}, err
		}
		return plugin.Result{}, plugin.Errorf(plugin.CodeCrashed, "it crashed")
	}
	_, err := b.Call(t.Context(), asking("mail/send", `{}`))
	wantCode(t, err, plugin.CodeCrashed)
	b.want(t, "call.started", "call.failed crashed")
	if !strings.Contains(err.Error(), "its journal has 1 of its effects") {
		t.Error(err)
	}
}

// An operator finds out how it ended, or a person says so, once and with a reason.
func TestAnUnknownOutcomeIsSettled(t *testing.T) {
	t.Parallel()
	unknown := func(t *testing.T, change ...func(*plugin.Target)) (*bundle, *mailbox, *store.CallRow) {
		m := newMailbox(t)
		m.hangUp = 1
		b, send := sender(t, m, change...)
		b.do = send(1)
		call := asking("mail/send", `{"n":1}`)
		call.Key = "order-1"
		_, _ = b.Call(t.Context(), call)
		row, err := b.store.CallByKey(t.Context(), "local", "mail/send", "k:order-1")
		if err != nil || row.State != store.CallUnknown {
			t.Fatalf("%+v, %v", row, err)
		}
		return b, m, row
	}
	reconciles := func(t *plugin.Target) { t.Operation.Reconcile = true }
	t.Run("by the operator", func(t *testing.T) {
		t.Parallel()
		b, _, row := unknown(t, reconciles)
		b.reconcile = func(_ context.Context, _ *plugin.Target, call *plugin.Call, effects []protocol.Effect, s plugin.Services) (protocol.Reconciled, error) {
			if len(effects) != 1 || effects[0].State != "intent" || string(call.Input) != `{"n":1}` {
				t.Errorf("%+v, %s", effects, call.Input)
			}
			if _, err := s.Serve(t.Context(), "http.fetch", json.RawMessage(`{"method":"POST","url":"http://mail.example.com/"}`)); plugin.CodeOf(err) != plugin.CodeEffectUndeclared {
				t.Errorf("it could cause an effect while it was to look: %v", err)
			}
			return protocol.Reconciled{Outcome: protocol.OutcomeSucceeded, Data: []byte(`"sent"`), Evidence: []byte(`{"message":"<1@x>"}`)}, nil
		}
		if err := b.Reconcile_(t, row.ID); err != nil {
			t.Fatal(err)
		}
		call := asking("mail/send", `{"n":1}`)
		call.Key = "order-1"
		res, err := b.Call(t.Context(), call)
		if err != nil || string(res.Data) != `"sent"` || b.runs.Load() != 1 {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("by the operator: it did not happen", func(t *testing.T) {
		t.Parallel()
		b, m, row := unknown(t, reconciles)
		b.reconcile = func(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
			return protocol.Reconciled{Outcome: protocol.OutcomeNotDone}, nil
		}
		if err := b.Reconcile_(t, row.ID); err != nil {
			t.Fatal(err)
		}
		res, err := b.Await(t.Context(), "local", row.ID)
		if err != nil || res.Status != plugin.Succeeded || len(m.all()) != 2 {
			t.Errorf("%+v, %v, %q", res, err, m.all())
		}
	})
	for _, c := range []struct {
		state store.CallState
		code  plugin.Code
		runs  int64
	}{{store.CallSucceeded, "", 1}, {store.CallFailed, plugin.CodePluginError, 1}, {store.CallQueued, "", 2}} {
		t.Run("by a person: "+string(c.state), func(t *testing.T) {
			t.Parallel()
			b, _, row := unknown(t)
			s := kernel.Settlement{State: c.state, By: user("ann")}
			_, err := b.Settle(t.Context(), "local", row.ID, s)
			wantCode(t, err, plugin.CodeInvalidInput) // without a reason
			s.Reason = "the provider's log says so"
			if _, err := b.Settle(t.Context(), "local", row.ID, s); err != nil {
				t.Fatal(err)
			}
			_, err = b.Await(t.Context(), "local", row.ID)
			wantCode(t, err, c.code)
			if b.runs.Load() != c.runs {
				t.Errorf("%d runs", b.runs.Load())
			}
			_, err = b.Settle(t.Context(), "local", row.ID, s)
			wantCode(t, err, plugin.CodeKeyConflict)
		})
	}
}

// What a person says that a call answered is held against what its operation
// promises, as its own answer would be; what does not fit changes nothing.
func TestWhatACallIsSettledWithFitsItsOutputSchema(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	promise, err := schema.Compile([]byte(`{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}},"additionalProperties":false}`))
	if err != nil {
		t.Fatal(err)
	}
	b, send := sender(t, m, func(t *plugin.Target) { t.Output = promise })
	b.do = send(1)
	m.hangUp = 1
	call := asking("mail/send", `{}`)
	call.Key = "order"
	res, err := b.Call(t.Context(), call)
	if res.Status != plugin.Unknown {
		t.Fatalf("%+v, %v", res, err)
	}
	settle := func(data string) error {
		s := kernel.Settlement{State: store.CallSucceeded, By: user("ann"), Reason: "it is in the outbox"}
		if data != "" {
			s.Data = json.RawMessage(data)
		}
		_, err := b.Settle(t.Context(), "local", res.CallID, s)
		return err
	}
	for _, data := range []string{`{"id":"7"}`, `{"id":7,"more":1}`, `[7]`, `{}`, "", `null`, `{"id":7,"id":8}`, `"` + strings.Repeat("x", 5<<20) + `"`} {
		err := settle(data)
		if code := plugin.CodeOf(err); code != plugin.CodeInvalidInput && code != plugin.CodeInputTooLarge {
			t.Errorf("%.40s was taken: %v", data, err)
		}
		row, err := b.store.Call(t.Context(), "local", res.CallID)
		if err != nil || row.State != store.CallUnknown {
			t.Fatalf("after %.40s: %+v, %v", data, row, err)
		}
	}
	if err := settle(`{"id":7}`); err != nil {
		t.Error(err)
	}
}

// Reconcile_ is the kernel's Reconcile: the bundle has one of its own, the runner's.
func (b *bundle) Reconcile_(t *testing.T, id string) error {
	return b.Kernel.Reconcile(t.Context(), "local", id)
}

// A call that another operation asked for is found when that one runs again.
func TestNestedCallsAreNotRepeated(t *testing.T) {
	t.Parallel()
	g := newBundle(t, []policy.Rule{{Effects: []string{"*"}}},
		target(t, "outer", "run", operator("a"), func(t *plugin.Target) {
			t.Operation.Brokered = true
			t.Manifest.Requires.Tools = []string{"inner/run"}
		}), target(t, "inner", "run", operator("b")))
	g.broker.Call = g.Kernel.Run
	var outer, inner int
	g.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if target.Manifest.Name == "inner" {
			inner++
			return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(fmt.Sprint(inner))}, nil
		}
		outer++
		var seen []string
		for range 2 { // two equal ones are two
			raw, err := s.Serve(ctx, "operations.call", json.RawMessage(`{"call":"t","operation":"inner/run","input":{"n":1}}`))
			if err != nil {
				return plugin.Result{}, err
			}
			var res struct{ Data json.RawMessage }
			if err := json.Unmarshal(raw, &res); err != nil {
				return plugin.Result{}, err
			}
			seen = append(seen, string(res.Data))
		}
		if outer == 1 {
			return plugin.Result{}, plugin.Errorf(plugin.CodeCrashed, "it crashed")
		}
		data, err := json.Marshal(seen)
		return plugin.Result{Status: plugin.Succeeded, Data: data}, err
	}
	call := asking("outer/run", `{}`)
	call.NoWait = true
	res, err := g.Call(t.Context(), call)
	if err != nil || res.Status != plugin.InProgress {
		t.Fatalf("%+v, %v", res, err)
	}
	_, err = g.Resume(t.Context(), "local", res.CallID)
	wantCode(t, err, plugin.CodeCrashed)
	row, err := g.store.Call(t.Context(), "local", res.CallID)
	if err != nil {
		t.Fatal(err)
	}
	// As if the host had died instead of the plugin.
	again := *row
	again.State, again.WakeAt = store.CallQueued, time.Now()
	if err := g.store.Write(t.Context(), func(tx store.Tx) error { _, err := tx.UpdateCall(row.Fence(), again); return err }); err != nil {
		t.Fatal(err)
	}
	done, err := g.Resume(t.Context(), "local", res.CallID)
	if err != nil || string(done.Data) != `["1","2"]` || inner != 2 || outer != 2 {
		t.Errorf("%s, %v: inner ran %d times, outer %d", done.Data, err, inner, outer)
	}
}

func TestACallCanBeCancelled(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a"), func(t *plugin.Target) { t.Operation.Brokered = true }))
	begun := make(chan struct{})
	b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		close(begun)
		<-ctx.Done()
		return plugin.Result{}, plugin.AsError(context.Cause(ctx))
	}
	call := asking("mail/send", `{}`)
	call.ID = "0192aaaa-0000-7000-8000-000000000001"
	go func() {
		<-begun
		// As another process does it: the one that runs the call looks for it.
		if _, err := b.ledger.Cancel(context.Background(), "local", call.ID, "ann", "enough", time.Now(), nil); err != nil {
			t.Error(err)
		}
	}()
	_, err := b.Call(t.Context(), call)
	wantCode(t, err, plugin.CodeCancelled)
	if _, err := b.Cancel(t.Context(), "local", "none", "ann", ""); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Error(err)
	}
}

// What is queued and cancelled never runs; what has ended stays as it is.
func TestAQueuedCallIsCancelledAtOnce(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a")))
	call := asking("mail/send", `{}`)
	call.NoWait = true
	res, err := b.Call(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if state, err := b.Cancel(t.Context(), "local", res.CallID, "ann", ""); err != nil || state != store.CallQueued {
		t.Errorf("%s, %v", state, err)
	}
	_, err = b.Await(t.Context(), "local", res.CallID)
	wantCode(t, err, plugin.CodeCancelled)
	if state, err := b.Cancel(t.Context(), "local", res.CallID, "ann", ""); err != nil || state != store.CallFailed || b.runs.Load() != 0 {
		t.Errorf("%s, %v, %d runs", state, err, b.runs.Load())
	}
}

// An operator that goes on by itself is asked later how it ended.
func TestAnOperatorInProgressIsAskedHowItEnded(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "export", "run", operator("a"), func(t *plugin.Target) { t.Operation.Reconcile = true }))
	start, looked := time.Now(), atomic.Int64{}
	b.Kernel.Now = func() time.Time { return start.Add(time.Duration(looked.Add(1)) * time.Minute) } // time flies
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.InProgress}, nil
	}
	asked := 0
	b.reconcile = func(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
		if asked++; asked == 1 {
			return protocol.Reconciled{Outcome: protocol.OutcomeUnknown}, nil
		}
		return protocol.Reconciled{Outcome: protocol.OutcomeSucceeded, Data: []byte(`{"rows":3}`)}, nil
	}
	res, err := b.Call(t.Context(), asking("export/run", `{}`))
	if err != nil || res.Status != plugin.InProgress {
		t.Fatalf("%+v, %v", res, err)
	}
	done, err := b.Await(t.Context(), "local", res.CallID)
	if err != nil || string(done.Data) != `{"rows":3}` || asked != 2 || b.runs.Load() != 1 {
		t.Errorf("%+v, %v, asked %d times", done, err, asked)
	}
}

// Labels follow the data: from a call to the calls that it makes, and from
// those into its answer. A replayed answer has the labels of the present caller
// added.
func TestLabelsGoWithTheData(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	b, send := sender(t, m, func(t *plugin.Target) {
		t.Manifest.Requires.Tools = []string{"inner/run"}
		t.Operation.Labels = []string{plugin.Private}
	})
	b.targets["inner/run"] = target(t, "inner", "run")
	b.targets["pure/run"] = target(t, "pure", "run")
	engine, err := policy.New([]policy.Rule{{Effects: []string{"*"}}, {Kinds: []plugin.Kind{plugin.Tool}}})
	if err != nil {
		t.Fatal(err)
	}
	b.Kernel.Policy = engine
	var inner []string
	post := send(1)
	b.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if target.Manifest.Name != "mail" {
			inner = call.Labels
			return plugin.Result{Status: plugin.Succeeded, Data: call.Input}, nil
		}
		if _, err := post(ctx, target, call, s); err != nil {
			return plugin.Result{}, err
		}
		_, err := s.Serve(ctx, "operations.call", json.RawMessage(`{"call":"t","operation":"inner/run","input":{}}`))
		return plugin.Result{Status: plugin.Succeeded}, err
	}
	res, err := b.Call(t.Context(), asking("mail/send", `{}`))
	if err != nil || !slices.Equal(res.Labels, []string{plugin.Private, plugin.Untrusted}) || !slices.Equal(inner, []string{plugin.Untrusted}) {
		t.Errorf("%q, %v; what it asked for had %q", res.Labels, err, inner)
	}
	call := asking("pure/run", `{"n":1}`)
	if res, err = b.Call(t.Context(), call); err != nil || len(res.Labels) != 0 {
		t.Errorf("%+v, %v", res, err)
	}
	call.Labels = []string{plugin.Untrusted}
	if res, err = b.Call(t.Context(), call); err != nil || !res.Cached || !slices.Equal(res.Labels, []string{plugin.Untrusted}) {
		t.Errorf("%+v, %v", res, err)
	}
}
