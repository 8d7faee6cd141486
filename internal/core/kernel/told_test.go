package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A trouble keeps a host from recording what it does. It begins with a write, or while the plugin
// is at work.
type trouble struct {
	cause error
	after bool // the write is made all the same
	at    int64
	taken bool // another host takes this one for dead while the plugin is at work
}

func (tr trouble) String() string {
	if tr.taken {
		return "another host takes the call over"
	}
	return fmt.Sprintf("%v, made %v, write %d", tr.cause, tr.after, tr.at)
}

// troubles are all of them: each write of a call fails, for each reason, before it is made and
// after.
func troubles() []trouble {
	all := []trouble{{taken: true}}
	for _, cause := range []error{fmt.Errorf("%w: %w", store.ErrFailed, syscall.EIO), errors.New("database is locked (5)")} {
		for at := int64(1); at <= 5; at++ {
			all = append(all, trouble{cause: cause, at: at}, trouble{cause: fmt.Errorf("%w: %w", store.ErrUncertain, cause), after: true, at: at})
		}
	}
	return all
}

// TestNoCallerIsToldWhatRecoveryUndoes: a call whose record could not be written ends as its
// caller was told. Who hears that it failed or is not repeated sees no other attempt, and who
// hears that it is in progress sees it end, unless nothing of it is on record.
func TestNoCallerIsToldWhatRecoveryUndoes(t *testing.T) {
	t.Parallel()
	raw := func(t *plugin.Target) { t.Operation.Brokered = false }
	pure := func(t *plugin.Target) { t.Operation.Kind, t.Operation.Effects = plugin.Tool, nil }
	for kind, change := range map[string]func(*plugin.Target){"brokered": func(*plugin.Target) {}, "with a key of the other side": keyed, "not brokered": raw, "without effects": pure} {
		for _, later := range []bool{false, true} {
			for _, tr := range troubles() {
				t.Run(fmt.Sprintf("%s, later %v, %s", kind, later, tr), func(t *testing.T) {
					t.Parallel()
					f := &failing{after: tr.after, with: tr.cause}
					m := newMailbox(t)
					b, send := senderOn(t, m, func(st store.Store) store.Store { f.Store = st; return f }, change)
					do := send(1)
					if kind == "without effects" {
						do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
							return plugin.Result{Status: plugin.Succeeded}, nil
						}
					}
					began, clock := time.Now(), atomic.Int64{}
					b.Now = func() time.Time { return began.Add(time.Duration(clock.Load())) }
					call := asking("mail/send", `{}`)
					call.ID, call.Key, call.NoWait = "0192aaaa-0000-7000-8000-000000000001", "k", later
					row := func() *store.CallRow {
						row, err := b.store.Call(t.Context(), "local", call.ID)
						if err != nil {
							t.Fatal(err)
						}
						return row
					}
					b.do = func(ctx context.Context, of *plugin.Target, c *plugin.Call, s plugin.Services) (plugin.Result, error) {
						res, err := do(ctx, of, c, s)
						if tr.taken && b.runs.Load() == 1 {
							if won, err := b.ledger.Abandoned(ctx, *row(), b.Now()); !won || err != nil {
								t.Errorf("it was not taken over: %v", err)
							}
						}
						return res, err
					}
					f.writes.Store(0)
					f.at.Store(tr.at)
					res, err := b.Call(t.Context(), call)
					if later && err == nil { // and the host runs it, as someone waits for it
						next, failed := b.Resume(t.Context(), "local", call.ID)
						if failed == nil && next.Status.Ended() || failed != nil && !plugin.CodeOf(failed).Passes() {
							res, err = next, failed
						}
					}
					f.at.Store(0)
					told, runs := res.Status, b.runs.Load()
					for range 5 { // as a host does that was started since
						clock.Add(int64(time.Hour))
						due, err := b.Due(t.Context(), 10)
						if err != nil {
							t.Fatal(err)
						}
						for _, one := range due {
							_ = b.Advance(t.Context(), "local", one.ID)
						}
					}
					now, more := row(), b.runs.Load()-runs
					switch {
					case err == nil && told == plugin.InProgress:
						if now != nil && !now.State.Ended() {
							t.Errorf("it is said to be in progress, and stays %s", now.State)
						}
					case err == nil && told == plugin.Succeeded:
						if now == nil || now.State != ledger.Succeeded {
							t.Errorf("it is said to have succeeded, and is %+v", now)
						}
					case more > 0:
						t.Errorf("it is said to be %q (%v), and ran %d times more; it is %s now", told, err, more, now.State)
					case plugin.CodeOf(err) != plugin.CodeOutcomeUnknown && told != plugin.Unknown && now != nil && now.State == ledger.Succeeded:
						t.Errorf("it is said to be %q (%v), and has succeeded", told, err)
					}
				})
			}
		}
	}
}

// A caller that waits for a call which its own host should be at work on, and is not, has it go
// on. If the host cannot write, the caller hears how the call stands and does not wait for ever.
func TestNobodyWaitsForACallThatNoOneIsAtWorkOn(t *testing.T) {
	t.Parallel()
	for mended, want := range map[bool]plugin.Status{true: plugin.Succeeded, false: plugin.InProgress} {
		f := &failing{after: true, with: fmt.Errorf("%w: %w", store.ErrUncertain, store.ErrFailed)}
		b, send := senderOn(t, newMailbox(t), func(st store.Store) store.Store { f.Store = st; return f })
		b.do = send(1)
		f.writes.Store(0)
		f.at.Store(1)
		res, err := b.Call(t.Context(), asking("mail/send", `{}`))
		if err != nil || res.Status != plugin.InProgress {
			t.Fatalf("%+v, %v", res, err)
		}
		if mended {
			f.at.Store(0)
		}
		res, err = b.Await(t.Context(), "local", res.CallID)
		if err != nil || res.Status != want {
			t.Errorf("the store takes writes again: %v; the waiter hears %s, %v", mended, res.Status, err)
		}
		f.at.Store(0)
	}
}
