package scaffold_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all"
	"github.com/mortise-dev/mortise/internal/catalog/contract/openhermit"
	"github.com/mortise-dev/mortise/internal/runtime/script"
)

// TestNewHooksRun: what is written for hooks is one of each shape and a tool, and
// all of them do what their comments say.
func TestNewHooksRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"careful", "Text.word-count_2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := written(t, name, "hook")
			reading, err := contract.Inspect(dir)
			if err != nil || len(reading.Notes) > 0 || reading.Manifest.Name != name || reading.Manifest.Dialect != openhermit.Name {
				t.Fatalf("the manifest is %+v, %v", reading, err)
			}
			program, err := script.Compile(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			instance, err := script.Open(t.Context(), program, script.Environment{Agent: "support", Plugin: name})
			if err != nil {
				t.Fatal(err)
			}
			defer instance.Close()
			bus := event.NewBus("support", event.Options{})
			defer bus.Close()
			for _, s := range instance.Subscriptions() {
				s.Mode = event.Fail
				if _, err := bus.On(s); err != nil {
					t.Fatal(err)
				}
			}
			use(t, bus, dir)
			if out, err := instance.Call(t.Context(), "seen", []byte(`{}`)); err != nil || string(out) != `{"asked":2,"refused":1,"failed":1}` {
				t.Errorf("seen answers %s, %v", out, err)
			}
		})
	}
}

// use has two tools asked for, one of them refused, the other failing, and a
// prompt assembled.
func use(t *testing.T, bus *event.Bus, dir string) {
	t.Helper()
	example := func(name string) *event.Payload {
		e, found := event.Find(name)
		if !found {
			t.Fatal(name)
		}
		p, err := event.NewPayload(e.Example)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	v, err := bus.Veto(t.Context(), event.ToolBefore, example(event.ToolBefore))
	if err != nil || !v.Allow || v.Payload != nil {
		t.Errorf("an ordinary tool: %+v, %v", v, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "examples", "tool.before@v1.shell.input.json"))
	if err != nil {
		t.Fatal(err)
	}
	shell, err := event.NewPayload(string(raw))
	if err != nil {
		t.Fatal(err)
	}
	if v, err = bus.Veto(t.Context(), event.ToolBefore, shell); err != nil || v.Allow || v.Reason != "shell/run is not for agents" {
		t.Errorf("a shell: %+v, %v", v, err)
	}
	p, err := bus.Transform(t.Context(), event.PromptAssemble, example(event.PromptAssemble))
	if err != nil || !strings.Contains(p.Text(), `{"key":"tone","content":"Be brief."}`) {
		t.Errorf("the prompt: %v, %v", p, err)
	}
	failed := example(event.ToolAfter).With("ok", "false").With("error", `"no such order"`)
	if err := bus.Emit(t.Context(), event.ToolAfter, failed); err != nil {
		t.Error(err)
	}
}

// TestNewHooksAreTyped: the types that come along are those of the host, and the
// compiler of the SDK's tests, if it is installed, has nothing against the template.
func TestNewHooksAreTyped(t *testing.T) {
	t.Parallel()
	dir := written(t, "careful", "hook")
	types, err := os.ReadFile(filepath.Join(dir, "mortise-hooks.d.ts"))
	if err != nil || string(types) != script.Definitions() {
		t.Errorf("the types are not the host's: %v", err)
	}
	tsc, err := filepath.Abs("../../../sdk/typescript/node_modules/.bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(tsc); err != nil {
		t.Skip("typescript is not installed: npm ci in sdk/typescript")
	}
	cmd := exec.Command(tsc, "-p", ".")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
