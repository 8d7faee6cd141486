package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// An unsettling store refuses, while it is told to, what records that something has
// happened.
type unsettling struct {
	store.Store
	refuses atomic.Bool
}

func (u *unsettling) Write(ctx context.Context, fn func(store.Tx) error) error {
	if u.refuses.Load() && store.IsSettling(ctx) {
		return errors.New("database is locked (5)")
	}
	return u.Store.Write(ctx, fn)
}

// However many ends of calls a store refused, none of them stands as running once it
// takes writes: an end that the host still has is recorded, and a call whose end it
// could not keep is settled by its journal.
func TestNoCallStandsAsRunningOnceTheStoreTakesWrites(t *testing.T) {
	t.Parallel()
	u := &unsettling{}
	m := newMailbox(t)
	b, _ := senderOn(t, m, func(st store.Store) store.Store { u.Store = st; return u })
	u.refuses.Store(true)
	const calls = 300 // more than the host keeps ends of
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			call := asking("mail/send", `{}`)
			call.Key = fmt.Sprint("key", i)
			if res, err := b.Call(t.Context(), call); err == nil && res.Status != plugin.InProgress {
				t.Errorf("a call whose end is not on record is %s", res.Status)
			}
		})
	}
	all.Wait()
	u.refuses.Store(false)
	if _, err := b.Due(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	states := map[store.CallState]int{}
	rows, err := b.store.Calls(t.Context(), store.CallFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		states[row.State]++
	}
	if states[store.CallRunning] > 0 || states[store.CallSucceeded]+states[store.CallQueued] != calls || states[store.CallQueued] == 0 {
		t.Errorf("once the store took writes the calls were %v", states)
	}
	due, err := b.Due(t.Context(), calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range due {
		if err := b.Advance(t.Context(), row.Tenant, row.ID); err != nil {
			t.Error(err)
		}
	}
	for i := range calls {
		call := asking("mail/send", `{}`)
		call.Key = fmt.Sprint("key", i)
		if res, err := b.Call(t.Context(), call); err != nil || res.Status != plugin.Succeeded {
			t.Errorf("key %d: %s, %v", i, res.Status, err)
		}
	}
}

// A call that stands as running in a living host, and that the host is not at work on,
// is settled as after the host's death. One that it is at work on is let alone, in
// whatever stage it is.
func TestACallThatTheHostIsNotAtWorkOnIsSettledByItsJournal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		brokered, effects bool
		want              store.CallState
	}{
		"brokered":     {true, true, store.CallQueued},
		"not brokered": {false, true, store.CallUnknown},
		"no effects":   {false, false, store.CallQueued},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMailbox(t)
			b, _ := sender(t, m, func(t *plugin.Target) {
				t.Operation.Brokered = c.brokered
				if !c.effects {
					t.Operation.Effects = nil
				}
			})
			begun, goOn := make(chan struct{}), make(chan struct{})
			b.do = func(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (plugin.Result, error) {
				close(begun)
				<-goOn
				return plugin.Result{Status: plugin.Succeeded, Data: []byte("1")}, nil
			}
			ended := make(chan error, 1)
			go func() {
				call := asking("mail/send", `{}`)
				call.ID, call.Key = "0192aaaa-0000-7000-8000-000000000002", "at work"
				_, err := b.Call(context.Background(), call)
				ended <- err
			}()
			<-begun
			call := asking("mail/send", `{}`)
			call.ID, call.Key = "0192aaaa-0000-7000-8000-000000000001", "stray"
			at := time.Now().UTC().Truncate(time.Microsecond)
			if _, _, err := b.ledger.Claim(t.Context(), ledger.Claim{
				Call: &call, Target: b.targets["mail/send"], Fingerprint: "f", InputHash: "i", Request: []byte(`{}`), Journalled: c.brokered,
				Record: &plugin.CallRecord{CallID: call.ID, Operation: "mail/send", Principal: "ann"}, At: at,
			}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Due(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			state := func(id string) store.CallState {
				row, err := b.store.Call(t.Context(), "local", id)
				if err != nil || row == nil {
					t.Fatalf("%v, %v", row, err)
				}
				return row.State
			}
			if got := state(call.ID); got != c.want {
				t.Errorf("the call that the host was not at work on is %s, want %s", got, c.want)
			}
			if got := state("0192aaaa-0000-7000-8000-000000000002"); got != store.CallRunning {
				t.Errorf("the call at work is %s", got)
			}
			close(goOn)
			if err := <-ended; err != nil {
				t.Errorf("the call at work ended with %v", err)
			}
		})
	}
}
