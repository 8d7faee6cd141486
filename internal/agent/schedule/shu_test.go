package schedule_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// endAs ends the last call that was made.
func (d *desk) endAs(state store.CallState) {
	d.Helper()
	call := d.made[len(d.made)-1]
	err := d.st.Write(d.Context(), func(tx store.Tx) error {
		row, err := tx.Call(d.Context(), call.Tenant, call.ID)
		if err != nil {
			return err
		}
		next := *row
		next.State, next.WakeAt = state, time.Time{}
		_, err = tx.UpdateCall(row.Fence(), next)
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
}

// After a run that failed the next one is told again, by a tick and by hand. One
// that has succeeded was the last.
func TestAFeedIsToldToResetUntilARunHasSucceeded(t *testing.T) {
	t.Parallel()
	const reset, plain = `{"n":1,"reset_cursor":true}`, `{"n":1}`
	d := newDesk(t, 1)
	d.m.Contract.ResetMember = "reset_cursor"
	id := d.create(schedule.Schedule{Spec: "every 1h", Input: json.RawMessage(reset)})
	for i, run := range []struct {
		input string
		end   store.CallState
	}{{reset, store.CallFailed}, {reset, store.CallUnknown}, {reset, store.CallFailed}, {reset, store.CallSucceeded}, {plain, store.CallFailed}, {plain, store.CallSucceeded}} {
		if i == 2 {
			d.set(d.now.Add(time.Second))
			if _, err := d.nodes[0].Run(t.Context(), "t", id); err != nil {
				t.Fatal(err)
			}
		} else {
			d.pass(time.Hour)
		}
		if len(d.made) != i+1 || string(d.made[i].Input) != run.input {
			t.Fatalf("run %d of %d has the input %s, not %s", i+1, len(d.made), d.made[len(d.made)-1].Input, run.input)
		}
		d.endAs(run.end)
	}
	s, err := d.nodes[0].Get(t.Context(), "t", id)
	if err != nil || string(s.Input) != plain {
		t.Errorf("the feed has the input %s, %v", s.Input, err)
	}
}

func TestAFeedThatRunsAtOnceRunsBesideItsTimes(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 2)
	id := d.create(schedule.Schedule{Spec: "every 1h", AtOnce: true})
	d.want(id, "02T10:00:00 due")
	d.sweep()
	d.want(id, "02T10:00:00 called")
	d.end()
	d.pass(30 * time.Minute)
	d.want(id, "02T10:00:00 called")
	d.pass(30 * time.Minute)
	d.want(id, "02T10:00:00 called", "02T11:00:00 called")
	// By hand it is the run that is due, and no second one.
	id = d.create(schedule.Schedule{Spec: "every 1h", AtOnce: true})
	if _, err := d.nodes[0].Run(t.Context(), "t", id); err != nil {
		t.Fatal(err)
	}
	d.want(id, "02T11:00:00 called")
	d.sweep()
	if len(d.made) != 3 {
		t.Errorf("%d calls were made", len(d.made))
	}
}

// A feed whose plugin is gone is paused by the run that finds that out, which
// says what is missing and what to do.
func TestAFeedWhosePluginIsGoneIsPausedAndSaysSo(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	id := d.create(schedule.Schedule{Spec: "every 1h"})
	op := d.m.Operations
	d.m.Operations, d.refuse = nil, plugin.Errorf(plugin.CodeNotFound, "no plugin is called mail")
	_, err := d.nodes[0].Run(t.Context(), "t", id)
	if plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Fatal(err)
	}
	for _, part := range []string{id, "mail/sync", "no plugin is called mail", "feeds resume", "feeds delete"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("there is no %q in %v", part, err)
		}
	}
	d.pass(3 * time.Hour)
	d.want(id, "02T10:00:00 refused not_found")
	if s, err := d.nodes[0].Get(t.Context(), "t", id); err != nil || s.State != store.SchedulePaused {
		t.Errorf("it is %+v, %v", s, err)
	}
	d.m.Operations, d.refuse = op, nil
	if _, err := d.nodes[0].Resume(t.Context(), "t", id, nil); err != nil {
		t.Fatal(err)
	}
	d.pass(time.Hour)
	d.want(id, "02T10:00:00 refused not_found", "02T14:00:00 called")
}
