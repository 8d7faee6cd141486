package app_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A model is offered what a Shu plugin lists for chats, and nothing else of it; what
// it writes as text where the schema has none is what it spells.
func TestChatsUseShuPluginsAsTheirHostDoes(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	dir := t.TempDir()
	write(t, dir, "manifest.py", `PLUGIN_MANIFEST = {"name": "finder", "version": "1.0.0", "module": "plugins.finder.plugin:P", "description": "Finds.",
    "capabilities": [], "chat_callable_ops": ["find"], "allowed_feed_ops": ["purge"], "default_feed_op": "purge"}
`, "plugin.py", `class P:
    def get_schema(self):
        return {"type": "object", "title": "T", "description": "Finds.", "required": ["op"], "additionalProperties": False, "properties": {
            "op": {"type": "string", "enum": ["find", "purge"]}, "n": {"type": "integer"}, "deep": {"type": ["boolean", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}}, "q": {"type": "string"}}}

    async def execute(self, params, context, host):
        return {"status": "success", "data": params}
`)
	report, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil || len(report.Registered) != 1 || report.Registered[0].NotEnabled != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	assign(t, a, "desk", "finder", true)
	u := use(t, a, model, "desk", "finder__find", `{"n":"12","deep":"True","tags":"[\"a\"]","q":"7","__host":{"debug":true}}`)
	if u.Status != plugin.Succeeded || !strings.Contains(u.Text, `{"n":12,"deep":true,"tags":["a"],"q":"7","op":"find"}`) {
		t.Errorf("%+v", u)
	}
	if u := use(t, a, model, "desk", "finder__find", `{"n":"a dozen"}`); u.Code != plugin.CodeInvalidInput {
		t.Errorf("what is no number: %+v", u)
	}
	if u := use(t, a, model, "desk", "finder__purge", `{}`); u.Code != plugin.CodeNotFound {
		t.Errorf("an operation that is not for chats: %+v", u)
	}
	if asked := model.heard()[0]; strings.Contains(asked, "finder__purge") {
		t.Errorf("it is offered: %.2000s", asked)
	}
	s, err := a.As(a.Principal).Agents().Show(t.Context(), "desk")
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, l := range s.LeftOut {
		said = said || l.Operation == "finder/purge" && strings.Contains(l.Why, "chat_callable_ops")
	}
	if !said {
		t.Errorf("the reason is not given: %+v", s.LeftOut)
	}
}

// What only the host decides about a call, a person or their program says: at the command
// line or over HTTP. What comes in any other way may be written by a model.
func TestOnlyAPersonOrTheirProgramDecidesForTheHost(t *testing.T) {
	t.Parallel()
	needPython(t)
	home, dir := t.TempDir(), t.TempDir()
	write(t, home, "mortise.yaml", "policy: {allow: [{operations: [teller/tell]}]}\n")
	a := open(t, home)
	write(t, dir, "manifest.py", `PLUGIN_MANIFEST = {"name": "teller", "version": "1.0.0", "module": "plugins.teller.plugin:P", "description": "Tells.", "capabilities": []}
`, "plugin.py", `class P:
    def get_schema(self):
        return {"type": "object", "properties": {"op": {"type": "string", "enum": ["tell"]}}}

    async def execute(self, params, context, host):
        return {"status": "success", "data": params}
`)
	register(t, a, dir, false)
	may := map[plugin.Origin]bool{plugin.OriginCLI: true, plugin.OriginAPI: true}
	for _, name := range append(origins(t), "OriginDecision", "") {
		origin := plugin.Origin(strings.ToLower(strings.TrimPrefix(name, "Origin")))
		for _, input := range []string{`{"__host":{"debug":true}}`, `{"__host":{}}`, `{"\u005f_host":{"debug":true}}`} {
			res, err := a.As(a.Principal).Invoke(t.Context(), host.Invocation{Operation: "teller/tell", Input: json.RawMessage(input), Origin: origin, Fresh: true})
			if may[origin] && (err != nil || string(res.Data) != `{"op":"tell"}`) {
				t.Errorf("%s, %s: %s, %v", origin, input, res.Data, err)
			}
			if !may[origin] && (plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(fmt.Sprint(err), "__host")) {
				t.Errorf("%s, %s: %s, %v", origin, input, res.Data, err)
			}
		}
	}
}
