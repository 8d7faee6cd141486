package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// keyed lets the mailbox tell a repetition.
func keyed(t *plugin.Target) {
	t.Manifest.HTTP.Idempotency = map[string]string{"mail.example.com": "Idempotency-Key"}
}

// post sends one mail.
func post(ctx context.Context, s plugin.Services, body string) error {
	_, err := s.Serve(ctx, "http.fetch", json.RawMessage(`{"method":"POST","url":"http://mail.example.com/","body":"`+body+`"}`))
	return err
}

// sentOnce is a call that is queued: its first attempt sent a mail under a key
// and heard nothing.
func sentOnce(t *testing.T, change ...func(*plugin.Target)) (*bundle, *mailbox, plugin.Call, string) {
	t.Helper()
	m := newMailbox(t)
	m.hangUp = 1
	b, send := sender(t, m, append([]func(*plugin.Target){keyed}, change...)...)
	b.do = send(1)
	call := asking("mail/send", `{}`)
	call.Key = "order-1"
	res, err := b.Call(t.Context(), call)
	if err != nil || res.Status != plugin.InProgress || len(m.all()) != 1 {
		t.Fatalf("%+v, %v; it sent %q", res, err, m.all())
	}
	return b, m, call, res.CallID
}

func (b *bundle) state(t *testing.T, id string) store.CallState {
	t.Helper()
	row, err := b.store.Call(t.Context(), "local", id)
	if err != nil || row == nil {
		t.Fatalf("call %s: %+v, %v", id, row, err)
	}
	return row.State
}

// A request that was sent and not answered may have taken effect, whichever
// stage then refuses to run the call again.
func TestACallThatMayNotRunAgainIsNotSaidToHaveDoneNothing(t *testing.T) {
	t.Parallel()
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		b, _, call, id := sentOnce(t)
		strict, err := policy.New(policy.Default)
		if err != nil {
			t.Fatal(err)
		}
		allowed := b.Kernel.Policy
		b.Kernel.Policy = strict
		_, err = b.Resume(t.Context(), "local", id)
		wantCode(t, err, plugin.CodePolicyDenied)
		if state := b.state(t, id); state != store.CallUnknown {
			t.Errorf("it is %s", state)
		}
		b.Kernel.Policy = allowed
		_, err = b.Call(t.Context(), call)
		wantCode(t, err, plugin.CodeOutcomeUnknown)
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		b, _, call, id := sentOnce(t)
		if state, err := b.Cancel(t.Context(), "local", id, "ann", ""); err != nil || state != store.CallQueued {
			t.Fatal(state, err)
		}
		if state := b.state(t, id); state != store.CallUnknown {
			t.Errorf("it is %s", state)
		}
		_, err := b.Call(t.Context(), call)
		wantCode(t, err, plugin.CodeOutcomeUnknown)
	})
}

// A call that was told to stop while it ran, and was then to be run again, is not.
func TestACallThatWasCancelledWhileItRanIsNotRunAgain(t *testing.T) {
	t.Parallel()
	b, m, _, id := sentOnce(t)
	if err := b.store.Write(t.Context(), func(tx store.Tx) error {
		_, err := tx.CancelCall("local", id)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Resume(t.Context(), "local", id)
	wantCode(t, err, plugin.CodeOutcomeUnknown)
	if state := b.state(t, id); state != store.CallUnknown || b.runs.Load() != 1 || len(m.all()) != 1 {
		t.Errorf("it is %s after %d runs that sent %q", state, b.runs.Load(), m.all())
	}
}

// An intent of an earlier attempt is asked for again before anything else is
// sent; a plugin that does otherwise does not get away with saying it succeeded.
func TestNothingElseIsSentBeforeWhatWasSentBefore(t *testing.T) {
	t.Parallel()
	b, m, _, id := sentOnce(t)
	b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
		_ = post(ctx, s, "something else")
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{}`)}, nil
	}
	_, err := b.Resume(t.Context(), "local", id)
	wantCode(t, err, plugin.CodeOutcomeUnknown)
	if sent := m.all(); len(sent) != 1 || b.state(t, id) != store.CallUnknown {
		t.Errorf("it is %s, and sent %q", b.state(t, id), sent)
	}
}

// shaky is a store whose journal cannot be read for a while.
type shaky struct {
	store.Store
	broken atomic.Bool
}

func (s *shaky) Effects(ctx context.Context, tenant, call string) ([]store.EffectRow, error) {
	if s.broken.Load() {
		return nil, errors.New("the disk is thinking")
	}
	return s.Store.Effects(ctx, tenant, call)
}

// An attempt whose journal cannot be read sends nothing, and the next one goes on.
func TestAnAttemptWithoutItsJournalRunsNothing(t *testing.T) {
	t.Parallel()
	b, m, _, id := sentOnce(t)
	st := &shaky{Store: b.store}
	l, err := ledger.Open(t.Context(), st, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b.Kernel.Ledger = l
	st.broken.Store(true)
	if res, err := b.Resume(t.Context(), "local", id); err != nil || res.Status != plugin.InProgress {
		t.Errorf("%+v, %v", res, err)
	}
	if state := b.state(t, id); state != store.CallQueued || b.runs.Load() != 1 {
		t.Errorf("it is %s after %d runs", state, b.runs.Load())
	}
	st.broken.Store(false)
	if res, err := b.Resume(t.Context(), "local", id); err != nil || res.Status != plugin.Succeeded || len(m.all()) != 2 {
		t.Errorf("%+v, %v; it sent %q", res, err, m.all())
	}
}

// The wait deadline of a caller with the same idempotency key bounds its wait
// alone. A call that it takes over in the meantime gets the full timeout of its
// operation.
func TestAWaitingCallersPatienceCutsNothingOff(t *testing.T) {
	t.Parallel()
	b, _, call, id := sentOnce(t)
	b.Kernel.Now = func() time.Time { return time.Now().Add(time.Hour) } // so that the next attempt is due
	call.Patience = 5 * time.Second
	inner := b.do
	patience := call.Patience
	b.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		res, err := inner(ctx, target, call, s)
		select {
		case <-time.After(patience): // the waiting began before
		case <-ctx.Done():
			return plugin.Result{}, context.Cause(ctx)
		}
		return res, err
	}
	res, err := b.Call(t.Context(), call)
	if err != nil || res.Status != plugin.Succeeded || res.CallID != id {
		t.Errorf("%+v, %v; it is %s", res, err, b.state(t, id))
	}
}

// Where plugins may do more than the host sees, what they had is not given to
// them again.
func TestAnUnseenAttemptIsNotRunAgain(t *testing.T) {
	t.Parallel()
	uncaged := func(t *plugin.Target) { t.Operation.Brokered = false }
	for _, c := range []struct {
		name  string
		hang  int
		code  plugin.Code
		state store.CallState
	}{
		{"it says that something is away", 0, plugin.CodeUnavailable, store.CallFailed},
		{"it says that something is missing", 0, plugin.CodeDependencyMissing, store.CallFailed},
		{"it dies with a request on its way", 1, plugin.CodeCrashed, store.CallUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox(t)
			m.hangUp = c.hang
			b, _ := sender(t, m, keyed, uncaged)
			b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
				_ = post(ctx, s, "mail")
				return plugin.Result{}, plugin.Errorf(c.code, "so it is")
			}
			call := asking("mail/send", `{}`)
			call.ID = "0192aaaa-0000-7000-8000-000000000002"
			_, err := b.Call(t.Context(), call)
			wantCode(t, err, c.code)
			if state := b.state(t, call.ID); state != c.state || b.runs.Load() != 1 {
				t.Errorf("it is %s after %d runs", state, b.runs.Load())
			}
		})
	}
}

// A plugin whose effects are all in the journal, and that says it cannot go on,
// is believed: it failed, and the journal has what happened.
func TestAPluginThatGaveUpIsNotRunAgain(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	b, _ := sender(t, m)
	b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if err := post(ctx, s, "mail"); err != nil {
			t.Error(err)
		}
		return plugin.Result{}, plugin.Errorf(plugin.CodeUnavailable, "the other side is away")
	}
	_, err := b.Call(t.Context(), asking("mail/send", `{}`))
	wantCode(t, err, plugin.CodeUnavailable)
	if !strings.Contains(err.Error(), "its journal has 1 of its effects") || b.runs.Load() != 1 {
		t.Errorf("%v, after %d runs", err, b.runs.Load())
	}
	b.want(t, "call.started", "call.failed unavailable")
}

// One cancelled call says nothing about the next.
func TestEachCancelledCallSpeaksForItself(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	b, _ := sender(t, m)
	b.do = func(ctx context.Context, _ *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if err := post(ctx, s, "mail"); err != nil {
			t.Error(err)
		}
		if _, err := b.Cancel(context.Background(), "local", call.ID, "ann", ""); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return plugin.Result{}, context.Cause(ctx)
	}
	for range 2 {
		_, err := b.Call(t.Context(), asking("mail/send", `{}`))
		wantCode(t, err, plugin.CodeCancelled)
		if n := strings.Count(err.Error(), "its journal has"); n != 1 {
			t.Errorf("%v", err)
		}
	}
}

// Two tenants may have calls of one id. Cancelling one stops that one.
func TestCancellingStopsOneTenantsCall(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a"), func(t *plugin.Target) { t.Operation.Brokered = true }))
	begun, goOn := make(chan struct{}), make(chan struct{})
	b.do = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		begun <- struct{}{}
		select {
		case <-goOn:
			return plugin.Result{Status: plugin.Succeeded}, nil
		case <-ctx.Done():
			return plugin.Result{}, context.Cause(ctx)
		}
	}
	ended := map[string]chan error{}
	for _, tenant := range []string{"red", "blue"} {
		call := asking("mail/send", `{}`)
		call.ID, call.Tenant = "0192aaaa-0000-7000-8000-000000000003", tenant
		done := make(chan error, 1)
		ended[tenant] = done
		go func() {
			_, err := b.Call(t.Context(), call)
			done <- err
		}()
		<-begun
	}
	if _, err := b.Cancel(t.Context(), "red", "0192aaaa-0000-7000-8000-000000000003", "ann", ""); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-ended["red"], plugin.CodeCancelled)
	close(goOn)
	if err := <-ended["blue"]; err != nil {
		t.Error(err)
	}
}

// A call that has not ended is no answer to keep for others.
func TestOnlyAnAnswerIsReused(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "text.count", "words"))
	call := asking("text.count/words", `{"n":1}`)
	call.NoWait = true
	if res, err := b.Call(t.Context(), call); err != nil || res.Status != plugin.InProgress {
		t.Fatalf("%+v, %v", res, err)
	}
	call.NoWait = false
	if res, err := b.Call(t.Context(), call); err != nil || res.Status != plugin.Succeeded || string(res.Data) != `{"n":1}` {
		t.Errorf("%+v, %v", res, err)
	}
}

// What an operator found out from outside is labelled as what it is.
func TestWhatWasFoundOutOutsideIsUntrusted(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	b, _ := sender(t, m, func(t *plugin.Target) { t.Operation.Reconcile = true })
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.InProgress}, nil
	}
	b.reconcile = func(ctx context.Context, _ *plugin.Target, _ *plugin.Call, _ []protocol.Effect, s plugin.Services) (protocol.Reconciled, error) {
		raw, err := s.Serve(ctx, "http.fetch", json.RawMessage(`{"url":"http://mail.example.com/"}`))
		return protocol.Reconciled{Outcome: protocol.OutcomeSucceeded, Data: []byte(raw)}, err
	}
	res, err := b.Call(t.Context(), asking("mail/send", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Kernel.Reconcile(t.Context(), "local", res.CallID); err != nil {
		t.Fatal(err)
	}
	done, err := b.Await(t.Context(), "local", res.CallID)
	if err != nil || !slices.Contains(done.Labels, plugin.Untrusted) {
		t.Errorf("%+v, %v", done, err)
	}
}

// What comes from outside is untrusted as an error's message too.
func TestAnErrorHasTheLabelsOfWhatItTells(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	b, _ := sender(t, m, func(t *plugin.Target) {
		t.Manifest.Requires.Tools = []string{"fetch/page"}
		t.Manifest.Capabilities = nil
	})
	b.targets["fetch/page"] = target(t, "fetch", "page", func(t *plugin.Target) {
		t.Manifest.Capabilities = []string{"http"}
		t.Manifest.HTTP.Hosts = []string{"mail.example.com"}
	})
	engine, err := policy.New([]policy.Rule{{Effects: []string{"*"}}, {Kinds: []plugin.Kind{plugin.Tool}}})
	if err != nil {
		t.Fatal(err)
	}
	b.Kernel.Policy = engine
	b.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if target.Manifest.Name == "fetch" {
			raw, err := s.Serve(ctx, "http.fetch", json.RawMessage(`{"url":"http://mail.example.com/"}`))
			if err != nil {
				return plugin.Result{}, err
			}
			return plugin.Result{}, plugin.Errorf(plugin.CodePluginError, "the page says %s", raw)
		}
		_, err := s.Serve(ctx, "operations.call", json.RawMessage(`{"operation":"fetch/page","input":{},"key":"page"}`))
		data, _ := json.Marshal(err.Error())
		return plugin.Result{Status: plugin.Succeeded, Data: data}, nil
	}
	for _, what := range []string{"at once", "from what is kept"} {
		res, err := b.Call(t.Context(), asking("mail/send", `{}`))
		if err != nil || !strings.Contains(string(res.Data), "the page says") || !slices.Contains(res.Labels, plugin.Untrusted) {
			t.Errorf("%s: %s, labels %q, %v", what, res.Data, res.Labels, err)
		}
	}
	if n := len(m.all()); n != 1 {
		t.Errorf("the page was asked for %d times", n)
	}
}

// What a call asked other operators for counts as what was sent: an attempt that
// asks for something else gets nothing.
func TestNoOtherOperatorIsAskedThanBefore(t *testing.T) {
	t.Parallel()
	m := newMailbox(t)
	m.hangUp = 1
	b, _ := sender(t, m, keyed, func(t *plugin.Target) { t.Manifest.Requires.Tools = []string{"inner/run", "look/up"} })
	b.targets["inner/run"] = target(t, "inner", "run", operator("b"))
	b.targets["look/up"] = target(t, "look", "up")
	b.broker.Kind = func(_ context.Context, call *plugin.Call) (plugin.Kind, error) {
		return b.targets[call.Operation].Operation.Kind, nil
	}
	engine, err := policy.New([]policy.Rule{{Effects: []string{"*"}}, {Kinds: []plugin.Kind{plugin.Tool}}})
	if err != nil {
		t.Fatal(err)
	}
	b.Kernel.Policy = engine
	inner, attempt := 0, 0
	b.do = func(ctx context.Context, target *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		switch target.Manifest.Name {
		case "inner":
			inner++
			fallthrough
		case "look":
			return plugin.Result{Status: plugin.Succeeded}, nil
		}
		attempt++
		for _, name := range []string{"look/up", "inner/run"} {
			if _, err := s.Serve(ctx, "operations.call", json.RawMessage(fmt.Sprintf(`{"operation":%q,"input":{"n":%d}}`, name, attempt))); err != nil {
				return plugin.Result{}, err
			}
		}
		return plugin.Result{Status: plugin.Succeeded}, post(ctx, s, "mail")
	}
	res, err := b.Call(t.Context(), asking("mail/send", `{}`))
	if err != nil || res.Status != plugin.InProgress || inner != 1 {
		t.Fatalf("%+v, %v, inner ran %d times", res, err, inner)
	}
	_, err = b.Resume(t.Context(), "local", res.CallID)
	wantCode(t, err, plugin.CodeOutcomeUnknown)
	if state := b.state(t, res.CallID); state != store.CallUnknown || inner != 1 || attempt != 2 || len(m.all()) != 1 {
		t.Errorf("it is %s; inner ran %d times in %d attempts, and %q was sent", state, inner, attempt, m.all())
	}
}

// What a person says in an operator's place is labelled like its own answer.
func TestASettledAnswerHasTheOperationsLabels(t *testing.T) {
	t.Parallel()
	b, _, _, id := sentOnce(t, func(t *plugin.Target) { t.Operation.Labels = []string{plugin.Private} })
	if _, err := b.Cancel(t.Context(), "local", id, "ann", ""); err != nil {
		t.Fatal(err)
	}
	res, err := b.Settle(t.Context(), "local", id, kernel.Settlement{State: store.CallSucceeded, By: user("ann"), Reason: "it is in the outbox"})
	if err != nil || !slices.Equal(res.Labels, []string{plugin.Private}) {
		t.Errorf("%+v, %v", res, err)
	}
}
