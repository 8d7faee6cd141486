package all_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/openhermit"
	"github.com/mortise-dev/mortise/plugin"
)

func TestOpenHermitManifests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manifest string
		want     plugin.Manifest
	}{
		"with little": {`{"name":"my-policy"}`, plugin.Manifest{Name: "my-policy", Version: "0.1.0", DisplayName: "my-policy", Default: plugin.Hook{Priority: 100}}},
		"with all": {`{"id":"p","name":"A policy","version":"2","description":"Says no.","priority":5,"failureMode":"fail","before":["b"],"after":["a"],"author":"x"}`,
			plugin.Manifest{Name: "p", Version: "2.0.0", DisplayName: "A policy", Description: "Says no.",
				Default: plugin.Hook{Priority: 5, FailureMode: plugin.FailTurn, Before: []string{"b"}, After: []string{"a"}}}},
		"whose name is none": {`{"id":"p","name":"A policy: strict"}`, plugin.Manifest{Name: "p", Version: "0.1.0", DisplayName: "A policy: strict", Default: plugin.Hook{Priority: 100}}},
	} {
		got, err := contract.Read(dir(t, "manifest.json", c.manifest, "index.ts", "export function register(ctx) {}"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.want.Dialect, c.want.Isolation, c.want.Capabilities = openhermit.Name, plugin.IsolationAgent, []string{"log"}
		c.want.Runner = plugin.Runner{Kind: "script", Entry: "index.ts", Protocol: "2"}
		if !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, *got, c.want)
		}
	}
	for manifest, want := range map[string]string{
		`{"id":"p","failureMode":"never"}`:    `at /failureMode: "never" is none of skip, fail`,
		`{"id":"p","entry":"other.rb"}`:       "this is neither",
		`{"id":"p","priority":1e999}`:         "at /priority: 1e999 is no finite number",
		`{"id":"p","version":"latest"}`:       "is no semantic version",
		`{"id":"p","entry":"../outside.ts"}`:  "this is neither",
		`{"id":"p","before":"everything"}`:    "at /before: a list belongs here, not text",
		`{"id":"a b","name":"c d"}`:           "", // its directory names it
		`{"id":"p","unknown":{"whatever":1}}`: "",
	} {
		_, err := contract.Read(dir(t, "manifest.json", manifest, "index.ts", ""))
		if want == "" && err != nil && !strings.Contains(err.Error(), "is no name") && !strings.Contains(err.Error(), "neither id nor name") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", manifest, err, want)
		}
	}
}

// What a script hears and adds its code says, and it may add nothing but tools
// without effects.
func TestWhatAScriptSaysOfItself(t *testing.T) {
	t.Parallel()
	m, err := contract.Read(dir(t, "manifest.json", `{"id":"p"}`, "index.ts", ""))
	if err != nil || !contract.NeedsDescribe(m) {
		t.Fatalf("%+v, %v", m, err)
	}
	said := func(kind plugin.Kind, event string) contract.Described {
		return contract.Described{
			Operations: map[string]contract.DescribedOperation{"find": {Kind: kind, Input: json.RawMessage(`{"type":"object"}`)}},
			Hooks:      []contract.DescribedHook{{Event: event, Priority: new(float64(7)), DeadlineMS: 20}, {Event: "tool.after@v1"}},
		}
	}
	merged, err := contract.Merge(m, said(plugin.Tool, "tool.before@v1"))
	if err != nil {
		t.Fatal(err)
	}
	want := []plugin.Hook{{Event: "tool.before@v1", Priority: 7, Deadline: 20 * time.Millisecond}, {Event: "tool.after@v1", Priority: 100}}
	if !reflect.DeepEqual(merged.Hooks, want) || len(merged.Operations) != 1 || !merged.Operations[0].NoCache || !contract.Guards(merged) || contract.NeedsDescribe(merged) {
		t.Errorf("%+v", merged)
	}
	merged.Hooks[0].FailureMode = plugin.FailSkip
	if contract.Guards(merged) {
		t.Error("a veto that says it may be skipped guards")
	}
	for _, d := range []contract.Described{said(plugin.Operator, "tool.before@v1"), said(plugin.Tool, "tea.time@v1"), {Name: "p"}} {
		if _, err := contract.Merge(m, d); err == nil {
			t.Errorf("%+v was taken", d)
		}
	}
}

// A plugin that is told of events elsewhere has hooks, and nothing else.
func TestWebhookManifests(t *testing.T) {
	t.Parallel()
	m, err := contract.Read(dir(t, "manifest.yaml", `
name: audit
version: 1.0.0
runner: {kind: webhook, url: https://hooks.example.com/in, secret: audit_key}
hooks:
  - {event: tool.after@v1}
  - {event: schedule.fired@v1, failure_mode: fail, deadline: 5s, priority: 10}
`))
	if err != nil {
		t.Fatal(err)
	}
	events := []string{m.Hooks[0].Event, m.Hooks[1].Event}
	if m.Runner.Kind != "webhook" || m.Runner.URL != "https://hooks.example.com/in" || m.Runner.Secret != "audit_key" || contract.NeedsDescribe(m) ||
		!slices.Equal(events, []string{"tool.after@v1", "schedule.fired@v1"}) || m.Hooks[1].Deadline != 5*time.Second || m.Hooks[1].Priority != 10 {
		t.Errorf("%+v", m)
	}
}
