package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// Two hosts that look at the same schedules at the same time, ahead of time as
// far as they know, make one call of each time (M16), and one of them runs it.
func TestTwoHostsMakeOneRunOfATime(t *testing.T) {
	t.Parallel()
	url, homeA, homeB := pgtest.Open(t), t.TempDir(), t.TempDir()
	a := openOn(t, homeA, url)
	register(t, a, upper(t), true)
	shareKey(t, homeA, homeB)
	b := openOn(t, homeB, url)
	made, err := a.Schedules.Create(t.Context(), "local", schedule.Schedule{
		Owner: a.Principal, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Spec: "every 1m",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	ahead := func(h *app.App) *schedule.Engine {
		return schedule.New(schedule.Options{Store: h.Store, Resolve: h.Registry.Resolve, Call: h.Kernel.Call, Now: func() time.Time { return now }})
	}
	for range 5 {
		now = now.Add(time.Minute + time.Second)
		done := make(chan error, 2)
		for _, h := range []*app.App{a, b} {
			engine := ahead(h)
			go func() { done <- engine.Advance(context.Background(), "local", made.ID) }()
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		s, err := a.Schedules.Get(t.Context(), "local", made.ID)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := b.Kernel.Await(t.Context(), "local", s.LastCall); err != nil || string(res.Data) != `"A"` {
			t.Fatalf("the run of a feed says %s, %v", res.Data, err)
		}
	}
	rows, err := a.Store.Calls(t.Context(), store.CallFilter{Operation: "upper/upper"})
	if err != nil || len(rows) != 5 {
		t.Errorf("%d calls were made of 5 times, %v", len(rows), err)
	}
	ticks, err := a.Store.Ticks(t.Context(), store.TickFilter{Tenant: "local", ScheduleID: made.ID})
	if err != nil || len(ticks) != 5 {
		t.Fatalf("%d ticks, %v", len(ticks), err)
	}
	for i, tick := range ticks {
		row := rows[i]
		if tick.CallID != row.ID || row.Origin != string(plugin.OriginFeed) || row.Key != fmt.Sprintf("f:%s/%d", made.ID, tick.At.UnixMicro()) {
			t.Errorf("tick %+v is call %s with the key %s, by %s", tick, row.ID, row.Key, row.Origin)
		}
	}
}

// A feed whose owner the configuration does not name any more is refused, on
// the record.
func TestAFeedOfAnOwnerWhoIsGone(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	register(t, a, upper(t), true)
	made, err := a.Schedules.Create(t.Context(), "local", schedule.Schedule{
		Owner: plugin.Principal{Type: "user", ID: "gone", Scopes: []string{"*"}}, Operation: "upper/upper", Input: json.RawMessage(`{"text":"a"}`), Spec: "every 1m",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Schedules.Run(t.Context(), "local", made.ID); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("it says %v", err)
	}
	ticks, err := a.Store.Ticks(t.Context(), store.TickFilter{Tenant: "local", ScheduleID: made.ID})
	if err != nil || len(ticks) != 1 || ticks[0].Outcome != store.TickRefused || ticks[0].Code != "unauthenticated" {
		t.Errorf("the tick is %+v, %v", ticks, err)
	}
	if err := a.Ledger.Close(); err != nil { // what is written behind is there then
		t.Fatal(err)
	}
	found := false
	for e, err := range a.Store.Entries(t.Context(), store.EntryFilter{Kind: string(plugin.EntryCallRefused)}) {
		if err != nil {
			t.Fatal(err)
		}
		found = found || e.Subject == ticks[0].CallID
	}
	if !found {
		t.Error("the refusal is not on the record")
	}
}

// A run that no call is made of, since the operation may not be a feed's any more,
// leaves an entry as each refusal does.
func TestARunThatIsRefusedBeforeItsCallIsOnTheRecord(t *testing.T) {
	t.Parallel()
	needPython(t)
	a := open(t, t.TempDir())
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", `
name: mailing
version: 1.0.0
owner: test
description: Sends mail, and lists nothing that may run unattended.
runner: {kind: process, entry: plugin.py}
operations:
  send: {kind: operator, effects: [mail_send]}
`, "plugin.py", `
from mortise import Plugin

plugin = Plugin("mailing", version="1.0.0")

@plugin.operator(effects=["mail_send"])
def send() -> str:
    return "sent"

plugin.run()
`)
	register(t, a, dir, false)
	made, err := a.Schedules.Create(t.Context(), "local", schedule.Schedule{Owner: a.Principal, Operation: "mailing/send", Input: json.RawMessage(`{}`), Spec: "every 1m"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Schedules.Run(t.Context(), "local", made.ID)
	if err == nil {
		t.Fatal("what may not run unattended ran as a feed")
	}
	n, refused := 0, plugin.CodeOf(err)
	for e, err := range a.Store.Entries(t.Context(), store.EntryFilter{Kind: string(plugin.EntryFeedRefused), Subject: made.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		if !strings.Contains(string(e.Body), `"code":"`+string(refused)+`"`) {
			t.Errorf("the entry is %s", e.Body)
		}
	}
	if n != 1 {
		t.Errorf("%v left %d entries", err, n)
	}
}

// A call that a plugin schedules for later runs at that time, on a serving
// host, and not before.
func TestAnOperationIsRunLater(t *testing.T) {
	t.Parallel()
	needPython(t)
	home, dir := t.TempDir(), t.TempDir()
	write(t, home, "mortise.yaml", "policy: {allow: [{operations: [\"later/*\"], effects: [schedule_write]}]}\n")
	a := open(t, home)
	write(t, dir, "later.py", `
from mortise import Context, Plugin

plugin = Plugin("later", version="1.0.0", capabilities=["scheduler"])

@plugin.tool
def page(n: int) -> int:
    """Say a number."""
    return n

@plugin.operator(effects=["schedule_write"], brokered=True)
def start(at: str, ctx: Context) -> str:
    """Have a page read later."""
    return ctx.service("scheduler.enqueue", {"operation": "page", "params": {"n": 7}, "run_at": at})["id"]

plugin.run()
`)
	register(t, a, filepath.Join(dir, "later.py"), true)
	at := time.Now().Add(4 * time.Second).UTC().Truncate(time.Second)
	res, err := a.Kernel.Call(t.Context(), plugin.Call{
		Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "later/start", Input: json.RawMessage(`{"at":"` + at.Format(time.RFC3339) + `"}`),
	})
	var id string
	if err != nil || json.Unmarshal(res.Data, &id) != nil {
		t.Fatalf("%s, %v", res.Data, err)
	}
	if err := a.Kernel.Advance(t.Context(), "local", id); err != nil {
		t.Fatal(err)
	}
	row, err := a.Store.Call(t.Context(), "local", id)
	if err != nil || row == nil || time.Now().Before(at) && (row.State != store.CallQueued || !row.WakeAt.Equal(at) || row.Parent != res.CallID) {
		t.Fatalf("before its time it is %+v, %v", row, err)
	}
	done, err := a.Kernel.Await(t.Context(), "local", id)
	if err != nil || string(done.Data) != "7" || time.Now().Before(at) {
		t.Errorf("at %v, for %v: %s, %v", time.Now(), at, done.Data, err)
	}

	// A tool that has answered the same input before is run again: what is put on
	// record to be run has a call of its own.
	if res, err := call(t, a, "later/page", `{"n":7}`); err != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	for range 2 {
		res, err = a.Kernel.Call(t.Context(), plugin.Call{
			Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "later/start", Input: json.RawMessage(`{"at":"` + at.Format(time.RFC3339) + `"}`),
		})
		before := id
		if err != nil || json.Unmarshal(res.Data, &id) != nil || id == before {
			t.Fatalf("%s, %v", res.Data, err)
		}
		if row, err := a.Store.Call(t.Context(), "local", id); err != nil || row == nil || row.Parent != res.CallID {
			t.Fatalf("the call %s has the row %+v, %v", id, row, err)
		}
		if done, err := a.Kernel.Await(t.Context(), "local", id); err != nil || string(done.Data) != "7" {
			t.Errorf("%s, %v", done.Data, err)
		}
	}
}
