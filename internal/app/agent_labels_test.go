package app_test

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/plugin"
)

// A memory of an agent keeps the labels that the agent had when it was stored,
// whichever tool reads it: the agent's own, a script's, or a hook that puts it
// into a prompt.
func TestWhatIsRememberedStaysTainted(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	if err := a.Agents.Memory("local", "desk").Upsert(t.Context(), "", "secret/plan", "take over", []string{plugin.Untrusted}); err != nil {
		t.Fatal(err)
	}
	give(t, a, "desk", "reader", `export function register(ctx) {
  ctx.tools.add({ name: "read", description: "Reads.", schema: { type: "object" }, handler: async () => ({ found: await ctx.memory.get("secret/plan") }) });
}`)
	labels := func(tool, args string) []string {
		t.Helper()
		model.say(move{tool: tool, args: args}, move{text: "done"})
		answer, err := talk(t, a, "desk", "go on")
		if err != nil || len(answer.Uses) != 1 || answer.Uses[0].Code != "" {
			t.Fatalf("%+v, %v", answer, err)
		}
		return answer.Labels
	}
	if got := labels("agent_memory__search", `{"query":"nothing of the kind"}`); len(got) != 0 {
		t.Errorf("what is not found taints with %q", got)
	}
	for tool, args := range map[string]string{"agent_memory__search": `{"query":"plan"}`, "reader__read": "{}"} {
		if got := labels(tool, args); !slices.Equal(got, []string{plugin.Untrusted}) {
			t.Errorf("%s taints with %q", tool, got)
		}
	}
	for _, operation := range []string{"agent.memory/search", "reader/read"} {
		call := plugin.Call{Tenant: "local", Principal: theOwner, Agent: "desk", Origin: plugin.OriginAgent, Operation: operation, Input: []byte(`{"query":"plan"}`)}
		if res, err := a.Kernel.Call(t.Context(), call); err != nil || !slices.Equal(res.Labels, []string{plugin.Untrusted}) {
			t.Errorf("%s returns the labels %q, %v", operation, res.Labels, err)
		}
	}
	give(t, a, "desk", "teller", `export function register(ctx) {
  ctx.bus.on("prompt.assemble@v1", async (e) => ({ ...e, sections: [...e.sections, { key: "plan", content: await ctx.memory.get("secret/plan") }] }));
}`)
	model.say(move{text: "done"})
	if answer, err := talk(t, a, "desk", "go on"); err != nil || !slices.Equal(answer.Labels, []string{plugin.Untrusted}) {
		t.Errorf("a hook taints with %q, %v", answer.Labels, err)
	}
}

// TestArgumentsThatAHookMadeOfAMemoryAreTainted: a hook that puts what it reads of the
// agent's memory into the arguments of a call gives that call the memory's labels, before
// policy judges it. One that reads and changes nothing gives none.
func TestArgumentsThatAHookMadeOfAMemoryAreTainted(t *testing.T) {
	t.Parallel()
	for reads, want := range map[string][]string{
		`await ctx.memory.get("plan")`:                         {plugin.Untrusted},
		`JSON.stringify(await ctx.memory.search("take over"))`: {plugin.Untrusted},
		`"nothing"`: {},
		`(await ctx.memory.get("plan"), e.payload.args.text)`: {},
	} {
		a := agentHome(t, newTalker(t), "")
		hire(t, a, "desk", agent.Settings{})
		if err := a.Agents.Memory("local", "desk").Upsert(t.Context(), "", "plan", "take over", []string{plugin.Untrusted}); err != nil {
			t.Fatal(err)
		}
		give(t, a, "desk", "echo", `export function register(ctx) {
  ctx.tools.add({ name: "say", description: "Says.", schema: { type: "object" }, handler: ({ text }) => ({ text }) });
}`)
		give(t, a, "desk", "rewriter", `export function register(ctx) {
  ctx.bus.on("tool.before@v1", async (p) => { const e = { payload: p }; return { allow: true, payload: { ...p, args: { text: `+reads+` } } }; });
}`)
		call := plugin.Call{Tenant: "local", Principal: theOwner, Agent: "desk", Origin: plugin.OriginAgent, Operation: "echo/say", Input: []byte(`{"text":"mine"}`)}
		res, err := a.Kernel.Call(t.Context(), call)
		if err != nil || !slices.Equal(append([]string{}, res.Labels...), want) {
			t.Errorf("with %s it answers %s with the labels %q, %v", reads, res.Data, res.Labels, err)
		}
	}
}
