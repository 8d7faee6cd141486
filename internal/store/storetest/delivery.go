package storetest

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func deliveries(t *testing.T, b *bundle) {
	var taken atomic.Int64
	var all sync.WaitGroup
	other := b.another(t)
	for i := range 16 {
		all.Go(func() {
			var fresh bool
			if err := []store.Store{b, other}[i%2].Write(t.Context(), func(tx store.Tx) (err error) {
				fresh, err = tx.InsertDelivery("t", "desk/slack", "id:1", epoch)
				return err
			}); err != nil {
				t.Error(err)
			}
			if fresh {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 1 {
		t.Errorf("a delivery was taken %d times", taken.Load())
	}
	write(t, b, func(tx store.Tx) error {
		fresh, err := tx.InsertDelivery("t", "door/slack", "id:1", epoch)
		if !fresh {
			t.Error("at another place it was not taken")
		}
		return err
	})
	write(t, b, func(tx store.Tx) error {
		for i := range 3 {
			if _, err := tx.InsertDelivery("t", "desk/slack", fmt.Sprint("id:later", i), epoch.Add(time.Hour)); err != nil {
				return err
			}
		}
		return nil
	})
	old := func(before time.Time) bool {
		t.Helper()
		tenants, err := b.DeliveredBefore(t.Context(), before, 10)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Equal(tenants, []string{"t"})
	}
	cut := epoch.Add(time.Minute)
	for i, want := range []bool{true, true, false} { // one at a time
		if old(cut) != want {
			t.Errorf("before %d: there is something old: %t", i, !want)
		}
		write(t, b, func(tx store.Tx) error {
			found, err := tx.DeleteDeliveries("t", cut, 1)
			if found != want {
				t.Errorf("forgetting %d: %t, want %t", i, found, want)
			}
			return err
		})
	}
	for mark, want := range map[string]bool{"id:1": false, "id:later0": true} {
		if there, err := b.Delivered(t.Context(), "t", "desk/slack", mark); err != nil || there != want {
			t.Errorf("%s is remembered: %t, %v", mark, there, err)
		}
	}
}

func outbox(t *testing.T, b *bundle) {
	row := store.OutboxRow{Tenant: "t", ID: "o1", Agent: "desk", Plugin: "audit", Event: "tool.after@v1", Body: []byte(`{"a":1}`), CreatedAt: epoch, NextAt: epoch.Add(time.Second)}
	add := func(row store.OutboxRow, most, waiting int) {
		t.Helper()
		write(t, b, func(tx store.Tx) error {
			n, err := tx.InsertOutbox(row, most)
			if n != waiting {
				t.Errorf("%d wait beside %s, want %d", n, row.ID, waiting)
			}
			return err
		})
	}
	add(row, 1, 0)
	due := func(at time.Time, want ...store.OutboxRow) {
		t.Helper()
		got, err := b.Outbox(t.Context(), store.OutboxFilter{Tenant: "t", Due: at, Limit: 10})
		if err != nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("due at %s: %+v, %v\nwant %+v", at, got, err, want)
		}
	}
	due(epoch)
	due(epoch.Add(time.Second), row)
	// What comes later for the same webhook waits for it, and for others not.
	later, other := row, row
	later.ID, later.NextAt = "o2", epoch
	add(later, 1, 1) // too many
	add(later, 2, 1)
	other.ID, other.Agent, other.NextAt = "o3", "door", epoch
	add(other, 2, 0)
	due(epoch, other)
	due(epoch.Add(time.Second), other, row)
	if got, err := b.Outbox(t.Context(), store.OutboxFilter{Tenant: "t", Agent: "desk", Plugin: "audit"}); err != nil || len(got) != 1 || got[0].ID != "o1" {
		t.Errorf("the next of one webhook: %+v, %v", got, err)
	}
	write(t, b, func(tx store.Tx) error { _, err := tx.DeleteOutbox("t", "o3"); return err })

	next := row
	next.Attempt, next.NextAt, next.Problem = 1, epoch.Add(time.Minute), "it answered 500"
	for _, want := range []bool{true, false} { // a second one tried it at the same time
		write(t, b, func(tx store.Tx) error {
			won, err := tx.UpdateOutbox(0, next)
			if won != want {
				t.Errorf("moving it on: %t, want %t", won, want)
			}
			return err
		})
	}
	due(epoch.Add(time.Second))
	due(epoch.Add(time.Minute), next)
	next.Attempt, next.NextAt = 2, time.Time{}
	write(t, b, func(tx store.Tx) error { _, err := tx.UpdateOutbox(1, next); return err })
	due(epoch.Add(24*time.Hour), later)
	write(t, b, func(tx store.Tx) error {
		found, err := tx.DeleteOutbox("t", "o1")
		if !found {
			t.Error("it was gone")
		}
		return err
	})
}
