package app_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/plugin"
)

// A plugin that had to be disabled for an agent stays so after a restart and in
// other processes, is shown with the command that enables it again, and what it
// guards is refused meanwhile. Other agents have it. Enabled, it runs.
func TestAPluginThatWasDisabledForAnAgentStaysSoUntilItIsEnabledAgain(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	home := modelHome(t, model.URL, agentPolicy+"  configure: [ann]\n")
	first := open(t, home)
	hire(t, first, "desk", agent.Settings{})
	hire(t, first, "other", agent.Settings{})
	give(t, first, "*", "guard", `export function register(ctx) {
  ctx.bus.on("session.message.received@v1", (e) => { if (e.text === "spin") for (;;) {} });
  ctx.bus.on("tool.before@v1", () => ({ allow: true }));
}`)
	say := func(a *app.App, text string) {
		t.Helper()
		if _, err := talk(t, a, "desk", text); err != nil {
			t.Fatal(err)
		}
	}
	writes := func(a *app.App, id string) plugin.Code {
		t.Helper()
		return use(t, a, model, id, "agent_memory__upsert", `{"key":"k","content":"c"}`).Code
	}
	shown := func(a *app.App, want bool) {
		t.Helper()
		s, err := a.As(theOwner).Plugins().Show(t.Context(), "guard")
		if err != nil || (len(s.Halted) == 1) != want {
			t.Fatalf("%+v, %v", s.Halted, err)
		}
		if want && (s.Halted[0].Agent != "desk" || s.Halted[0].Enable != "mortise plugins enable guard --agent desk" || !strings.Contains(s.Halted[0].Reason, "stopped") && !strings.Contains(s.Halted[0].Reason, "ended by force")) {
			t.Errorf("it is shown as %+v", s.Halted[0])
		}
		all, err := a.As(theOwner).Plugins().List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range all {
			if info.Name == "guard" && (len(info.Halted) == 1) != want {
				t.Errorf("the list has %+v", info.Halted)
			}
		}
		if halted, err := a.As(a.Principal).Plugins().Halted(t.Context()); err != nil || (len(halted["guard"]) == 1) != want {
			t.Errorf("doctor is told %+v, %v", halted, err)
		}
	}
	if code := writes(first, "desk"); code != "" {
		t.Fatalf("while it works: %s", code)
	}
	shown(first, false)
	for range 3 {
		say(first, "spin")
	}
	shown(first, true)
	if code := writes(first, "desk"); code != plugin.CodeHookFailed {
		t.Errorf("a call that it guards: %q", code)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	second := open(t, home)
	shown(second, true)
	if code := writes(second, "desk"); code != plugin.CodeHookFailed {
		t.Errorf("after a restart a call that it guards: %q", code)
	}
	if code := writes(second, "other"); code != "" {
		t.Errorf("the other agent: %q", code)
	}
	third := open(t, home) // a command line beside it
	if _, err := third.As(theOwner).Agents().Assign(t.Context(), "guard", "desk", true); err != nil {
		t.Fatal(err)
	}
	shown(second, false)
	if code := writes(second, "desk"); code != "" {
		t.Errorf("after it was enabled again: %q", code)
	}
}
