package storetest

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func newSchedule(id string) store.ScheduleRow {
	return store.ScheduleRow{
		Tenant: "t", ID: id, OwnerType: "user", OwnerID: "ada", Scopes: []string{"run"}, Operation: "mail.digest/sync", Spec: "cron 0 9 * * *", Zone: "Europe/Berlin",
		Misfire: "catch_up", CatchUp: 3, Overlap: "queue", Overlay: `{"ocr": {}}`, Asker: "os:1000", CreatedAt: epoch,
		Input: `{"a": 1}`, State: store.ScheduleActive, NextAt: epoch.Add(time.Hour), WakeAt: epoch.Add(time.Minute), UpdatedAt: epoch,
	}
}

func newTick(schedule string, at time.Time) store.TickRow {
	return store.TickRow{Tenant: "t", ScheduleID: schedule, At: at, Since: at, Outcome: store.TickDue, UpdatedAt: at}
}

func insertSchedules(t *testing.T, st store.Store, rows ...store.ScheduleRow) {
	t.Helper()
	write(t, st, func(tx store.Tx) error {
		for _, row := range rows {
			if err := tx.InsertSchedule(row); err != nil {
				return err
			}
		}
		return nil
	})
}

func checkSchedules(t *testing.T, st store.Store, f store.ScheduleFilter, want ...store.ScheduleRow) {
	t.Helper()
	if got, err := st.Schedules(t.Context(), f); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("schedules by %+v: got %+v, %v\nwant %+v", f, got, err, want)
	}
}

func checkTicks(t *testing.T, st store.Store, f store.TickFilter, want ...store.TickRow) {
	t.Helper()
	f.Tenant, f.ScheduleID = "t", "a"
	if got, err := st.Ticks(t.Context(), f); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ticks by %+v: got %+v, %v\nwant %+v", f, got, err, want)
	}
}

func scheduleRoundTrip(t *testing.T, b *bundle) {
	first, second, paused, foreign := newSchedule("a"), newSchedule("b"), newSchedule("c"), newSchedule("a")
	second.WakeAt, second.Scopes = epoch, []string{}
	paused.State, paused.WakeAt = store.SchedulePaused, epoch
	foreign.Tenant = "u"
	insertSchedules(t, b, first, second, paused, foreign)
	checkSchedules(t, b, store.ScheduleFilter{Tenant: "t"}, paused, second, first)
	checkSchedules(t, b, store.ScheduleFilter{Tenant: "t", Before: "c", Limit: 1}, second)
	checkSchedules(t, b, store.ScheduleFilter{DueBefore: epoch}, second)
	checkSchedules(t, b, store.ScheduleFilter{DueBefore: epoch.Add(time.Minute), Limit: 2}, second, first)
	checkSchedules(t, b, store.ScheduleFilter{DueBefore: epoch.Add(-time.Microsecond)})
	if got, err := b.Schedule(t.Context(), "t", "z"); got != nil || err != nil {
		t.Errorf("a schedule that does not exist is %+v, %v", got, err)
	}

	next := first
	next.Input, next.State, next.NextAt, next.WakeAt, next.LastCall = `{}`, store.SchedulePaused, epoch.Add(2*time.Hour), time.Time{}, "call"
	next.UpdatedAt = epoch.Add(time.Second)
	next.Spec, next.Zone, next.Misfire, next.CatchUp, next.Overlap, next.Overlay, next.Asker = "every 2h", "Europe/Berlin", "catch_up", 3, "queue", `{"kb":{}}`, "asker"
	next.Operation, next.OwnerID = "other/op", "eve" // these do not change
	for i, won := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			got, err := tx.UpdateSchedule(next)
			if got != won {
				t.Errorf("update %d: won %t", i+1, got)
			}
			return err
		})
	}
	next.Operation, next.OwnerID, next.Revision = first.Operation, first.OwnerID, 1
	if got, err := b.Schedule(t.Context(), "t", "a"); err != nil || got == nil || !reflect.DeepEqual(*got, next) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, next)
	}
	if got, err := b.Schedule(t.Context(), "u", "a"); err != nil || got == nil || !reflect.DeepEqual(*got, foreign) {
		t.Errorf("another tenant's became %+v, %v", got, err)
	}
}

func tickRoundTrip(t *testing.T, b *bundle) {
	insertSchedules(t, b, newSchedule("a"))
	var ticks []store.TickRow
	for i := range 3 {
		ticks = append(ticks, newTick("a", epoch.Add(time.Duration(i)*time.Hour)))
	}
	ticks[0].Outcome, ticks[0].Since = store.TickMissed, epoch.Add(-time.Hour)
	other := newTick("b", epoch)
	write(t, b, func(tx store.Tx) error {
		for _, row := range append(ticks, other) {
			if inserted, err := tx.InsertTick(row); err != nil || !inserted {
				return fmt.Errorf("inserting %+v: %t, %w", row, inserted, err)
			}
		}
		return nil
	})
	checkTicks(t, b, store.TickFilter{}, ticks[2], ticks[1], ticks[0])
	checkTicks(t, b, store.TickFilter{Outcome: store.TickDue, Oldest: true, Limit: 1}, ticks[1])

	ticks[1].Outcome, ticks[1].CallID, ticks[1].Code, ticks[1].UpdatedAt = store.TickRefused, "call", "policy_denied", epoch.Add(time.Second)
	for i, won := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			got, err := tx.UpdateTick(store.TickDue, ticks[1])
			if got != won {
				t.Errorf("update %d: won %t", i+1, got)
			}
			return err
		})
	}
	checkTicks(t, b, store.TickFilter{}, ticks[2], ticks[1], ticks[0])
	write(t, b, func(tx store.Tx) error { return tx.DeleteTicks("t", "a", epoch.Add(3*time.Hour)) })
	checkTicks(t, b, store.TickFilter{}, ticks[2]) // it is due yet
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteSchedule("t", "a")
			if found != want {
				t.Errorf("deleting: found %t, want %t", found, want)
			}
			return err
		})
	}
	checkTicks(t, b, store.TickFilter{})
	if got, err := b.Ticks(t.Context(), store.TickFilter{Tenant: "t", ScheduleID: "b"}); err != nil || len(got) != 1 {
		t.Errorf("another schedule's ticks are %+v, %v", got, err)
	}
}

// Of all who come to a time of a schedule, one makes the tick (M16).
func tickRace(t *testing.T, b *bundle) {
	insertSchedules(t, b, newSchedule("a"))
	nodes := []store.Store{b, b.another(t), b.another(t)}
	var inserted, won atomic.Int32
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			var mine, mover bool
			err := nodes[i%len(nodes)].Write(ctx(), func(tx store.Tx) error {
				mine, mover = false, false
				var err error
				if mine, err = tx.InsertTick(newTick("a", epoch)); err != nil {
					return err
				}
				mover, err = tx.UpdateSchedule(newSchedule("a"))
				return err
			})
			if err != nil {
				t.Error(err)
			}
			if mine {
				inserted.Add(1)
			}
			if mover {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	if inserted.Load() != 1 || won.Load() != 1 {
		t.Errorf("%d made the tick and %d moved the schedule, want one each", inserted.Load(), won.Load())
	}
	checkTicks(t, b, store.TickFilter{}, newTick("a", epoch))
}

func kvPrefix(t *testing.T, b *bundle) {
	cursor := store.KVKey{Tenant: "t", Owner: "mail", Scope: "user::ada", Namespace: "cursor", Key: "feed:é:kb:"}
	var gone, kept []store.KVKey
	for _, key := range []string{"feed:é:kb:", "feed:é:kb:a", "feed:é:kb:a%"} {
		k := cursor
		k.Key = key
		gone = append(gone, k)
	}
	for _, change := range []func(*store.KVKey){
		func(k *store.KVKey) { k.Tenant = "u" }, func(k *store.KVKey) { k.Owner = "other" }, func(k *store.KVKey) { k.Scope = "user::eve" },
		func(k *store.KVKey) { k.Namespace = "storage/" }, func(k *store.KVKey) { k.Key = "feed:é:kb" }, func(k *store.KVKey) { k.Key = "xfeed:é:kb:a" },
	} {
		k := cursor
		change(&k)
		kept = append(kept, k)
	}
	write(t, b, func(tx store.Tx) error {
		for _, k := range append(gone, kept...) {
			if err := tx.PutKV(store.KVRow{KVKey: k, Value: []byte("1"), UpdatedAt: epoch}); err != nil {
				return err
			}
		}
		return nil
	})
	for _, want := range []bool{true, false} {
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteKVs(cursor)
			if found != want {
				t.Errorf("found %t, want %t", found, want)
			}
			return err
		})
	}
	for i, k := range append(gone, kept...) {
		if got, err := b.KV(t.Context(), k); err != nil || (got != nil) != (i >= len(gone)) {
			t.Errorf("%+v is %+v, %v", k, got, err)
		}
	}
}
