package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
)

// A linked plugin of hooks is followed: from the next turn on the agent hears with
// what the file is by then, and goes on without one that cannot be read.
func TestALinkedHookIsFollowed(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	dir := filepath.Join(t.TempDir(), "house")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	keep := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rule := func(content string) string {
		return `export function register(ctx) {
  ctx.bus.on("prompt.assemble@v1", (e) => ({ ...e, sections: [...e.sections, { key: "rule", content: "` + content + `" }] }));
}`
	}
	keep("manifest.json", `{"id":"house"}`)
	keep("index.ts", rule("Rule one."))
	if report, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Dev: true, Enable: true}); err != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	assign(t, a, "desk", "house", true)
	state := func() string {
		found, err := a.Registry.Find(t.Context(), "house")
		if err != nil {
			return err.Error()
		}
		return found.Package.Digest
	}
	for turn, c := range []struct{ code, sent string }{
		{rule("Rule one."), "Rule one."},
		{rule("Another rule."), "Another rule."},
		{"export function register(ctx) {", ""},
		{rule("The last rule."), "The last rule."},
	} {
		before := state()
		keep("index.ts", c.code)
		if turn > 0 { // the registry looks at linked files from time to time
			testwait.Until(t, "the registry has looked at the file", func() bool { return state() != before })
		}
		model.say(move{text: "yes"})
		if _, err := talk(t, a, "desk", "and?"); err != nil {
			t.Fatal(err)
		}
		heard := model.heard()
		asked := heard[len(heard)-1]
		if !strings.Contains(asked, c.sent) || c.sent == "" && strings.Contains(asked, "rule.") {
			t.Errorf("turn %d: the model was sent %s; want %q", turn, asked, c.sent)
		}
	}
}
