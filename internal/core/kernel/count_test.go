package kernel_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/quota"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/plugin"
)

// bound gives the kernel of a bundle quotas, and returns what ann has used of them.
func (b *bundle) bound(t *testing.T, rules quota.Rules) (used func() int64) {
	t.Helper()
	quotas := quota.New(quota.Options{Counts: bridge.Counts{Of: b.store}, Rules: func(string) *quota.Rules { return &rules }})
	b.Quotas = quotas
	return func() int64 {
		t.Helper()
		uses, err := quotas.Uses(t.Context(), "local", plugin.Principal{Type: "user", ID: "ann"})
		if err != nil || len(uses) == 0 {
			t.Fatal(uses, err)
		}
		return uses[0].Used
	}
}

// A call counts once, however it ends, if it was accepted. What is refused, answered from
// what is kept, or run dry does not count.
func TestWhichCallsCount(t *testing.T) {
	t.Parallel()
	rules := append(policy.Default, policy.Rule{Effects: []string{"*"}, Operations: []string{"mail/send", "mail/gate"}})
	b := newBundle(t, rules, target(t, "text.count", "words"), target(t, "mail", "send", operator("gmail_send")),
		target(t, "mail", "other", operator("gmail_send")),
		target(t, "mail", "gate", operator("gmail_send"), func(t *plugin.Target) { t.Operation.PolicyTags = []string{plugin.TagRequiresApproval} }))
	used := b.bound(t, quota.Rules{Default: quota.Bound{Day: 100}})
	step := func(what string, want int64, call plugin.Call, code plugin.Code) plugin.Result {
		t.Helper()
		before := used()
		res, err := b.Call(t.Context(), call)
		if plugin.CodeOf(err) != code || used()-before != want {
			t.Errorf("%s: %v, counted %d times, want %d", what, err, used()-before, want)
		}
		return res
	}
	keyed := asking("mail/send", `{"n":1}`)
	keyed.Key = "one"
	step("a tool", 1, asking("text.count/words", `{"n":1}`), "")
	step("the same, from the cache", 0, asking("text.count/words", `{"n":1}`), "")
	step("one with a key", 1, keyed, "")
	step("the key again", 0, keyed, "")
	keyed.Input = json.RawMessage(`{"n":2}`)
	step("the key with another input", 0, keyed, plugin.CodeKeyConflict)
	step("no rule", 0, asking("mail/other", `{}`), plugin.CodeNotFound)
	step("a wrong input", 0, asking("text.count/words", `{"n":"x"}`), plugin.CodeInvalidInput)
	dry := asking("text.count/words", `{"n":7}`)
	dry.Dry = &plugin.DryRecorder{}
	step("a dry run", 0, dry, "")
	later := asking("mail/send", `{"n":3}`)
	later.NoWait = true
	res := step("one for later", 1, later, "")
	before := used()
	if _, err := b.Resume(t.Context(), "local", res.CallID); err != nil || used() != before {
		t.Errorf("as it runs: %v, counted %d times more", err, used()-before)
	}
	step("one that waits for a person", 1, asking("mail/gate", `{}`), "")
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{}, plugin.Errorf(plugin.CodePluginError, "it failed")
	}
	step("one that fails", 1, asking("mail/send", `{"n":4}`), plugin.CodePluginError)
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{}, unreached{plugin.Errorf(plugin.CodeLaunchFailed, "no such program")}
	}
	step("one that no plugin had", 0, asking("mail/send", `{"n":5}`), plugin.CodeLaunchFailed)
}

type unreached struct{ error }

func (unreached) Sent() bool      { return false }
func (u unreached) Unwrap() error { return u.error }

// Of 200 callers at the bound exactly as many run as it allows. The others leave an entry
// each, and their keys are free.
func TestABoundIsExactAndBurnsNoKey(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
	b.bound(t, quota.Rules{Default: quota.Bound{Day: 120}})
	var wg sync.WaitGroup
	refused := make(chan plugin.Call, 200)
	for i := range 200 {
		wg.Go(func() {
			call := asking("mail/send", `{}`)
			call.Key = time.Unix(int64(i), 0).UTC().Format(time.RFC3339)
			if _, err := b.Call(t.Context(), call); plugin.CodeOf(err) == plugin.CodeBudgetExceeded {
				refused <- call
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(refused)
	if n := b.runs.Load(); n != 120 || len(refused) != 80 {
		t.Errorf("%d ran and %d were refused", n, len(refused))
	}
	kept, err := b.ledger.List(t.Context(), ledger.Filter{Kind: "call.refused", Limit: 200})
	if err != nil || len(kept) != 80 {
		t.Errorf("%d refusals are on record, %v", len(kept), err)
	}
	b.bound(t, quota.Rules{})
	for call := range refused {
		if res, err := b.Call(t.Context(), call); err != nil || res.Replayed {
			t.Fatal(res, err)
		}
	}
}

// A call that a plugin asks for counts for the same principal, and one that has no room
// beside the call that asked for it is refused: it does not wait for its own caller.
func TestNestedCallsCount(t *testing.T) {
	t.Parallel()
	b := newBundle(t, policy.Default, target(t, "text.count", "words"), target(t, "text.count", "all"))
	used := b.bound(t, quota.Rules{Default: quota.Bound{Day: 10}, Plugins: map[string]quota.Bound{"text.count/all": {Concurrent: 1}}})
	b.do = func(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
		if t.Operation.Name == "words" || call.Depth > 1 {
			return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{}`)}, nil
		}
		for _, name := range []string{"text.count/words", "text.count/all"} {
			below := asking(name, `{"n":1}`)
			below.Parent, below.Depth = call.ID, call.Depth+1
			if _, err := b.Call(ctx, below); err != nil {
				return plugin.Result{}, err
			}
		}
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{}`)}, nil
	}
	if _, err := b.Call(t.Context(), asking("text.count/all", `{"n":2}`)); plugin.CodeOf(err) != plugin.CodeRateLimited {
		t.Errorf("%v", err)
	}
	if used() != 2 {
		t.Errorf("%d are counted", used())
	}
}

// What was put on record waits for room, and is not lost for want of it.
func TestAQueuedCallWaitsForRoom(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("gmail_send")))
	b.bound(t, quota.Rules{Default: quota.Bound{Concurrent: 1}})
	begun, end := make(chan struct{}), make(chan struct{})
	b.do = func(_ context.Context, _ *plugin.Target, call *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		if string(call.Input) == `{"n":1}` {
			close(begun)
			<-end
		}
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{}`)}, nil
	}
	over := make(chan error)
	go func() { _, err := b.Call(t.Context(), asking("mail/send", `{"n":1}`)); over <- err }()
	<-begun
	later := asking("mail/send", `{"n":2}`)
	later.NoWait = true
	res, err := b.Call(t.Context(), later)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Resume(t.Context(), "local", res.CallID); plugin.CodeOf(err) != plugin.CodeRateLimited {
		t.Errorf("%v", err)
	}
	close(end)
	if err := <-over; err != nil {
		t.Fatal(err)
	}
	if res, err := b.Await(t.Context(), "local", res.CallID); err != nil || res.Status != plugin.Succeeded {
		t.Errorf("%+v, %v", res, err)
	}
}

// A host that is full refuses a call before its key is claimed, and says when to come again. A
// call that others wait for goes on.
func TestAFullHostRefusesBeforeItClaims(t *testing.T) {
	t.Parallel()
	rules := append(policy.Default, policy.Rule{Effects: []string{"*"}, Operations: []string{"mail/send"}})
	b := newBundle(t, rules, target(t, "mail", "send", operator("gmail_send")), target(t, "text.count", "words"))
	b.Limit(4<<20, 4<<20, 2)
	begun, goOn := make(chan error, 2), make(chan struct{})
	b.do = func(ctx context.Context, at *plugin.Target, _ *plugin.Call, _ plugin.Services) (plugin.Result, error) {
		if at.Operation.Name == "send" {
			nested := asking("text.count/words", `{"n":1}`)
			nested.Depth = 1
			_, err := b.Call(ctx, nested)
			begun <- err
			<-goOn
		}
		return plugin.Result{Status: plugin.Succeeded, Data: json.RawMessage(`{}`)}, nil
	}
	send := func(key string) (plugin.Result, error) {
		call := asking("mail/send", `{"n":1}`)
		call.Key = key
		return b.Call(t.Context(), call)
	}
	var all sync.WaitGroup
	for _, key := range []string{"one", "two"} {
		all.Go(func() {
			if _, err := send(key); err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		if err := <-begun; err != nil {
			t.Errorf("a call that one of the two asked for: %v", err)
		}
	}
	_, err := send("three")
	if failed := plugin.AsError(err); failed == nil || failed.Code != plugin.CodeOverloaded || !failed.Retryable || failed.RetryAfter <= 0 {
		t.Errorf("a third call: %+v", failed)
	}
	close(goOn)
	all.Wait()
	if res, err := send("three"); err != nil || res.Replayed {
		t.Errorf("the third call, made again: %+v, %v", res, err)
	}
}
