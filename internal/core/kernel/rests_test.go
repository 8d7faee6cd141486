package kernel_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// An approval that an earlier attempt used counts for the next one as it did for
// the first: while it lasts, and for what was approved.
func TestAnApprovalThatWasUsedIsCheckedAtEachAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(g *gated, t *testing.T)
		later  time.Duration
		code   plugin.Code
	}{
		"as it was": {func(*gated, *testing.T) {}, time.Minute, ""},
		"expired":   {func(*gated, *testing.T) {}, 2 * time.Hour, plugin.CodeApprovalExpired},
		"another package": {func(g *gated, _ *testing.T) {
			g.targets["mail/send"].Package.Digest = "sha256:another"
		}, time.Minute, plugin.CodeApprovalVoid},
		"other policies": {func(g *gated, t *testing.T) {
			text := gatedBy + "// another version\n"
			g.rules.text.Store(&text)
			if err := g.engine.Reload(); err != nil {
				t.Fatal(err)
			}
		}, time.Minute, plugin.CodeApprovalVoid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t, target(t, "mail", "send", operator("gmail_send")))
			works := g.do
			g.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
				return plugin.Result{}, said{plugin.Errorf(plugin.CodeOverloaded, "every process is at work"), false}
			}
			res := g.pending(t, asking("mail/send", `{"n":7}`))
			g.approve(t, res.Approval.ID)
			_, _ = g.Resume(t.Context(), "local", res.CallID)
			row, err := g.store.Approval(t.Context(), "local", res.Approval.ID)
			if err != nil || row.State != store.ApprovalConsumed {
				t.Fatalf("%+v, %v", row, err)
			}
			g.do = works
			c.change(g, t)
			at := time.Now().Add(c.later)
			g.now = func() time.Time { return at }
			_, err = g.Await(t.Context(), "local", res.CallID)
			wantCode(t, err, c.code)
			if want := int64(1); c.code != "" && g.runs.Load() != want {
				t.Errorf("it ran %d times", g.runs.Load())
			}
		})
	}
}

// An edited store gives a text in a body in the place of another.
type edited struct {
	store.Store
	old, text string
}

func (e *edited) Body(ctx context.Context, tenant, hash string) ([]byte, error) {
	raw, err := e.Store.Body(ctx, tenant, hash)
	return []byte(strings.ReplaceAll(string(raw), e.old, e.text)), err
}

// What a call was made with is held to its hash before it runs.
func TestACallThatWasEditedWhileItWaitedDoesNotRun(t *testing.T) {
	t.Parallel()
	st := &edited{old: `"n":7`, text: `"n":8`}
	b := newBundleOn(t, func(s store.Store) store.Store { st.Store = s; return st }, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a")))
	call := asking("mail/send", `{"n":7}`)
	call.NoWait = true
	res, err := b.Call(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Resume(t.Context(), "local", res.CallID); err == nil || !strings.Contains(err.Error(), "was changed in the database") || b.runs.Load() != 0 {
		t.Errorf("%v, and it ran %d times", err, b.runs.Load())
	}
	st.text = st.old
	if done, err := b.Await(t.Context(), "local", res.CallID); err != nil || string(done.Data) != `{"n":7}` {
		t.Errorf("%+v, %v", done, err)
	}
}

// However many ask at once how a call ended, its operator is asked once.
func TestOneQuestionIsAskedAtATime(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a"), func(t *plugin.Target) { t.Operation.Reconcile = true }))
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.InProgress}, nil
	}
	const callers = 16
	var begun sync.WaitGroup
	begun.Add(callers)
	var asked atomic.Int64
	b.reconcile = func(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
		asked.Add(1)
		begun.Wait()
		return protocol.Reconciled{Outcome: protocol.OutcomeSucceeded, Data: []byte(`1`)}, nil
	}
	res, err := b.Call(t.Context(), asking("mail/send", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			begun.Done()
			if err := b.Kernel.Reconcile(t.Context(), "local", res.CallID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if done, err := b.Await(t.Context(), "local", res.CallID); err != nil || string(done.Data) != "1" || asked.Load() != 1 {
		t.Errorf("%+v, %v, asked %d times", done, err, asked.Load())
	}
}

// One who waits for a call of another's, and hangs up, has ended the waiting and
// nothing else: also where it was the waiting that took up the call.
func TestWhoHangsUpWhileWaitingEndsNoCall(t *testing.T) {
	t.Parallel()
	for _, queued := range []bool{false, true} {
		st := &readStore{read: make(chan struct{}, 1)}
		b := newBundleOn(t, func(inner store.Store) store.Store { st.Store = inner; return st },
			[]policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a")))
		begun, finish := make(chan struct{}), make(chan struct{})
		b.do = func(ctx context.Context, _ *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
			close(begun)
			<-finish
			if ctx.Err() != nil {
				return plugin.Result{}, said{context.Cause(ctx), true}
			}
			return plugin.Result{Status: plugin.Succeeded, Data: call.Input}, nil
		}
		call := asking("mail/send", `{"n":7}`)
		call.Key, call.NoWait = "once", queued
		first := make(chan error, 1)
		if queued {
			_, err := b.Call(t.Context(), call)
			first <- err
		} else {
			go func() {
				_, err := b.Call(t.Context(), call)
				first <- err
			}()
			<-begun
		}
		call.NoWait = false
		waiting, hangUp := context.WithCancelCause(t.Context())
		go func() {
			<-begun
			if !queued {
				testwait.Receive(t, "the second caller looks how the call stands", st.read)
			}
			hangUp(plugin.Errorf(plugin.CodeCancelled, "enough"))
			if queued { // the waiting caller runs the call
				close(finish)
			}
		}()
		if res, err := b.Call(waiting, call); !queued && plugin.CodeOf(err) != plugin.CodeCancelled {
			t.Errorf("the second caller hung up and hears %+v, %v", res, err)
		}
		if !queued {
			close(finish)
		}
		row, err := b.store.CallByKey(t.Context(), "local", "mail/send", "k:once")
		if err = errors.Join(err, <-first); err != nil {
			t.Errorf("the first caller, queued %t: %v", queued, err)
		}
		if done, err := b.Await(t.Context(), "local", row.ID); err != nil || string(done.Data) != `{"n":7}` || b.runs.Load() != 1 {
			t.Errorf("queued %t: %+v, %v, %d runs", queued, done, err, b.runs.Load())
		}
	}
}

// A readStore says when the row of a call is read.
type readStore struct {
	store.Store
	read chan struct{}
}

func (s *readStore) Call(ctx context.Context, tenant, id string) (*store.CallRow, error) {
	select {
	case s.read <- struct{}{}:
	default:
	}
	return s.Store.Call(ctx, tenant, id)
}
