package app_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
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
