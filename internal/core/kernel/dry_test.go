package kernel_test

import (
	"context"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// A level is a runner whose plugins reach this isolation.
type level struct {
	kernel.Runner
	name string
}

func (l level) Isolation(*plugin.Target) string { return l.name }

func dry(call plugin.Call) plugin.Call {
	call.Dry = &plugin.DryRecorder{}
	return call
}

func brokered(t *plugin.Target) { t.Operation.Brokered = true }

// Only what has no way around the host runs dry.
func TestOnlyWhatCannotActByItselfRunsDry(t *testing.T) {
	t.Parallel()
	plain := func(*plugin.Target) {}
	kind := func(k plugin.Kind) func(*plugin.Target) { return func(t *plugin.Target) { t.Operation.Kind = k } }
	for _, test := range []struct {
		name         string
		kind, brings func(*plugin.Target)
		level        string
		code         plugin.Code
	}{
		{"a tool", kind(plugin.Tool), plain, "none", ""},
		{"an agent", kind(plugin.Agent), plain, "none", ""},
		{"an adapter", kind(plugin.Adapter), plain, "partial", ""},
		{"a brokered operator, caged", operator("mail_send"), brokered, "full", ""},
		{"a brokered operator, half caged", operator("mail_send"), brokered, "partial", plugin.CodeIsolationUnavailable},
		{"a brokered operator, not caged", operator("mail_send"), brokered, "none", plugin.CodeIsolationUnavailable},
		{"an operator, caged", operator("mail_send"), plain, "full", plugin.CodeEffectUndeclared},
		{"an operator without effects", operator(), plain, "full", plugin.CodeEffectUndeclared},
		{"something with effects that is no operator", func(t *plugin.Target) { t.Operation.Effects = []string{"mail_send"} }, plain, "full", plugin.CodeEffectUndeclared},
	} {
		b := newBundle(t, []policy.Rule{{Operations: []string{"p"}, Effects: []string{"mail_send"}}}, target(t, "p", "op", test.kind, test.brings))
		b.Runner = level{b, test.level}
		res, err := b.Call(t.Context(), dry(asking("p/op", `{"n":1}`)))
		if plugin.CodeOf(err) != test.code || (b.runs.Load() == 1) != (err == nil) {
			t.Errorf("%s: %v, ran %d times", test.name, err, b.runs.Load())
		}
		if res.DryRun == nil || res.DryRun.Verdict != plugin.Allow || (res.DryRun.NotRun == "") != (err == nil) {
			t.Errorf("%s: found out %+v", test.name, res.DryRun)
		}
	}
}

// A dry run neither uses up a key nor answers one, and neither is nor leaves an
// answer for later calls.
func TestADryRunClaimsNothing(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Operations: []string{"p", "calc"}, Effects: []string{"mail_send"}}},
		target(t, "p", "op", operator("mail_send"), brokered), target(t, "calc", "op"))
	b.Runner = level{b, "full"}
	call := asking("p/op", `{"n":1}`)
	call.Key = "once"
	for i, c := range []plugin.Call{dry(call), dry(call), call, dry(call), call} {
		res, err := b.Call(t.Context(), c)
		if err != nil || res.Replayed != (i == 4) || (res.DryRun != nil) != (c.Dry != nil) {
			t.Errorf("call %d: replayed %v, %+v: %v", i, res.Replayed, res.DryRun, err)
		}
	}
	pure := asking("calc/op", `{"n":1}`)
	for i, c := range []plugin.Call{dry(pure), pure, dry(pure), pure} {
		if res, err := b.Call(t.Context(), c); err != nil || res.Cached != (i == 3) {
			t.Errorf("call %d: cached %v: %v", i, res.Cached, err)
		}
	}
	if runs := b.runs.Load(); runs != 4+3 {
		t.Errorf("%d runs", runs)
	}
	lines, recs := b.records(t)
	for i, rec := range recs {
		if want := i == 0 || i == 1 || i == 4 || i == 6 || i == 8; rec.Dry != want {
			t.Errorf("entry %d, %s: dry %v", i, lines[i], rec.Dry)
		}
	}
}

// Where policy requires approval, a dry run requests none; where policy denies,
// nothing runs.
func TestADryRunTellsTheVerdict(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Operations: []string{"p"}, Effects: []string{"mail_send"}}},
		target(t, "p", "op", operator("mail_send"), brokered, func(t *plugin.Target) { t.Operation.PolicyTags = []string{plugin.TagRequiresApproval} }),
		target(t, "q", "op", operator("mail_send"), brokered))
	b.Runner = level{b, "full"}
	res, err := b.Call(t.Context(), dry(asking("p/op", `{}`)))
	if err != nil || res.Status != plugin.Succeeded || res.DryRun.Verdict != plugin.AllowWithApproval || b.runs.Load() != 1 {
		t.Errorf("%+v: %v", res, err)
	}
	res, err = b.Call(t.Context(), dry(asking("q/op", `{}`)))
	if code := plugin.CodeOf(err); code != plugin.CodeNotFound || res.DryRun != nil || b.runs.Load() != 1 {
		t.Errorf("%+v: %v", res.DryRun, err) // an operation that the caller may not see reveals nothing
	}
	b.want(t, "call.succeeded", "call.refused policy_denied")
}

// What goes on by itself for real has nothing to go on with in a dry run.
func TestADryRunEnds(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Operations: []string{"p"}, Effects: []string{"mail_send"}}},
		target(t, "p", "op", operator("mail_send"), brokered, func(t *plugin.Target) { t.Operation.Reconcile = true }))
	b.Runner = level{b, "full"}
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{Status: plugin.InProgress, Data: []byte(`1`)}, nil
	}
	res, err := b.Kernel.Run(t.Context(), dry(asking("p/op", `{}`)))
	if err != nil || res.Status != plugin.Succeeded || len(res.Data) != 0 {
		t.Errorf("%+v: %v", res, err)
	}
}
