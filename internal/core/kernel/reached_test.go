package kernel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A said error is a runner's that says whether the plugin had the call.
type said struct {
	err  error
	sent bool
}

func (s said) Error() string { return s.err.Error() }
func (s said) Unwrap() error { return s.err }
func (s said) Sent() bool    { return s.sent }

// everyCode are the codes that a runner may fail with.
var everyCode = []plugin.Code{plugin.CodeUnavailable, plugin.CodeOverloaded, plugin.CodeTimeout, plugin.CodeCancelled, plugin.CodeCrashed, plugin.CodeLaunchFailed,
	plugin.CodeHandshakeFailed, plugin.CodeProtocolVersionMismatch, plugin.CodeToolNotExposed, plugin.CodeDependencyMissing, plugin.CodeLimitExceeded,
	plugin.CodeMalformedResponse, plugin.CodeRateLimited, plugin.CodeInternal}

// What becomes of a call with effects that the host cut off follows from whether
// the plugin had it, with every code. One that it did not have keeps no key: made
// again, the call runs.
func TestWhatACutOffCallMayHaveDoneFollowsFromWhetherThePluginHadIt(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a")))
	works := b.do
	for _, code := range everyCode {
		for _, sent := range []bool{true, false} {
			b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
				return plugin.Result{}, said{plugin.Errorf(code, "cut off"), sent}
			}
			call := asking("mail/send", `{}`)
			call.Key = fmt.Sprintf("%s %t", code, sent)
			res, err := b.Call(t.Context(), call)
			if plugin.CodeOf(err) != code || sent != (res.Status == plugin.Unknown) {
				t.Errorf("%s, sent %t: %s, %v", code, sent, res.Status, err)
			}
			first := res.CallID
			b.do = works
			call.ID = ""
			res, err = b.Call(t.Context(), call)
			switch {
			case sent && (plugin.CodeOf(err) != plugin.CodeOutcomeUnknown || res.CallID != first):
				t.Errorf("%s: made again, a call that may have happened is %s, %v", code, res.Status, err)
			case !sent && (err != nil || res.Status != plugin.Succeeded || res.Replayed || res.CallID == first):
				t.Errorf("%s: made again, a call that did not happen is %+v, %v", code, res, err)
			}
			if row, err := b.ledger.Call(t.Context(), "local", first); err != nil || !sent && (row.State != store.CallFailed || row.Code != string(code)) {
				t.Errorf("%s: the row says %+v, %v", code, row, err)
			}
		}
	}
}

// A queued call that did not reach a plugin goes back to the queue with backoff
// if the reason is transient; otherwise it fails.
func TestAQueuedCallThatNoPluginHadIsTriedAgain(t *testing.T) {
	t.Parallel()
	b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}}, target(t, "mail", "send", operator("a")))
	works, now := b.do, time.Now()
	b.Now = func() time.Time { return now }
	for _, code := range everyCode {
		passes := slices.Contains([]plugin.Code{plugin.CodeUnavailable, plugin.CodeOverloaded, plugin.CodeTimeout, plugin.CodeRateLimited, plugin.CodeLaunchFailed, plugin.CodeInternal}, code)
		b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
			return plugin.Result{}, said{plugin.Errorf(code, "cut off"), false}
		}
		call := asking("mail/send", `{}`)
		call.Key, call.NoWait = string(code), true
		res, err := b.Call(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		id, waits := res.CallID, time.Duration(0)
		for n := range 3 {
			_, err = b.Resume(t.Context(), "local", id)
			row, rowErr := b.ledger.Call(t.Context(), "local", id)
			if rowErr != nil {
				t.Fatal(rowErr)
			}
			if !passes {
				if row.State != store.CallFailed {
					t.Errorf("%s: it is %s, %v", code, row.State, err)
				}
				break
			}
			if wait := row.WakeAt.Sub(now); row.State != store.CallQueued || wait <= waits {
				t.Errorf("%s, attempt %d: it is %s, and tried again after %s, %v", code, n+1, row.State, wait, err)
			} else {
				waits, now = wait, row.WakeAt
			}
		}
		b.do = works
		if !passes {
			continue
		}
		if res, err := b.Await(t.Context(), "local", id); err != nil || res.Status != plugin.Succeeded {
			t.Errorf("%s: in the end it is %+v, %v", code, res, err)
		}
	}
	// For ever it is not tried.
	b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
		return plugin.Result{}, said{plugin.Errorf(plugin.CodeLaunchFailed, "no such program"), false}
	}
	call := asking("mail/send", `{}`)
	call.NoWait = true
	res, err := b.Call(t.Context(), call)
	for range 40 {
		_, _ = b.Resume(t.Context(), "local", res.CallID)
		now = now.Add(time.Hour)
	}
	if row, rowErr := b.ledger.Call(t.Context(), "local", res.CallID); err != nil || rowErr != nil || row.State != store.CallFailed || row.Attempt > 20 {
		t.Errorf("after %d attempts it is %s", row.Attempt, row.State)
	}
}

// A host that closes refuses new calls, cancels those at work, nested ones too,
// and closes its ledger once each has its entry.
func TestEveryCallThatWasMadeHasAnEntryWhenTheHostCloses(t *testing.T) {
	t.Parallel()
	for round := range 12 {
		b := newBundle(t, []policy.Rule{{Effects: []string{"*"}}, {Kinds: []plugin.Kind{plugin.Tool}}},
			target(t, "t", "op", func(t *plugin.Target) { t.Manifest.Requires.Tools = []string{"t"} }),
			target(t, "mail", "send", operator("a"), func(t *plugin.Target) { t.Manifest.Requires.Tools = []string{"t"} }))
		var made atomic.Int64
		b.do = func(ctx context.Context, _ *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
			if call.Depth < 3 {
				made.Add(1)
				_, _ = s.Serve(ctx, "operations.call", []byte(`{"operation":"t/op","input":{}}`))
			}
			select {
			case <-time.After(time.Duration(call.Depth) * 3 * time.Millisecond):
				return plugin.Result{Status: plugin.Succeeded, Data: call.Input}, nil
			case <-ctx.Done():
				return plugin.Result{}, context.Cause(ctx)
			}
		}
		var storm sync.WaitGroup
		for i := range 8 {
			storm.Go(func() {
				for n := 0; ; n++ {
					call := asking([]string{"t/op", "mail/send"}[i%2], `{}`)
					call.Key = []string{"", fmt.Sprintf("%d.%d", i, n)}[n%2]
					made.Add(1)
					_, err := b.Call(t.Context(), call)
					if err != nil && strings.Contains(err.Error(), "the host is closed") {
						made.Add(-1) // it was not made, and says so
						return
					}
					if err != nil && plugin.CodeOf(err) != plugin.CodeUnavailable {
						t.Errorf("a call ended with %v", err)
					}
				}
			})
		}
		most := int64(8 + 8*round)
		testwait.Until(t, "some calls were made", func() bool { return made.Load() >= most })
		if err := b.Kernel.Close(); err != nil {
			t.Fatal(err)
		}
		if err := b.ledger.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		storm.Wait()
		all, err := b.ledger.List(t.Context(), ledger.Filter{Limit: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		ended := map[string]int{}
		for _, e := range all {
			switch e.Kind {
			case plugin.EntryCallSucceeded, plugin.EntryCallFailed, plugin.EntryCallRefused, plugin.EntryCallUnknown:
				ended[e.Subject]++
			}
		}
		if int64(len(ended)) != made.Load() {
			t.Errorf("round %d: %d calls were made, %d have an end on record", round, made.Load(), len(ended))
		}
		for id, n := range ended {
			if n != 1 {
				t.Errorf("call %s ended %d times", id, n)
			}
		}
	}
}
