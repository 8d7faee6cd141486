package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A desk is a store with nodes whose clock a test sets. Calls it keeps as the
// kernel does: one for each place, queued, until the test ends them.
type desk struct {
	*testing.T
	st    store.Store
	nodes []*schedule.Engine

	clock sync.Mutex // guards now
	now   time.Time

	mu      sync.Mutex             // guards what follows, and is held while the store writes
	refuse  error                  // what calls are refused with
	refused func()                 // what happens then
	lose    error                  // what is said of calls that are made
	vanish  bool                   // calls are said to be in progress, and are not on record
	made    []plugin.Call          // in their order
	calls   map[string]plugin.Call // by place
	m       *plugin.Manifest
	owner   plugin.Principal // as it is now
}

var start = at("2026-03-02T10:00:00Z")

func newDesk(t *testing.T, nodes int) *desk {
	t.Helper()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &desk{T: t, st: st, now: start, calls: map[string]plugin.Call{}, owner: ada, m: &plugin.Manifest{
		Name: "mail", Version: "1.0.0", Dialect: "native", Operations: []*plugin.Operation{{Name: "sync", Kind: plugin.Operator, Brokered: true, Effects: []string{"kb_write", "cursor_write"}}},
	}}
	for range nodes {
		d.nodes = append(d.nodes, schedule.New(schedule.Options{
			Store: st, Now: d.time,
			Resolve: func(_ context.Context, ref string) (*plugin.Target, error) {
				_, op, _ := strings.Cut(ref, "/")
				if found := d.m.Operation(op); found != nil {
					return &plugin.Target{Manifest: d.m, Operation: found}, nil
				}
				return nil, plugin.Errorf(plugin.CodeNotFound, "no plugin is called %s", ref)
			},
			Call:   d.call,
			Rights: func(_ context.Context, _ string, p plugin.Principal) plugin.Principal { return d.owner },
		}))
	}
	return d
}

var ada = plugin.Principal{Type: "user", ID: "ada", Scopes: []string{"run"}}

// call is the kernel's claim of a call that has no waiting caller.
func (d *desk) call(ctx context.Context, call plugin.Call) (plugin.Result, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse != nil {
		if d.refused != nil {
			d.refused()
		}
		return plugin.Result{}, d.refuse
	}
	if d.vanish {
		return plugin.Result{CallID: call.ID, Status: plugin.InProgress}, nil
	}
	if prior, seen := d.calls[call.Place]; seen {
		return plugin.Result{CallID: prior.ID, Status: plugin.InProgress, Replayed: true}, nil
	}
	d.calls[call.Place] = call
	d.made = append(d.made, call)
	err := d.st.Write(ctx, func(tx store.Tx) error {
		_, err := tx.InsertCall(store.CallRow{
			Tenant: call.Tenant, ID: call.ID, Operation: call.Operation, Key: "f:" + call.Place, State: store.CallQueued, CreatedAt: start, UpdatedAt: start, WakeAt: start,
		})
		return err
	})
	if d.lose != nil {
		return plugin.Result{}, d.lose
	}
	return plugin.Result{CallID: call.ID, Status: plugin.InProgress}, err
}

// end ends all calls that were made so far.
func (d *desk) end() {
	d.Helper()
	for _, call := range d.made {
		err := d.st.Write(d.Context(), func(tx store.Tx) error {
			row, err := tx.Call(d.Context(), call.Tenant, call.ID)
			if err != nil || row.State.Ended() {
				return err
			}
			next := *row
			next.State, next.WakeAt = store.CallSucceeded, time.Time{}
			_, err = tx.UpdateCall(row.Fence(), next)
			return err
		})
		if err != nil {
			d.Fatal(err)
		}
	}
}

func (d *desk) create(s schedule.Schedule) string {
	d.Helper()
	s.Owner, s.Operation = ada, "mail/sync"
	made, err := d.nodes[0].Create(d.Context(), "t", s, nil)
	if err != nil {
		d.Fatal(err)
	}
	return made.ID
}

// sweep is one look of every node at what is due.
func (d *desk) sweep() {
	d.Helper()
	for _, node := range d.nodes {
		rows, err := node.Due(d.Context(), 100)
		if err != nil {
			d.Fatal(err)
		}
		for _, row := range rows {
			if err := node.Advance(d.Context(), row.Tenant, row.ID); err != nil {
				d.Fatal(err)
			}
		}
	}
}

// pass lets time pass, with a sweep every ten seconds and runs that take no time.
func (d *desk) pass(span time.Duration) {
	d.Helper()
	for end := d.now.Add(span); d.now.Before(end); {
		d.set(d.now.Add(10 * time.Second))
		d.sweep()
		d.end()
	}
}

func (d *desk) set(now time.Time) {
	d.clock.Lock()
	defer d.clock.Unlock()
	d.now = now
}

func (d *desk) time() time.Time {
	d.clock.Lock()
	defer d.clock.Unlock()
	return d.now
}

// ticks returns what became of the times of a schedule, oldest first.
func (d *desk) ticks(id string) []string {
	d.Helper()
	rows, err := d.st.Ticks(d.Context(), store.TickFilter{Tenant: "t", ScheduleID: id, Oldest: true})
	if err != nil {
		d.Fatal(err)
	}
	var all []string
	for _, row := range rows {
		line := row.At.Format("02T15:04:05") + " " + string(row.Outcome)
		if !row.Since.Equal(row.At) {
			line = row.Since.Format("02T15:04:05") + ".." + line
		}
		if row.Code != "" {
			line += " " + row.Code
		}
		if (row.CallID != "") != (row.Outcome == store.TickCalled || row.Outcome == store.TickRefused) {
			line += " with call " + row.CallID
		}
		all = append(all, line)
	}
	return all
}

func (d *desk) want(id string, want ...string) {
	d.Helper()
	if got := d.ticks(id); !slices.Equal(got, want) {
		d.Errorf("the ticks are\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestEveryTimeIsOneCallInTheNameOfItsOwner(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	id := d.create(schedule.Schedule{Spec: "every 15m", Input: json.RawMessage(`{"kb_id": "k1"}`), Overlay: json.RawMessage(`{"ocr":{"mode":"never"},"exec":{"schedule_id":"another"}}`)})
	d.owner.Scopes = nil
	d.pass(40 * time.Minute)
	d.want(id, "02T10:15:00 called", "02T10:30:00 called")
	if len(d.made) != 2 {
		t.Fatalf("%d calls were made, want 2", len(d.made))
	}
	call := d.made[1]
	var overlay struct {
		OCR  struct{ Mode string }
		Exec struct {
			ScheduleID string `json:"schedule_id"`
		}
	}
	if err := json.Unmarshal(call.Overlay, &overlay); err != nil {
		t.Fatal(err)
	}
	place := fmt.Sprintf("%s/%d", id, at("2026-03-02T10:30:00Z").UnixMicro())
	switch {
	case call.Tenant != "t" || call.Principal.ID != "ada" || len(call.Principal.Scopes) != 0 || call.Origin != plugin.OriginFeed || !call.NoWait:
		t.Errorf("the call is %+v", call)
	case call.Operation != "mail/sync" || string(call.Input) != `{"kb_id": "k1"}` || call.Place != place:
		t.Errorf("the call is %+v, want the place %s", call, place)
	case overlay.OCR.Mode != "never" || overlay.Exec.ScheduleID != id:
		t.Errorf("the host decides %s", call.Overlay)
	}
}

// Of any number of nodes, one makes the run of a time (M16).
func TestTwoNodesMakeOneRunOfATime(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 3)
	id := d.create(schedule.Schedule{Spec: "every 1m"})
	for range 30 {
		d.set(d.now.Add(time.Minute))
		var wg sync.WaitGroup
		for _, node := range d.nodes {
			wg.Go(func() {
				if err := node.Advance(t.Context(), "t", id); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		d.end()
	}
	if n := len(d.made); n != 30 || len(d.ticks(id)) != 30 {
		t.Errorf("%d calls were made of %d ticks, want 30 of each", n, len(d.ticks(id)))
	}
}

// A node may die after the tick and before the call, or after the call and
// before it noted that: the next one goes on, with the same call.
func TestTheTickOfADeadNodeIsTakenUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 2)
	id := d.create(schedule.Schedule{Spec: "every 1h"})
	d.set(start.Add(time.Hour))
	d.refuse = plugin.Errorf(plugin.CodeUnavailable, "the host is stopping")
	if err := d.nodes[0].Advance(t.Context(), "t", id); err == nil {
		t.Error("a call that could not be made is no error")
	}
	d.want(id, "02T11:00:00 due")
	d.refuse = nil
	// The call that the dead node made, as far as the store knows.
	place := fmt.Sprintf("%s/%d", id, d.now.UnixMicro())
	if _, err := d.call(t.Context(), plugin.Call{Tenant: "t", ID: "first", Operation: "mail/sync", Place: place}); err != nil {
		t.Fatal(err)
	}
	if err := d.nodes[1].Advance(t.Context(), "t", id); err != nil {
		t.Fatal(err)
	}
	d.want(id, "02T11:00:00 called")
	if len(d.made) != 1 {
		t.Errorf("%d calls were made, want 1", len(d.made))
	}
	if s, err := d.nodes[0].Get(t.Context(), "t", id); err != nil || s.LastCall != "first" {
		t.Errorf("the last call is %q, %v", s.LastCall, err)
	}
}

// Missed times are treated by policy, and never one by one however many there
// are (F28).
func TestMissedTimes(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for _, test := range []struct {
		name string
		s    schedule.Schedule
		away time.Duration
		want []string
	}{
		{"skip", schedule.Schedule{Spec: "every 1h", Misfire: schedule.MisfireSkip}, 4*time.Hour + 30*time.Minute,
			[]string{"02T11:00:00..02T14:00:00 missed"}},
		{"skip, and the last is on time", schedule.Schedule{Spec: "every 1h", Misfire: schedule.MisfireSkip}, 4*time.Hour + 30*time.Second,
			[]string{"02T11:00:00..02T13:00:00 missed", "02T14:00:00 called"}},
		{"skip one", schedule.Schedule{Spec: "every 1h", Misfire: schedule.MisfireSkip}, 90 * time.Minute, []string{"02T11:00:00 missed"}},
		{"once", schedule.Schedule{Spec: "every 1h"}, 4*time.Hour + 30*time.Minute, []string{"02T11:00:00..02T14:00:00 called"}},
		{"once, one", schedule.Schedule{Spec: "every 1h"}, 90 * time.Minute, []string{"02T11:00:00 called"}},
		{"catch up", schedule.Schedule{Spec: "every 1h", Misfire: schedule.MisfireCatchUp, CatchUp: 2}, 4*time.Hour + 30*time.Minute,
			[]string{"02T11:00:00..02T12:00:00 missed", "02T13:00:00 called", "02T14:00:00 called"}},
		{"catch up, and the last is on time", schedule.Schedule{Spec: "every 1h", Misfire: schedule.MisfireCatchUp, CatchUp: 2}, 4 * time.Hour,
			[]string{"02T11:00:00 missed", "02T12:00:00 called", "02T13:00:00 called", "02T14:00:00 called"}},
		{"catch up with fewer", schedule.Schedule{Spec: "every 1h", Misfire: schedule.MisfireCatchUp, CatchUp: 100}, 2*time.Hour + 30*time.Minute,
			[]string{"02T11:00:00 called", "02T12:00:00 called"}},
		{"by the wall", schedule.Schedule{Spec: "cron 0 9 * * 1-5", Zone: "Europe/Berlin", Misfire: schedule.MisfireCatchUp, CatchUp: 1}, 4*day + 12*time.Hour,
			[]string{"03T08:00:00..05T08:00:00 missed", "06T08:00:00 called"}},
		{"a jump of ten years", schedule.Schedule{Spec: "cron * * * * *", Misfire: schedule.MisfireCatchUp, CatchUp: 1}, 3652 * day,
			[]string{"02T10:01:00..01T09:58:00 missed", "01T09:59:00 called", "01T10:00:00 called"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, 2)
			id := d.create(test.s)
			d.set(start.Add(test.away))
			for range 5 {
				d.sweep()
				d.end()
				d.set(d.now.Add(6 * time.Second))
			}
			d.want(id, test.want...)
		})
	}
}

// A time that comes while a run is not over is passed over, or waits.
func TestTimesThatOverlap(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 2)
	skips := d.create(schedule.Schedule{Spec: "every 10m"})
	queues := d.create(schedule.Schedule{Spec: "every 10m", Overlap: schedule.OverlapQueue})
	for range 3 {
		d.set(d.now.Add(10 * time.Minute))
		d.sweep()
	}
	d.want(skips, "02T10:10:00 called", "02T10:20:00 overlapped", "02T10:30:00 overlapped")
	d.want(queues, "02T10:10:00 called", "02T10:20:00 due", "02T10:30:00 due")
	d.end()
	d.set(d.now.Add(10 * time.Second))
	d.sweep()
	d.want(queues, "02T10:10:00 called", "02T10:20:00 called", "02T10:30:00 due")
	d.end()
	d.set(d.now.Add(10 * time.Second))
	d.sweep()
	d.want(queues, "02T10:10:00 called", "02T10:20:00 called", "02T10:30:00 called")
	d.end()
	d.set(start.Add(40 * time.Minute))
	d.sweep()
	d.want(skips, "02T10:10:00 called", "02T10:20:00 overlapped", "02T10:30:00 overlapped", "02T10:40:00 called")
}

// What waits is bounded: a run that never ends lets no more than 100 wait.
func TestNoMoreThanAHundredTimesWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	id := d.create(schedule.Schedule{Spec: "every 1m", Overlap: schedule.OverlapQueue})
	for range 105 {
		d.set(d.now.Add(time.Minute))
		d.sweep()
	}
	count := map[string]int{}
	for _, line := range d.ticks(id) {
		count[line[strings.LastIndex(line, " ")+1:]]++
	}
	if count["called"] != 1 || count["due"] != 100 || count["overlapped"] != 4 {
		t.Errorf("the ticks are %v", count)
	}
}

// Putting the clock back makes no second run, and putting it forward no storm.
func TestJumpsOfTheClock(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 2)
	id := d.create(schedule.Schedule{Spec: "every 1h"})
	d.pass(2*time.Hour + time.Minute)
	want := []string{"02T11:00:00 called", "02T12:00:00 called"}
	d.want(id, want...)
	d.set(start.Add(-24 * time.Hour))
	d.sweep()
	d.set(start.Add(30 * time.Minute))
	d.pass(2 * time.Hour)
	d.want(id, want...)
	if s, err := d.nodes[0].Resume(t.Context(), "t", id, nil); err != nil || !s.Next.Equal(start.Add(3*time.Hour)) {
		t.Errorf("it goes on at %v, %v", s.Next, err)
	}
	// Far ahead, and back again: the engine that sees it restarts the schedule.
	d.set(start.Add(1000 * time.Hour))
	d.sweep()
	d.end()
	d.set(start.Add(30 * time.Minute))
	if _, err := d.nodes[1].Resume(t.Context(), "t", id, nil); err != nil {
		t.Fatal(err)
	}
	d.pass(3 * time.Hour)
	if n := len(d.made); n != 4 { // 11 and 12, the one far ahead, and 13
		t.Errorf("%d calls were made, want 4: %v", n, d.ticks(id))
	}
}

func TestRunsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	id := d.create(schedule.Schedule{Spec: "every 1h"})
	d.refuse = plugin.Errorf(plugin.CodePolicyDenied, "nothing allows it")
	d.pass(time.Hour)
	d.refuse = nil
	d.pass(time.Hour)
	d.m.Feed = plugin.Feed{Allowed: []string{"digest"}} // a later version says
	d.pass(time.Hour)
	d.want(id, "02T11:00:00 refused policy_denied", "02T12:00:00 called", "02T13:00:00 refused invalid_input")
	if len(d.made) != 1 {
		t.Errorf("%d calls were made, want 1", len(d.made))
	}
}

// What the host itself cannot do is tried again for an hour.
func TestRunsThatCannotBeMadeAreTriedAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	id := d.create(schedule.Schedule{Spec: "every 3h"})
	d.refuse = plugin.Errorf(plugin.CodeOverloaded, "too much is going on")
	d.set(start.Add(3 * time.Hour))
	for range 59 {
		if err := d.nodes[0].Advance(t.Context(), "t", id); plugin.CodeOf(err) != plugin.CodeOverloaded {
			t.Fatalf("it says %v", err)
		}
		d.set(d.now.Add(time.Minute))
	}
	d.want(id, "02T13:00:00 due")
	d.set(d.now.Add(time.Minute))
	d.sweep()
	d.want(id, "02T13:00:00 refused overloaded")
}

func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	id := d.create(schedule.Schedule{Spec: "every 1h", Overlap: schedule.OverlapQueue})
	for range 2 {
		d.set(d.now.Add(time.Hour))
		d.sweep()
	}
	d.want(id, "02T11:00:00 called", "02T12:00:00 due")
	if s, err := d.nodes[0].Pause(t.Context(), "t", id, nil); err != nil || s.State != store.SchedulePaused || s.Next != nil {
		t.Fatalf("paused: %+v, %v", s, err)
	}
	d.end()
	d.pass(2 * time.Hour)
	d.want(id, "02T11:00:00 called", "02T12:00:00 due")
	if s, err := d.nodes[0].Resume(t.Context(), "t", id, nil); err != nil || s.State != store.ScheduleActive || !s.Next.Equal(start.Add(5*time.Hour)) {
		t.Fatalf("resumed: %+v, %v", s, err)
	}
	d.pass(time.Hour)
	d.want(id, "02T11:00:00 called", "02T12:00:00 missed", "02T15:00:00 called")
	if _, err := d.nodes[0].Delete(t.Context(), "t", id, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.nodes[0].Advance(t.Context(), "t", id); err != nil {
		t.Errorf("a feed that was deleted meanwhile: %v", err)
	}
	if _, err := d.nodes[0].Pause(t.Context(), "t", id, nil); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("a feed that there is not: %v", err)
	}
}

func TestARunNow(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1)
	d.m.Contract.ResetMember = "reset_cursor"
	id := d.create(schedule.Schedule{Spec: "every 1h", Input: json.RawMessage(`{"n":12345678901234567890,"reset_cursor":true}`)})
	res, err := d.nodes[0].Run(t.Context(), "t", id)
	if err != nil || res.CallID != d.made[0].ID {
		t.Fatalf("it says %+v, %v", res, err)
	}
	if _, err := d.nodes[0].Run(t.Context(), "t", id); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("a second one beside it: %v", err)
	}
	d.end()
	d.pass(time.Hour)
	d.want(id, "02T10:00:00 called", "02T11:00:00 called")
	if got := string(d.made[1].Input); got != `{"n":12345678901234567890}` {
		t.Errorf("the second run starts over too: %s", got)
	}
	d.set(d.now.Add(time.Second))
	d.refuse = plugin.Errorf(plugin.CodePolicyDenied, "nothing allows it")
	if _, err := d.nodes[0].Run(t.Context(), "t", id); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("one that is refused: %v", err)
	}
}
