package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/plugin"
)

// A caller is the kernel as a plugin's request meets it: it notes the call.
type caller struct {
	got *plugin.Call
	err error
}

func (c *caller) call(_ context.Context, call plugin.Call) (plugin.Result, error) {
	c.got = &call
	return plugin.Result{Status: plugin.Succeeded, CallID: "inner", Operation: call.Operation, Data: json.RawMessage(`7`)}, c.err
}

// outer is a call of a plugin that declares these tools.
func outer(c *caller, depth int, declared ...string) plugin.Services {
	b := service.New()
	b.Call = c.call
	op := &plugin.Operation{Name: "op", Kind: plugin.Operator, Timeout: time.Minute}
	m := &plugin.Manifest{Name: "asking", Version: "1.0.0", Operations: []*plugin.Operation{op}, Requires: plugin.Requires{Tools: declared}}
	return b.For(&plugin.Target{Manifest: m, Operation: op}, &plugin.Call{
		ID: "outer", Tenant: "t", Principal: plugin.Principal{Type: "user", ID: "u", Scopes: []string{"s"}}, Agent: "a", Session: "session",
		Depth: depth, Labels: []string{"l"}, Trace: plugin.Trace{Correlation: "corr", Workflow: "w", Step: "st"},
	}, nil)
}

func TestAPluginMayAskForWhatItDeclared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ declared, asked, ref string }{
		{"tool", "tool", "tool"},
		{"tool", "tool/op", "tool/op"},
		{"tool", "tool/op@^1", "tool/op@^1"}, // it declared no range, so any will do
		{"tool/op", "tool/op", "tool/op"},
		{"tool@^1", "tool", "tool@^1"},
		{"tool@^1", "tool/op", "tool/op@^1"},
		{"tool/op@1.x", "tool/op", "tool/op@1.x"},
		{"tool@^1", "tool@^1", "tool@^1"},
		{"tool", "toolbox", ""},
		{"tool", "to", ""},
		{"tool", "", ""},
		{"tool", "other/tool", ""},
		{"tool/op", "tool", ""},
		{"tool/op", "tool/operate", ""},
		{"tool/op", "tool/other", ""},
		{"tool@^1", "tool@^2", ""},
		{"tool@^1", "tool/op@*", ""},
		{"tool@^1", "tool@", ""},
	} {
		k := &caller{}
		args, _ := json.Marshal(map[string]any{"call": "token", "operation": c.asked, "input": map[string]any{"x": 1}, "key": "k"})
		got := ask(t, outer(k, 0, "another@2", c.declared), "operations.call", string(args))
		switch {
		case c.ref == "" && (got != "service_denied" || k.got != nil):
			t.Errorf("%q with %q declared: %s, and the call %+v", c.asked, c.declared, got, k.got)
		case c.ref != "" && (k.got == nil || k.got.Operation != c.ref):
			t.Errorf("%q with %q declared: %s, and the call %+v; want %q", c.asked, c.declared, got, k.got, c.ref)
		}
	}
	k := &caller{}
	if got := ask(t, outer(k, 0), "operations.call", `{"operation":"tool"}`); got != "service_denied" || k.got != nil {
		t.Errorf("with nothing declared: %s", got)
	}
}

func TestANestedCallIsMadeInTheCallersName(t *testing.T) {
	t.Parallel()
	k := &caller{}
	got := ask(t, outer(k, 2, "tool"), "operations.call", `{"call":"token","operation":"tool","input":{"x":1},"key":"k"}`)
	var res plugin.Result
	if err := json.Unmarshal([]byte(got), &res); err != nil || res.CallID != "inner" || string(res.Data) != "7" {
		t.Errorf("%s, %v", got, err)
	}
	c := k.got
	if c == nil || c.Tenant != "t" || c.Principal.ID != "u" || len(c.Principal.Scopes) != 1 || c.Actor != "plugin:asking" || c.Agent != "a" ||
		c.Session != "session" || c.Origin != plugin.OriginCall || c.Parent != "outer" || c.Depth != 3 || c.Key != "k" ||
		c.Trace.Correlation != "corr" || c.Trace.Workflow != "w" || c.Trace.Step != "st" || string(c.Input) != `{"x":1}` || c.ID != "" {
		t.Errorf("%+v", c)
	}
}

func TestNestingEnds(t *testing.T) {
	t.Parallel()
	for depth, want := range map[int]string{plugin.MaxDepth - 1: "", plugin.MaxDepth: "limit_exceeded", plugin.MaxDepth + 1: "limit_exceeded"} {
		k := &caller{}
		got := ask(t, outer(k, depth, "tool"), "operations.call", `{"operation":"tool"}`)
		if (want != "" && got != want) || (k.got != nil) != (want == "") {
			t.Errorf("depth %d: %s, and the call %+v", depth, got, k.got)
		}
	}
}

func TestANestedFailureKeepsItsCode(t *testing.T) {
	t.Parallel()
	k := &caller{err: plugin.Errorf(plugin.CodePolicyDenied, "no rule")}
	_, err := outer(k, 0, "tool").Serve(t.Context(), "operations.call", json.RawMessage(`{"operation":"tool"}`))
	var failed *plugin.Error
	if !errors.As(err, &failed) || failed.Code != plugin.CodePolicyDenied || failed.Message != "no rule" {
		t.Errorf("%v", err)
	}
	for _, args := range []string{`{}x`, `[]`, `{"operation":7}`, `{"operation":"tool","inptu":{}}`, ``} {
		if got := ask(t, outer(&caller{}, 0, "tool"), "operations.call", args); got != "invalid_input" {
			t.Errorf("%s: %s", args, got)
		}
	}
}
