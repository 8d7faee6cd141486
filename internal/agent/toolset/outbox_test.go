package toolset

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store"
)

func TestWhenAnEventIsTriedAgain(t *testing.T) {
	t.Parallel()
	w, now := &Webhooks{Waits: outboxWaits}, time.Now()
	for i, want := range []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour} {
		row := &store.OutboxRow{Attempt: int64(i) + 1, CreatedAt: now}
		seen := map[time.Duration]bool{}
		for range 100 {
			wait, again := w.next(row, row.CreatedAt, 0)
			if !again || wait < want*4/5 || wait > want*6/5 {
				t.Errorf("after attempt %d: %s, %t", row.Attempt, wait, again)
			}
			seen[wait] = true
		}
		if len(seen) < 10 {
			t.Errorf("after attempt %d always the same", row.Attempt)
		}
		if wait, _ := w.next(row, row.CreatedAt, 24*time.Hour); wait < time.Hour || wait > max(time.Hour, want*6/5) {
			t.Errorf("asked to wait for a day it waits for %s", wait)
		}
	}
	if _, again := w.next(&store.OutboxRow{Attempt: 7, CreatedAt: now}, now, 0); again {
		t.Error("an eighth attempt")
	}
	if _, again := w.next(&store.OutboxRow{Attempt: 1, CreatedAt: now.Add(-13 * time.Hour)}, now, 0); again {
		t.Error("one that waited too long behind others is tried twice")
	}
}
