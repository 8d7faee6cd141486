package schedule_test

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

var momentary = []plugin.Code{plugin.CodeInternal, plugin.CodeUnavailable, plugin.CodeOverloaded, plugin.CodeRateLimited, plugin.CodeCancelled, plugin.CodeTimeout}

// TestARunNowThatErrsHoldsNothingUp: whatever the error, whether the feed is paused, and
// whether the caller is still there. The next time is run, and so is the next run.
func TestARunNowThatErrsHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for _, code := range momentary {
		for _, paused := range []bool{false, true} {
			d := newDesk(t, 1)
			id := d.create(schedule.Schedule{Spec: "every 1h"})
			if paused {
				if _, err := d.nodes[0].Pause(t.Context(), "t", id, nil); err != nil {
					t.Fatal(err)
				}
			}
			d.set(start.Add(time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			d.refuse = plugin.Errorf(code, "not now")
			d.refused = cancel
			if _, err := d.nodes[0].Run(ctx, "t", id); plugin.CodeOf(err) != code {
				t.Errorf("%s: %v", code, err)
			}
			d.refuse, d.refused = nil, nil
			cancel()
			d.want(id, "02T10:01:00 refused "+string(code))
			d.set(start.Add(2 * time.Minute))
			d.sweep() // and nothing is run of which the caller heard that it was not
			if len(d.made) != 0 {
				t.Errorf("%s: %d calls", code, len(d.made))
			}
			if paused {
				if _, err := d.nodes[0].Run(t.Context(), "t", id); err != nil {
					t.Errorf("%s: the next run: %v", code, err)
				}
				d.want(id, "02T10:01:00 refused "+string(code), "02T10:02:00 called")
				continue
			}
			d.pass(time.Hour)
			d.want(id, "02T10:01:00 refused "+string(code), "02T11:00:00 called")
		}
	}
}

// TestARunNowWhoseAnswerIsLostIsTheRun.
func TestARunNowWhoseAnswerIsLostIsTheRun(t *testing.T) {
	t.Parallel()
	for _, code := range momentary {
		d := newDesk(t, 1)
		id := d.create(schedule.Schedule{Spec: "every 1h"})
		d.set(start.Add(time.Minute))
		d.lose = plugin.Errorf(code, "it may have been made")
		if _, err := d.nodes[0].Run(t.Context(), "t", id); plugin.CodeOf(err) != code {
			t.Errorf("%s: %v", code, err)
		}
		d.lose = nil
		d.want(id, "02T10:01:00 called")
		if s, err := d.st.Schedule(t.Context(), "t", id); err != nil || len(d.made) != 1 || s.LastCall != d.made[0].ID {
			t.Errorf("%s: the last call is %+v, %v", code, s, err)
		}
	}
}

// A time is taken as run only if its call is on record: the kernel may say of a call that it is in
// progress although it is uncertain whether its claim was written.
func TestATimeIsRunOnceItsCallIsOnRecord(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	id := d.create(schedule.Schedule{Spec: "every 1h"})
	d.vanish = true
	d.set(start.Add(time.Hour))
	if err := d.nodes[0].Advance(t.Context(), "t", id); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("%v", err)
	}
	d.want(id, "02T11:00:00 "+string(store.TickDue))
	d.vanish = false
	d.pass(time.Minute)
	d.want(id, "02T11:00:00 called")
	if len(d.made) != 1 {
		t.Errorf("%d runs, want 1", len(d.made))
	}
}

// TestARunNowOfAHostThatDiedIsTakenUpSoon: not only at the next time.
func TestARunNowOfAHostThatDiedIsTakenUpSoon(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 2)
	id := d.create(schedule.Schedule{Spec: "every 3h"})
	d.set(start.Add(time.Minute))
	func() {
		defer func() { _ = recover() }()
		d.refuse = plugin.Errorf(plugin.CodeInternal, "")
		d.refused = func() { panic("the end") }
		_, _ = d.nodes[0].Run(t.Context(), "t", id)
	}()
	d.refuse, d.refused = nil, nil
	d.want(id, "02T10:01:00 "+string(store.TickDue))
	d.set(start.Add(2 * time.Minute))
	d.sweep()
	d.want(id, "02T10:01:00 called")
}
