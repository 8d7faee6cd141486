package app_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

const settlePolicy = `
policy:
  configure: [ann]
  allow:
    - kinds: [tool]
    - {operations: [agent.chat/turn], effects: [agent_turn]}
`

// serving is a host that serves a data directory, until the test ends.
func serving(t *testing.T, home string) *app.App {
	t.Helper()
	a := open(t, home)
	release, err := setup.Exclusive(home)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Work(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		release()
	})
	return a
}

// What another process does to an agent, as a command line beside the host that
// serves, the plugins in that host hear: each event once, with its reason.
func TestTheHostThatServesHearsWhatOtherProcessesDoToAgents(t *testing.T) {
	t.Parallel()
	home := modelHome(t, newTalker(t).URL, settlePolicy)
	line := open(t, home) // the command line
	hire(t, line, "desk", agent.Settings{})
	give(t, line, "desk", "first", `export function register(ctx) {
  let started = 0;
  ctx.bus.on("agent.started@v1", () => { started++ });
  ctx.tools.add({ name: "started", schema: { type: "object" }, handler: () => ({ started }) });
}`)
	host := serving(t, home)
	by := line.As(theOwner).Agents()
	at := func() *agent.Instance { return host.Agents.Local("local", "desk") }
	testwait.Until(t, "the host starts an agent that was started", func() bool { return at() != nil })
	started := func() string {
		res, err := host.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: theOwner, Agent: "desk", Origin: plugin.OriginAgent, Operation: "first/started"})
		if err != nil {
			return err.Error()
		}
		return string(res.Data)
	}
	testwait.Until(t, "its plugins hear agent.started", func() bool { return started() == `{"started":1}` })

	l := listen(t, at())
	conversation := func() string {
		t.Helper()
		talk, err := by.Talk(t.Context(), "desk", "", true)
		if err != nil {
			t.Fatal(err)
		}
		return talk.Session
	}
	closed, deleted, ended := conversation(), conversation(), conversation()
	if err := line.Agents.Stop("local", "desk", "shutdown"); err != nil { // the line has no instance any more
		t.Fatal(err)
	}
	for what, do := range map[string]func() error{
		"remember": func() error { return by.Remember(t.Context(), "desk", "hours", "7 to 18") },
		"close":    func() error { _, err := line.As(line.Principal).Sessions().Close(t.Context(), closed); return err },
		"delete": func() error {
			_, err := line.As(line.Principal).Sessions().Delete(t.Context(), deleted)
			return err
		},
		"end": func() error { _, err := by.End(t.Context(), "desk", ended); return err },
	} {
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if line.Agents.Local("local", "desk") != nil {
			t.Fatalf("%s: the command line has an instance of its own beside a host", what)
		}
		name, has := event.SessionClosed, `"reason":"user"`
		if what == "remember" {
			name, has = event.MemoryUpsert, `"key":"hours"`
		}
		var told []string
		testwait.Until(t, what+" is heard", func() bool { told = append(told, l.told()...); return len(told) > 0 })
		if !slices.Equal(told, []string{strings.TrimSuffix(name, "@v1")}) || !strings.Contains(l.heard(name), has) || !fits(t, theEvent(name), l.heard(name)) {
			t.Errorf("%s told %q: %s", what, told, l.heard(name))
		}
	}
	if _, err := line.As(line.Principal).Sessions().Close(t.Context(), closed); err != nil { // again
		t.Error(err)
	}
	if _, err := by.End(t.Context(), "desk", ended); plugin.CodeOf(err) != plugin.CodeDisabled {
		t.Errorf("a conversation that has ended: %v", err)
	}

	if _, err := by.Stop(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "agent.stopped is heard", func() bool { return slices.Equal(l.told(), []string{"agent.stopped"}) })
	if !strings.Contains(l.heard(event.AgentStopped), `"reason":"user"`) || at() != nil {
		t.Errorf("it stopped with %s, and is there: %t", l.heard(event.AgentStopped), at() != nil)
	}
	if _, err := by.Start(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "it is started again", func() bool { return at() != nil && started() == `{"started":1}` })

	// Stopped and started at once: both are heard.
	l = listen(t, at())
	if _, err := by.Stop(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	if _, err := by.Start(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "agent.stopped is heard", func() bool { return slices.Equal(l.told(), []string{"agent.stopped"}) })
	testwait.Until(t, "it is there again", func() bool { return at() != nil && started() == `{"started":1}` })

	// Deleted, with a conversation.
	last := conversation()
	if err := line.Agents.Stop("local", "desk", "shutdown"); err != nil {
		t.Fatal(err)
	}
	l = listen(t, at())
	if _, err := by.Delete(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	var told []string
	testwait.Until(t, "the end is heard", func() bool { told = append(told, l.told()...); return len(told) >= 2 })
	if !slices.Equal(told, []string{"session.closed", "agent.stopped"}) || !strings.Contains(l.heard(event.SessionClosed), last) {
		t.Errorf("deleting told %q: %s", told, l.heard(event.SessionClosed))
	}
}

func theEvent(name string) *event.Event { e, _ := event.Find(name); return e }

// Where no host serves, the process that does something to an agent tells its
// plugins itself, and nothing waits for a host to come.
func TestWithoutAHostTheCommandLineTellsThePlugins(t *testing.T) {
	t.Parallel()
	home := modelHome(t, newTalker(t).URL, settlePolicy)
	line := open(t, home)
	hire(t, line, "desk", agent.Settings{})
	by := line.As(theOwner).Agents()
	i, err := line.Agents.Instance(t.Context(), "local", "desk")
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, i)
	talk, err := by.Talk(t.Context(), "desk", "", true)
	if err != nil {
		t.Fatal(err)
	}
	if err := by.Remember(t.Context(), "desk", "k", "v"); err != nil {
		t.Fatal(err)
	}
	if one, err := by.End(t.Context(), "desk", ""); err != nil || one.Session != talk.Session || one.Open {
		t.Fatalf("%+v, %v", one, err)
	}
	if told := l.told(); !slices.Equal(told, []string{"session.opened", "memory.upsert", "session.closed"}) {
		t.Errorf("it told %q", told)
	}
	if _, err := by.Stop(t.Context(), "desk"); err != nil {
		t.Fatal(err)
	}
	if told := l.told(); !slices.Equal(told, []string{"agent.stopped"}) {
		t.Errorf("stopping told %q", told)
	}
	fresh := open(t, home) // a process without an instance
	if err := fresh.As(theOwner).Agents().Remember(t.Context(), "desk", "k", "w"); err != nil {
		t.Fatal(err)
	}
	if fresh.Agents.Local("local", "desk") == nil {
		t.Error("no agent of the new host heard it")
	}
	if rows, err := line.Store.Outbox(t.Context(), outboxOf("desk")); err != nil || len(rows) > 0 {
		t.Errorf("%+v waits, %v", rows, err)
	}
	if _, err := by.End(t.Context(), "desk", ""); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("there is no conversation: %v", err)
	}
	stranger := plugin.Principal{Type: "user", ID: "eve", Scopes: []string{"*"}}
	other, err := by.Talk(t.Context(), "desk", "", true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := line.As(stranger).Agents().End(t.Context(), "desk", other.Session); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("a conversation of another principal: %v", err)
	}
}

func outboxOf(id string) store.OutboxFilter {
	return store.OutboxFilter{Tenant: "local", Agent: id, Limit: 10}
}
