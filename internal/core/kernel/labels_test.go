package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// ends are the ways in which a plugin ends a call, by the state that the call has then.
var ends = map[store.CallState]func() (plugin.Result, error){
	store.CallSucceeded: func() (plugin.Result, error) {
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{"page":"do as I say"}`)}, nil
	},
	store.CallFailed: func() (plugin.Result, error) {
		return plugin.Result{}, plugin.Errorf(plugin.CodePluginError, "the page says: do as I say")
	},
	store.CallUnknown: func() (plugin.Result, error) {
		return plugin.Result{}, plugin.Errorf(plugin.CodeTimeout, "it took too long after the page said: do as I say")
	},
}

// reaches are the ways in which a caller comes to hear how a call ended. They call mail/send, or
// mail/gated for what a person approves, and return what the caller is told.
var reaches = map[string]func(t *testing.T, g *gated) (plugin.Result, error){
	"at once": func(t *testing.T, g *gated) (plugin.Result, error) {
		return g.Call(t.Context(), asking("mail/send", `{}`))
	},
	"by its key again": func(t *testing.T, g *gated) (plugin.Result, error) {
		call := asking("mail/send", `{}`)
		call.Key = "k"
		_, _ = g.Call(t.Context(), call)
		res, err := g.Call(t.Context(), call)
		if !res.Replayed {
			t.Errorf("it is no replay: %+v, %v", res, err)
		}
		return res, err
	},
	"later": func(t *testing.T, g *gated) (plugin.Result, error) {
		call := asking("mail/send", `{}`)
		call.NoWait = true
		res, err := g.Call(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return g.Await(t.Context(), "local", res.CallID)
	},
	"later, after another ran it": func(t *testing.T, g *gated) (plugin.Result, error) {
		call := asking("mail/send", `{}`)
		call.NoWait = true
		res, err := g.Call(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = g.Resume(t.Context(), "local", res.CallID)
		return g.Await(t.Context(), "local", res.CallID)
	},
	"after an approval": func(t *testing.T, g *gated) (plugin.Result, error) {
		res := g.pending(t, asking("mail/gated", `{}`))
		g.approve(t, res.Approval.ID)
		return g.Await(t.Context(), "local", res.CallID)
	},
	"after an approval that another host carried out": func(t *testing.T, g *gated) (plugin.Result, error) {
		res := g.pending(t, asking("mail/gated", `{}`))
		g.approve(t, res.Approval.ID)
		_, _ = kernel.New(g.Options).Resume(t.Context(), "local", res.CallID)
		return g.Await(t.Context(), "local", res.CallID)
	},
	"in a step of a plan, again": func(t *testing.T, g *gated) (plugin.Result, error) {
		call := asking("mail/send", `{}`)
		call.Key, call.KeyOf = "step", plugin.KeyOfProposal
		_, _ = g.Call(t.Context(), call)
		prior, err := g.ledger.LookupCall(t.Context(), &call, "mail/send")
		if err != nil || prior == nil {
			t.Fatal(prior, err)
		}
		return plugin.Result{Labels: prior.Labels}, nil
	},
	"in a call that asked for it":              func(t *testing.T, g *gated) (plugin.Result, error) { return nested(t, g, 1) },
	"in a call that asks for it a second time": func(t *testing.T, g *gated) (plugin.Result, error) { return nested(t, g, 2) },
}

// nested has another operator ask for the call, a few times with the same key, and returns what
// that operator answers: what it heard.
func nested(t *testing.T, g *gated, times int) (res plugin.Result, err error) {
	t.Helper()
	for range times {
		if res, err = g.Call(t.Context(), asking("caller/ask", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	return res, err
}

// TestEveryAnswerHasTheLabelsOfWhatItTells: however a call ends, and however its caller comes to
// hear of that, what the caller is told has the labels of what the plugin had read. What had
// none gets none.
func TestEveryAnswerHasTheLabelsOfWhatItTells(t *testing.T) {
	t.Parallel()
	for state, end := range ends {
		for way, reach := range reaches {
			for _, labels := range [][]string{nil, {plugin.Private}, {plugin.Untrusted}} {
				t.Run(fmt.Sprintf("%s, %s, %q", state, way, labels), func(t *testing.T) {
					t.Parallel()
					raw := func(t *plugin.Target) { t.Operation.Brokered = false }
					g := newGated(t, target(t, "mail", "send", operator("mail_send"), raw), target(t, "mail", "gated", operator("mail_send"), raw),
						target(t, "caller", "ask", operator("mail_send"), func(t *plugin.Target) { t.Manifest.Requires.Tools = []string{"mail/send"} }))
					text := strings.Replace(gatedBy, `resource.kind == "operator"`, `resource == Operation::"mail/gated"`, 1)
					text = strings.Replace(text, `resource.kind != "operator"`, `resource != Operation::"mail/gated"`, 1)
					text = strings.ReplaceAll(text, "permit (principal, action == Action::\"execute\"", "@untrusted(\"allow\") permit (principal, action == Action::\"execute\"")
					g.rules.text.Store(&text)
					if err := g.engine.Reload(); err != nil {
						t.Fatal(err)
					}
					g.do = func(ctx context.Context, of *plugin.Target, _ *plugin.Call, s plugin.Services) (plugin.Result, error) {
						if of.Manifest.Name == "caller" {
							raw, err := s.Serve(ctx, "operations.call", json.RawMessage(`{"operation":"mail/send","input":{},"key":"k"}`))
							data, _ := json.Marshal(fmt.Sprint(string(raw), err))
							return plugin.Result{Status: plugin.Succeeded, Data: data}, nil
						}
						res, err := end()
						res.Labels = labels
						return res, err
					}
					res, err := reach(t, g)
					if got := append([]string{}, res.Labels...); !slices.Equal(got, append([]string{}, labels...)) {
						t.Errorf("what is told has the labels %q, want %q: %+v, %v", got, labels, res, err)
					}
					rows, err := g.store.Calls(t.Context(), store.CallFilter{State: state})
					if err != nil || !slices.ContainsFunc(rows, func(r store.CallRow) bool { return strings.HasPrefix(r.Operation, "mail/") }) {
						t.Errorf("no call is %s: %+v, %v", state, rows, err)
					}
				})
			}
		}
	}
	for _, state := range []store.CallState{store.CallPending, store.CallQueued, store.CallRunning, store.CallInProgress, store.CallSucceeded, store.CallFailed, store.CallUnknown} {
		if _, covered := ends[state]; covered != state.Ended() {
			t.Errorf("a call that is %s has ended: %v, and is in the table: %v", state, state.Ended(), covered)
		}
	}
}

// A preview is an answer of the plugin too, and so is why there is none. What is kept of a
// question has no labels of its own, so a preview that is shown again is untrusted.
func TestAPreviewHasTheLabelsOfWhatItTells(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]error{"a preview": nil, "no preview": plugin.Errorf(plugin.CodePluginError, "the page says: do as I say")} {
		g := newGated(t, target(t, "mail", "send", operator("mail_send"), func(t *plugin.Target) {
			t.Operation.Preview, t.Operation.Labels = true, []string{plugin.Private}
		}))
		g.preview = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (json.RawMessage, error) {
			return json.RawMessage(`{"page":"do as I say"}`), fails
		}
		call := asking("mail/send", `{}`)
		call.Key = "k"
		res, err := g.Call(t.Context(), call)
		if (err == nil) != (fails == nil) || !slices.Equal(res.Labels, []string{plugin.Private}) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
		if fails != nil {
			continue
		}
		again, err := g.Call(t.Context(), call)
		if err != nil || !again.Replayed || len(again.Approval.Preview) == 0 || !slices.Contains(again.Labels, plugin.Untrusted) {
			t.Errorf("the preview that is shown again: %+v, %v", again, err)
		}
	}
}

// The answer of a pure tool keeps its own labels in the cache, and those of each caller are
// added to it.
func TestACachedAnswerHasItsOwnLabelsAndThoseOfItsCaller(t *testing.T) {
	t.Parallel()
	g := newGated(t, target(t, "text", "count"))
	g.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`1`), Labels: []string{plugin.Private}}, nil
	}
	for i, own := range [][]string{{"first"}, {"second"}, nil} {
		call := asking("text/count", `{}`)
		call.Labels = own
		res, err := g.Call(t.Context(), call)
		if want := plugin.Labels(own, []string{plugin.Private}); err != nil || res.Cached != (i > 0) || !slices.Equal(res.Labels, want) {
			t.Errorf("call %d: cached is %v, labels %q, want %q: %v", i, res.Cached, res.Labels, want, err)
		}
	}
}

// What an operator finds out of a failure, and what another program reports of one, comes from
// outside. What a person or the host itself says of a call adds no label.
func TestAnEndThatIsLearnedLaterHasTheLabelsOfItsSource(t *testing.T) {
	t.Parallel()
	told := func(t *testing.T, b *bundle, id string) []string {
		t.Helper()
		res, err := b.Await(t.Context(), "local", id)
		if !res.Status.Ended() {
			t.Fatalf("%+v, %v", res, err)
		}
		return append([]string{}, res.Labels...)
	}
	t.Run("reconciled", func(t *testing.T) {
		t.Parallel()
		b, _, _, id := sentOnce(t, func(t *plugin.Target) { t.Operation.Reconcile = true })
		b.reconcile = func(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
			return protocol.Reconciled{Outcome: protocol.OutcomeFailed, Err: plugin.Errorf(plugin.CodePluginError, "the page says: do as I say")}, nil
		}
		if _, err := b.Cancel(t.Context(), "local", id, "ann", ""); err != nil {
			t.Fatal(err)
		}
		if err := b.Reconcile_(t, id); err != nil {
			t.Fatal(err)
		}
		if got := told(t, b, id); !slices.Equal(got, []string{plugin.Untrusted}) {
			t.Errorf("labels %q", got)
		}
	})
	for outcome, want := range map[string][]string{"failed": {plugin.Untrusted}, "not_run": {plugin.Untrusted}, "unknown": {plugin.Untrusted}, "succeeded": {plugin.Untrusted}} {
		t.Run("reported "+outcome, func(t *testing.T) {
			t.Parallel()
			b, call := deciding(t)
			res, err := b.Call(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Report(t.Context(), "local", res.CallID, kernel.Report{Outcome: outcome, Summary: "do as I say", By: user("ann")}); err != nil {
				t.Fatal(err)
			}
			if got := told(t, b, res.CallID); !slices.Equal(got, want) {
				t.Errorf("labels %q", got)
			}
		})
	}
	for name, end := range map[string]func(t *testing.T, b *bundle, id string) error{
		"cancelled": func(t *testing.T, b *bundle, id string) error {
			_, err := b.Cancel(t.Context(), "local", id, "ann", "")
			return err
		},
		"settled as failed": func(t *testing.T, b *bundle, id string) error {
			if _, err := b.Cancel(t.Context(), "local", id, "ann", ""); err != nil {
				return err
			}
			_, err := b.Settle(t.Context(), "local", id, kernel.Settlement{State: store.CallFailed, By: user("ann"), Reason: "it is not in the outbox"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, _, id := sentOnce(t, func(t *plugin.Target) { t.Operation.Labels = nil })
			if err := end(t, b, id); err != nil {
				t.Fatal(err)
			}
			if got := told(t, b, id); len(got) > 0 {
				t.Errorf("labels %q", got)
			}
		})
	}
}
