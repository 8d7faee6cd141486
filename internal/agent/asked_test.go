package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// TestTheEndOfACallThatWasAskedAboutIsToldOnce: however the turn ends that asks a person about a
// call, its conversation hears how the call ended, and its plugins hear of that once.
func TestTheEndOfACallThatWasAskedAboutIsToldOnce(t *testing.T) {
	t.Parallel()
	failure := plugin.Errorf(plugin.CodePluginError, "it failed after all")
	labelled := plugin.Result{Status: plugin.Failed, Labels: []string{plugin.Untrusted}}
	for name, c := range map[string]struct {
		ask   func(ended func()) (*agent.Reply, error) // ended: another host has the call end
		dies  bool                                     // the host is taken for dead while it asks
		told  int                                      // how many messages of the host there are
		tools int                                      // how many results of tools tell of the end
	}{
		"answered here": {func(func()) (*agent.Reply, error) { return &agent.Reply{Result: labelled, Err: failure}, nil }, false, 0, 1},
		"answered elsewhere": {func(ended func()) (*agent.Reply, error) {
			ended()
			return &agent.Reply{Result: labelled, Err: failure}, nil
		}, false, 0, 1},
		"left open":            {func(func()) (*agent.Reply, error) { return nil, nil }, false, 1, 0},
		"asking fails":         {func(func()) (*agent.Reply, error) { return nil, errors.New("the terminal is gone") }, false, 1, 0},
		"asking panics":        {func(func()) (*agent.Reply, error) { panic("the terminal is gone") }, false, 1, 0},
		"killed while it asks": {func(ended func()) (*agent.Reply, error) { ended(); return nil, errors.New("killed") }, true, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			other := deskOn(t, d.Store)
			outcome := func(context.Context, string, string) (plugin.Result, error) { return labelled, failure }
			d.Outcome, other.Outcome = outcome, outcome
			if c.dies {
				other.Now = func() time.Time { return time.Now().Add(time.Hour) }
			}
			heard := 0
			watch := event.Subscription{Event: event.ToolAfter, Listen: func(context.Context, *event.Payload) error {
				d.mu.Lock()
				defer d.mu.Unlock()
				heard++
				return nil
			}}
			d.equip("one", "watch", watch)
			other.equip("one", "watch", watch)
			d.do = func(_ context.Context, call plugin.Call) (plugin.Result, error) {
				return plugin.Result{Status: plugin.PendingApproval, CallID: call.ID, Approval: &plugin.Pending{ID: "apr_1"}}, nil
			}
			ended := func(at *desk, call string) {
				at.Ended(t.Context(), &store.CallRow{Tenant: "t", ID: call, Agent: "one", State: store.CallFailed})
			}
			i, session := d.open("one")
			d.say(wish("do", "{}", "u1"), llm.Move{Text: "done"})
			call := ""
			_, _ = i.Turn(t.Context(), session, hello("go"), agent.Audience{Ask: func(u agent.Use) (*agent.Reply, error) {
				call = u.CallID
				return c.ask(func() { ended(other, call) })
			}})
			ended(other, call) // as every host says that comes by
			ended(d, call)

			rows, err := d.Store.Messages(t.Context(), "t", session, 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			told, tools := 0, 0
			for _, row := range rows {
				var said struct {
					Text    string           `json:"text"`
					Results []llm.ToolResult `json:"results"`
				}
				if err := json.Unmarshal(row.Body, &said); err != nil {
					t.Fatal(err)
				}
				tells := false
				if strings.Contains(said.Text, "The host says") && strings.Contains(said.Text, failure.Message) {
					told, tells = told+1, true
				}
				for _, r := range said.Results {
					if strings.Contains(r.Text, failure.Message) {
						tools, tells = tools+1, true
					}
				}
				if tells && (len(row.Labels) != 1 || row.Labels[0] != plugin.Untrusted) {
					t.Errorf("what tells of the error has the labels %q", row.Labels)
				}
			}
			if told != c.told || tools != c.tools || heard != 1 {
				t.Errorf("the host told of it %d times and tools %d times, want %d and %d; the plugins heard of it %d times, want 1", told, tools, c.told, c.tools, heard)
			}
			if left, err := d.Store.Outbox(t.Context(), store.OutboxFilter{Tenant: "t", Limit: 10}); err != nil || len(left) != 0 {
				t.Errorf("it is still owed: %+v, %v", left, err)
			}
		})
	}
}

// A turn has an asker: without one no one could approve what it asks for.
func TestATurnNeedsAnAsker(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i, session := d.open("one")
	m := hello("go")
	m.Asker = ""
	_, err := i.Turn(t.Context(), session, m, agent.Audience{})
	wantCode(t, err, plugin.CodeInternal)
	if roles := d.roles(session); roles != "" {
		t.Errorf("on record: %s", roles)
	}
}

// The calls of a turn name the asker of the call that had the agent asked, and have its rights and
// its labels: of a question as of a schedule.
func TestATurnIsInTheNameOfTheCallThatAsksForIt(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(d *desk, by *plugin.Call) error{
		"a question": func(d *desk, by *plugin.Call) error {
			_, err := d.Ask(d.t.Context(), by, "one", "go")
			return err
		},
		"a schedule": func(d *desk, by *plugin.Call) error {
			_, err := d.Fire(d.t.Context(), by, "one", "s1", "cron", "go")
			return err
		},
	} {
		d := newDesk(t)
		d.say(wish("do", "{}", "u1"), llm.Move{Text: "done"})
		if err := ask(d, by(plugin.Private)); err != nil {
			t.Fatal(err)
		}
		calls := d.called("tool/do")
		if len(calls) != 1 || calls[0].Asker != "os:1" || calls[0].Principal.ID != "ann" || len(calls[0].Labels) != 1 || calls[0].Labels[0] != plugin.Private {
			t.Errorf("%s: %+v", name, calls)
		}
	}
}
