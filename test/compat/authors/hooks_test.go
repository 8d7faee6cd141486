package authors

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/runtime/script"
	"github.com/mortise-dev/mortise/plugin"
)

// TestHooks runs the plugins of the event bus, each case in an instance of its own.
func TestHooks(t *testing.T) {
	for dir, f := range cases(t, "hooks") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			read, err := contract.Inspect(dir)
			if err != nil {
				t.Fatal(err)
			}
			program, err := script.Compile(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range f.Cases {
				t.Run(c.Title, func(t *testing.T) { runHook(t, program, f.Plugin, read.Manifest.Default.FailureMode, c) })
			}
		})
	}
}

// busy is a deadline that a machine with much to do keeps.
const busy = time.Minute

// A memory has nothing in it.
type memory struct{}

func (memory) Get(context.Context, string) (string, bool, error) { return "", false, nil }
func (memory) Search(context.Context, string, int) (json.RawMessage, error) {
	return json.RawMessage("[]"), nil
}

func runHook(t *testing.T, program *script.Program, name string, mode plugin.FailureMode, c item) {
	i, err := script.Open(t.Context(), program, script.Environment{
		Tenant: "local", Agent: "a1", Plugin: name, Memory: memory{}, Limits: script.Limits{Deadline: busy, Start: busy, Tool: busy},
		Session: func(context.Context) script.Session {
			return script.Session{ID: "s1", Type: "chat", Channel: "cli", Turn: 1}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	bus := event.NewBus("a1", event.Options{})
	defer bus.Close()
	for _, s := range i.Subscriptions() {
		if !s.ModeSaid && mode != "" {
			s.Mode = event.Mode(mode)
		}
		if _, err := bus.On(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, before := range append(c.Before, c.Setup...) {
		_, _ = fire(t, i, bus, before)
	}
	got, code := fire(t, i, bus, c)
	// An error of a handler is told to plugin.error@v1 without waiting.
	if len(c.Setup) > 0 && code == "" {
		testwait.Until(t, "the hook has heard of the errors of others", func() bool {
			if why := contains("", got, decode(t, c.Expect.Contains)); code == "" && why != "" {
				got, code = fire(t, i, bus, c)
				return false
			}
			return true
		})
	}
	if ok := code == ""; ok != c.Expect.OK || code != c.Expect.Code {
		t.Fatalf("ok is %v with %q; wanted is %v with %q: %v", ok, code, c.Expect.OK, c.Expect.Code, got)
	}
	if want := decode(t, c.Expect.Contains); want != nil {
		if why := contains("", got, want); why != "" {
			t.Errorf("%s in %v", why, got)
		}
	}
}

// fire sends an event to a bus, or calls a tool, and returns what came of it: the payload, the
// verdict or the result; and "aborted" or "plugin_error" where it failed.
func fire(t *testing.T, i *script.Instance, bus *event.Bus, c item) (any, string) {
	t.Helper()
	if !strings.Contains(c.Operation, "@v") {
		for _, tool := range i.Tools() { // the kernel reads an input by its schema before the tool does
			if compiled, err := schema.Compile(tool.Schema); tool.Name == c.Operation && err == nil && compiled.Check(t.Context(), c.Input) != nil {
				return "it does not fit the schema", "invalid_input"
			}
		}
		out, err := i.Call(t.Context(), c.Operation, c.Input)
		if err != nil {
			return err.Error(), "plugin_error"
		}
		return decode(t, out), ""
	}
	p, err := event.NewPayload(string(c.Input))
	if err != nil {
		t.Fatal(err)
	}
	known, is := event.Find(c.Operation)
	if !is {
		t.Fatalf("there is no event %s", c.Operation)
	}
	switch known.Shape {
	case event.Transform:
		if p, err = bus.Transform(t.Context(), c.Operation, p); err != nil {
			return err.Error(), "aborted"
		}
		return decode(t, []byte(p.Text())), ""
	case event.Veto:
		v, err := bus.Veto(t.Context(), c.Operation, p)
		if err != nil {
			return err.Error(), "aborted"
		}
		return map[string]any{"allow": v.Allow, "reason": v.Reason}, ""
	}
	if err := bus.Emit(t.Context(), c.Operation, p); err != nil {
		return err.Error(), "aborted"
	}
	return map[string]any{}, ""
}
