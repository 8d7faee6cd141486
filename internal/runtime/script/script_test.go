package script

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// compiled makes a program of one file.
func compiled(t testing.TB, source string) *Program {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, DefaultEntry), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := Compile(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// patient are limits that no test reaches, on however busy a machine.
var patient = Limits{Deadline: time.Minute, Tool: time.Minute, Start: time.Minute, Wait: time.Minute, grace: time.Minute}

// opened opens a plugin of one file. Without limits it gets those of patient.
func opened(t testing.TB, source string, environment Environment) *Instance {
	t.Helper()
	if environment.Limits == (Limits{}) {
		environment.Limits = patient
	}
	instance, err := Open(context.Background(), compiled(t, source), environment)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(instance.Close)
	return instance
}

func payload(t testing.TB, text string) *event.Payload {
	t.Helper()
	p, err := event.NewPayload(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const vetoSource = `
export function register(ctx: any): void {
  ctx.bus.on("tool.before@v1", (e) => ({ allow: !(e.toolName === "bash" && e.args.command.startsWith("rm")), reason: "no rm in " + e.agentId }), { priority: 5 });
}`

const toolBefore = `{"agentId":"support","sessionId":"s","at":"2026-03-02T09:00:00Z","toolName":"bash","toolCallId":"c1","args":{"command":"rm -rf /","n":[1,{"a":2}]}}`

func TestAVetoReadsItsPayload(t *testing.T) {
	s := opened(t, vetoSource, Environment{Plugin: "careful"}).Subscriptions()
	if len(s) != 1 || s[0].Event != event.ToolBefore || *s[0].Priority != 5 || s[0].Plugin != "careful" || s[0].ModeSaid {
		t.Fatalf("subscriptions are %+v", s)
	}
	v, err := s[0].Veto(context.Background(), payload(t, toolBefore))
	if err != nil || v.Allow || v.Reason != "no rm in support" {
		t.Errorf("the verdict is %+v, %v", v, err)
	}
	v, err = s[0].Veto(context.Background(), payload(t, `{"agentId":"a","toolName":"other"}`))
	if err != nil || !v.Allow || v.Payload != nil {
		t.Errorf("the verdict is %+v, %v", v, err)
	}
}

type jsonRaw = json.RawMessage

// A shelf is a memory in memory.
type shelf map[string]string

func (s shelf) Get(_ context.Context, key string) (string, bool, error) {
	value, found := s[key]
	return value, found, nil
}

func (s shelf) Search(_ context.Context, query string, limit int) (json.RawMessage, error) {
	var found []map[string]string
	for key, value := range s {
		if strings.Contains(value, query) && len(found) < limit {
			found = append(found, map[string]string{"key": key, "value": value})
		}
	}
	return json.Marshal(found)
}
