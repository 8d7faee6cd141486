package kernel_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/reported"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// deciding returns a kernel that knows one tool of another program, and a question of it.
func deciding(t *testing.T) (*bundle, plugin.Call) {
	t.Helper()
	return decidingOn(t, func(st store.Store) store.Store { return st })
}

func decidingOn(t *testing.T, on func(store.Store) store.Store) (*bundle, plugin.Call) {
	t.Helper()
	tool := reported.Resolve(reported.Ref("editor", "Write", ""), schema.Any)
	b := newBundleOn(t, on, []policy.Rule{{Effects: []string{"*"}}}, tool, target(t, "mail", "send", operator("gmail_send")))
	tools := &reported.Tools{Counts: bridge.Counts{Of: b.store}}
	b.do, b.Definitions = tools.Run, tools
	call := asking(tool.Name(), `{"path":"a"}`)
	call.Origin = plugin.OriginDecision
	return b, call
}

func (b *bundle) standing(t *testing.T, id string) ledger.State {
	t.Helper()
	row, err := b.ledger.Call(t.Context(), "local", id)
	if err != nil || row == nil {
		t.Fatal(row, err)
	}
	return row.State
}

// A decision that no one settles becomes unknown at its time, on any node; what is learned
// later is recorded, by the program or by a person.
func TestADecisionThatIsNotSettledIsUnknown(t *testing.T) {
	t.Parallel()
	b, call := deciding(t)
	now := time.Now()
	var clock atomic.Int64
	b.Now = func() time.Time { return now.Add(time.Duration(clock.Load())) }
	var ids []string
	for range 2 {
		res, err := b.Call(t.Context(), call)
		if err != nil || b.standing(t, res.CallID) != ledger.InProgress {
			t.Fatal(res, err)
		}
		ids = append(ids, res.CallID)
	}
	other := kernel.New(b.Options) // a host that was started since
	due := func() (n int) {
		rows, err := other.Due(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			if err := other.Advance(t.Context(), "local", rows[i].ID); err != nil {
				t.Fatal(err)
			}
		}
		return len(rows)
	}
	clock.Store(int64(59 * time.Minute))
	if n := due(); n != 0 {
		t.Errorf("%d were due before their time", n)
	}
	clock.Store(int64(61 * time.Minute))
	if n := due(); n != 2 || due() != 0 {
		t.Errorf("%d were due", n)
	}
	for _, id := range ids {
		if state := b.standing(t, id); state != ledger.Unknown {
			t.Errorf("%s is %s", id, state)
		}
	}
	ann := plugin.Principal{Type: "user", ID: "ann"}
	if _, err := b.Settle(t.Context(), "local", ids[0], kernel.Settlement{State: ledger.Queued, By: ann, Reason: "it did not run"}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("it is run again: %v", err)
	}
	if _, err := b.Settle(t.Context(), "local", ids[0], kernel.Settlement{State: ledger.Failed, By: ann, Reason: "it did not run"}); err != nil {
		t.Error(err)
	}
	if row, err := other.Report(t.Context(), "local", ids[1], kernel.Report{Outcome: "succeeded", By: ann}); err != nil || row.State != ledger.Succeeded {
		t.Error(row, err)
	}
	_, recs := b.records(t)
	for _, rec := range recs {
		if rec.Status == plugin.InProgress && rec.Attempt == 1 && rec.Isolation != "" && rec.Enforcement != plugin.EnforcementReported {
			t.Errorf("%+v", rec)
		}
	}
}

// Of many that settle at once, with different outcomes, one wins, and its own may be said
// again.
func TestADecisionIsSettledOnce(t *testing.T) {
	t.Parallel()
	b, call := deciding(t)
	res, err := b.Call(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var won [3]atomic.Int64
	for i := range 60 {
		wg.Go(func() {
			_, err := b.Report(t.Context(), "local", res.CallID, kernel.Report{Outcome: []string{"succeeded", "failed", "not_run"}[i%3]})
			if err == nil {
				won[i%3].Add(1)
			} else if plugin.CodeOf(err) != plugin.CodeConflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	outcomes := 0
	for i := range won {
		if n := won[i].Load(); n > 0 {
			outcomes++
			if n != 20 {
				t.Errorf("%d of the 20 that said the same were answered", n)
			}
		}
	}
	if outcomes != 1 {
		t.Errorf("%d outcomes won", outcomes)
	}
}

// What cannot be put on record is not allowed; and neither origin reaches what is the
// other's.
func TestADecisionFailsClosed(t *testing.T) {
	t.Parallel()
	full := &fullStore{}
	b, call := decidingOn(t, func(st store.Store) store.Store { full.Store = st; return full })
	sending := call
	sending.Operation = "mail/send"
	if _, err := b.Call(t.Context(), sending); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("a decision reached a plugin: %v", err)
	}
	direct := call
	direct.Origin = plugin.OriginAPI
	if _, err := b.Call(t.Context(), direct); plugin.CodeOf(err) != plugin.CodeNotFound || b.runs.Load() != 0 {
		t.Errorf("a tool of another program was called: %v", err)
	}
	full.now.Store(true)
	if res, err := b.Call(t.Context(), call); err == nil || res.Status == plugin.InProgress {
		t.Errorf("%+v, %v", res, err)
	}
	full.now.Store(false)
	if res, err := b.Call(t.Context(), call); err != nil || res.Status != plugin.InProgress {
		t.Errorf("%+v, %v", res, err)
	}
}

// A fullStore takes no writes for as long as it is full.
type fullStore struct {
	store.Store
	now atomic.Bool
}

func (f *fullStore) Write(ctx context.Context, fn func(store.Tx) error) error {
	if f.now.Load() {
		return store.ErrFull
	}
	return f.Store.Write(ctx, fn)
}

// The grade of a call is what its walls are worth.
func TestTheGradeOfACall(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]plugin.Enforcement{"full": plugin.EnforcementStructural, "partial": plugin.EnforcementNetwork, "none": plugin.EnforcementNone} {
		b := newBundle(t, policy.Default, target(t, "text.count", "words"))
		b.Runner = walls{b, level}
		if _, err := b.Call(context.Background(), asking("text.count/words", `{}`)); err != nil {
			t.Fatal(err)
		}
		if _, recs := b.records(t); recs[0].Enforcement != want || recs[0].Isolation != level {
			t.Errorf("%s: %+v", level, recs[0])
		}
	}
}

type walls struct {
	*bundle
	level string
}

func (w walls) Isolation(*plugin.Target) string { return w.level }
