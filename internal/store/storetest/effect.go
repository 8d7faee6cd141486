package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func newEffect(call store.CallRow, request string) store.EffectRow {
	return store.EffectRow{
		Tenant: call.Tenant, CallID: call.ID, Attempt: call.Attempt, Method: "http.request", Class: "external", Effect: "http_write",
		RequestHash: request, ProviderKey: "key of " + request, State: store.EffectIntent, At: epoch,
	}
}

// inserted is what an insertion of an effect answers.
type inserted struct {
	row, prior *store.EffectRow
	won        bool
}

func insertEffect(st store.Store, f store.Fence, row store.EffectRow) (got inserted, err error) {
	err = st.Write(ctx(), func(tx store.Tx) (err error) {
		got.row, got.prior, got.won, err = tx.InsertEffect(f, row)
		return err
	})
	return got, err
}

// begin inserts an effect that must be new, and returns it as it is kept.
func begin(t *testing.T, st store.Store, call store.CallRow, row store.EffectRow) store.EffectRow {
	t.Helper()
	got, err := insertEffect(st, call.Fence(), row)
	if err != nil || !got.won || got.row == nil || got.prior != nil {
		t.Fatalf("inserting %+v: %+v, %v", row, got, err)
	}
	return *got.row
}

func checkEffects(t *testing.T, r store.Reader, call store.CallRow, want ...store.EffectRow) {
	t.Helper()
	got, err := r.Effects(ctx(), call.Tenant, call.ID)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the journal is %+v, %v\nwant %+v", got, err, want)
	}
}

func effectRoundTrip(t *testing.T, b *bundle) {
	call, other := newCall(), newCall()
	write(t, b, insert(call))
	write(t, b, insert(other))
	full := store.EffectRow{
		Tenant: call.Tenant, CallID: call.ID, N: 1, Attempt: 3, Method: "kb.put", Class: "local", Effect: "kb_write", RequestHash: "sha256:q",
		Occurrence: 4, ProviderKey: "ключ", State: store.EffectDone, ResponseHash: "sha256:r", At: epoch.Add(time.Microsecond),
	}
	asked := full
	asked.N = 99 // the store says which it is
	if got := begin(t, b, call, asked); got != full {
		t.Errorf("inserted %+v, want %+v", got, full)
	}
	again := full
	again.Occurrence++
	again.N = 2
	begin(t, b, call, again)
	begin(t, b, other, newEffect(other, "sha256:q"))
	checkEffects(t, b, call, full, again)
	if got, err := b.Effects(t.Context(), "u", call.ID); len(got) != 0 || err != nil {
		t.Errorf("another tenant got %+v, %v", got, err)
	}

	// What was seen is told, whatever else is said of it now.
	different := asked
	different.Attempt, different.State, different.ProviderKey = 9, store.EffectIntent, "another"
	got, err := insertEffect(b, call.Fence(), different)
	if err != nil || got.row != nil || !got.won || got.prior == nil || *got.prior != full {
		t.Errorf("inserting it again: %+v, %v", got, err)
	}
	checkEffects(t, b, call, full, again)
}

func effectRace(t *testing.T, b *bundle) {
	handles := []store.Store{b, b.another(t), b.another(t)}
	call := newCall()
	write(t, b, insert(call))
	const n = 50
	var firsts atomic.Int32
	together(n, func(i int) {
		row := newEffect(call, "sha256:same")
		row.ProviderKey = fmt.Sprint(i)
		got, err := insertEffect(handles[i%len(handles)], call.Fence(), row)
		switch {
		case err != nil:
			t.Error(err)
		case !got.won:
			t.Error("the fence was lost")
		case got.row != nil && got.prior == nil && got.row.N == 1:
			firsts.Add(1)
		case got.row == nil && got.prior != nil && got.prior.N == 1:
		default:
			t.Errorf("caller %d got %+v", i, got)
		}
	})
	if firsts.Load() != 1 {
		t.Errorf("%d callers were the first", firsts.Load())
	}

	together(n, func(i int) {
		if got, err := insertEffect(handles[i%len(handles)], call.Fence(), newEffect(call, fmt.Sprint(i))); err != nil || got.row == nil {
			t.Errorf("effect %d: %+v, %v", i, got, err)
		}
	})
	journal, err := b.Effects(t.Context(), call.Tenant, call.ID)
	if err != nil || len(journal) != n+1 {
		t.Fatalf("the journal has %d effects, %v", len(journal), err)
	}
	for i, row := range journal {
		if row.N != int64(i)+1 {
			t.Errorf("effect %d has the number %d", i+1, row.N)
		}
	}
}

// wrongFences returns fences that differ from f in one thing each.
func wrongFences(f store.Fence) map[string]store.Fence {
	wrong := make(map[string]store.Fence)
	for name, change := range map[string]func(*store.Fence){
		"tenant":  func(f *store.Fence) { f.Tenant = "u" },
		"id":      func(f *store.Fence) { f.ID = "x" },
		"state":   func(f *store.Fence) { f.State = store.CallInProgress },
		"attempt": func(f *store.Fence) { f.Attempt++ },
		"lease":   func(f *store.Fence) { f.Lease = "stolen" },
	} {
		other := f
		change(&other)
		wrong[name] = other
	}
	return wrong
}

func updateEffect(t *testing.T, st store.Store, f store.Fence, row store.EffectRow) (won bool) {
	t.Helper()
	write(t, st, func(tx store.Tx) (err error) { won, err = tx.UpdateEffect(f, row); return err })
	return won
}

func effectFence(t *testing.T, b *bundle) {
	call := newCall()
	write(t, b, insert(call))
	row := begin(t, b, call, newEffect(call, "sha256:q"))
	second := begin(t, b, call, newEffect(call, "sha256:other"))
	done := row
	done.Attempt, done.State, done.ResponseHash, done.At = 2, store.EffectDone, "sha256:r", epoch.Add(time.Second)
	for name, f := range wrongFences(call.Fence()) {
		got, err := insertEffect(b, f, newEffect(call, "sha256:new"))
		if err != nil || got != (inserted{}) {
			t.Errorf("with a wrong %s a new effect got %+v, %v", name, got, err)
		}
		if got, err := insertEffect(b, f, row); err != nil || got != (inserted{}) {
			t.Errorf("with a wrong %s an old effect got %+v, %v", name, got, err)
		}
		if updateEffect(t, b, f, done) {
			t.Errorf("a wrong %s won", name)
		}
	}
	checkEffects(t, b, call, row, second)

	changed := done
	changed.Method, changed.Class, changed.Effect, changed.RequestHash, changed.ProviderKey, changed.Occurrence = "m", "c", "e", "h", "p", 7
	if !updateEffect(t, b, call.Fence(), changed) {
		t.Error("the right fence lost")
	}
	checkEffects(t, b, call, done, second)

	none := done
	none.N = 3
	if err := b.Write(t.Context(), func(tx store.Tx) error { tx.UpdateEffect(call.Fence(), none); return nil }); err == nil {
		t.Error("an effect was updated that was never inserted")
	}
	checkEffects(t, b, call, done, second)
}

func lateEffect(t *testing.T, b *bundle) {
	for _, state := range []store.CallState{store.CallQueued, store.CallInProgress, store.CallRunning, store.CallUnknown, store.CallFailed} {
		call := newCall()
		write(t, b, insert(call))
		row := begin(t, b, call, newEffect(call, "sha256:q"))
		done := begin(t, b, call, newEffect(call, "sha256:other"))
		done.State = store.EffectDone
		updateEffect(t, b, call.Fence(), done)
		late := func(row store.EffectRow) (found bool) {
			t.Helper()
			row.ResponseHash, row.At = "sha256:late", epoch.Add(time.Hour)
			write(t, b, func(tx store.Tx) (err error) { found, err = tx.LateEffect(row); return err })
			return found
		}
		move(t, b, &call, state)
		other, none, newer := row, row, row
		other.Tenant = "u"
		none.N = 9
		newer.Attempt++ // one that another attempt has begun again is that one's to answer
		for _, row := range []store.EffectRow{done, other, none, newer} {
			if late(row) {
				t.Errorf("%s: an answer was late for %+v", state, row)
			}
		}
		checkEffects(t, b, call, row, done)
		if !late(row) || late(row) {
			t.Errorf("%s: an answer after the end of its attempt is kept once", state)
		}
		row.State, row.ResponseHash, row.At = store.EffectLate, "sha256:late", epoch.Add(time.Hour)
		checkEffects(t, b, call, row, done)
	}
}

// move brings a call into another state.
func move(t *testing.T, st store.Store, call *store.CallRow, state store.CallState) {
	t.Helper()
	next := *call
	next.State = state
	write(t, st, func(tx store.Tx) error {
		won, err := tx.UpdateCall(call.Fence(), next)
		if err == nil && !won {
			t.Errorf("call %s is no longer %s", call.ID, call.State)
		}
		return err
	})
	*call = next
}

// What the one who ends a call reads in its journal is all there will ever be.
func endedJournal(t *testing.T, b *bundle) {
	handles := []store.Store{b, b.another(t), b.another(t)}
	for range 20 {
		call := newCall()
		write(t, b, insert(call))
		var begun atomic.Int32
		var seen []store.EffectRow
		together(9, func(i int) {
			if i > 0 {
				got, err := insertEffect(handles[i%len(handles)], call.Fence(), newEffect(call, fmt.Sprint(i)))
				if err != nil {
					t.Error(err)
				}
				if got.won {
					begun.Add(1)
				}
				return
			}
			err := b.Write(ctx(), func(tx store.Tx) error {
				ended := call
				ended.State = store.CallFailed
				won, err := tx.UpdateCall(call.Fence(), ended)
				if err != nil || !won {
					return fmt.Errorf("ending the call: won %t, %w", won, err)
				}
				seen, err = tx.Effects(ctx(), call.Tenant, call.ID)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		journal, err := b.Effects(t.Context(), call.Tenant, call.ID)
		if err != nil || !slices.Equal(journal, seen) || len(journal) != int(begun.Load()) {
			t.Errorf("at its end the call had %d effects, %d were begun, and now it has %d, %v", len(seen), begun.Load(), len(journal), err)
		}
	}
}
