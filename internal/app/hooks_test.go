package app_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// talk says one thing to an agent, in a conversation of its own.
func talk(t *testing.T, a *app.App, id, text string) (agent.Answer, error) {
	t.Helper()
	i, err := a.Agents.Instance(t.Context(), "local", id)
	if err != nil {
		t.Fatal(err)
	}
	c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	return i.Turn(t.Context(), c.SessionID, agent.Message{Text: text, From: theOwner, Asker: "os:1", Role: "owner"}, agent.Audience{})
}

// use has an agent use a tool, and returns what came of it.
func use(t *testing.T, a *app.App, model *talker, id, tool, args string) agent.Use {
	t.Helper()
	model.say(move{tool: tool, args: args}, move{text: "done"})
	answer, err := talk(t, a, id, "go on")
	if err != nil || len(answer.Uses) != 1 || answer.Text != "done" {
		t.Fatalf("%+v, %v", answer, err)
	}
	return answer.Uses[0]
}

const counting = `
let seen = 0;
export function register(ctx) {
  ctx.bus.on("session.message.received@v1", () => { seen++; globalThis.leak = (globalThis.leak || 0) + 1; });
  ctx.tools.add({ name: "seen", description: "How much was seen.", schema: { type: "object" }, handler: () => ({ seen, leak: globalThis.leak || 0 }) });
}`

// One plugin on two agents has a state for each (HK-01), and what all agents have
// those have too that come later (HK-09).
func TestAPluginOfTwoAgentsSharesNothing(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "one", agent.Settings{})
	give(t, a, store.EveryAgent, "counter", counting)
	for range 3 {
		if _, err := talk(t, a, "one", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	hire(t, a, "two", agent.Settings{}) // later than the assignment
	if u := use(t, a, model, "two", "counter__seen", "{}"); u.Text != `{"seen":1,"leak":1}` {
		t.Errorf("two: %+v", u)
	}
	if u := use(t, a, model, "one", "counter__seen", "{}"); u.Text != `{"seen":4,"leak":4}` {
		t.Errorf("one: %+v", u)
	}
	assign(t, a, "two", "counter", false)
	if u := use(t, a, model, "two", "counter__seen", "{}"); u.Code != plugin.CodeNotFound {
		t.Errorf("after it was taken from it: %+v", u)
	}
	if u := use(t, a, model, "one", "counter__seen", "{}"); u.Code != "" {
		t.Errorf("the other one: %+v", u)
	}
	res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: theOwner, Agent: "two", Origin: plugin.OriginAgent, Operation: "counter/seen"})
	if plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("a call past its model: %+v, %v", res, err)
	}
}

// A veto that fails is skipped by the bus; what has effects is refused then, and
// the turn goes on (DESIGN 6, T43). One that said it may be skipped guards nothing.
func TestAGuardThatFails(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		source string
		tool   plugin.Code // what reading comes to
		write  plugin.Code // what writing comes to
	}{
		"throws": {`ctx.bus.on("tool.before@v1", () => { throw new Error("no idea") });`, "", plugin.CodeHookFailed},
		"hangs":  {`ctx.bus.on("tool.before@v1", () => { for (;;) {} });`, "", plugin.CodeHookFailed},
		"skips":  {`ctx.bus.on("tool.before@v1", () => { throw new Error("no idea") }, { failureMode: "skip" });`, "", ""},
		"denies": {`ctx.bus.on("tool.before@v1", (e) => ({ allow: e.toolName !== "agent.memory/upsert", reason: "read only" }));`, "", plugin.CodeHookVetoed},
		"bends":  {`ctx.bus.on("tool.before@v1", (e) => ({ allow: true, payload: { ...e, args: { ...e.args, surplus: 1 } } }));`, plugin.CodeInvalidInput, plugin.CodeInvalidInput},
		"odd":    {`ctx.bus.on("tool.before@v1", () => "certainly");`, "", plugin.CodeHookFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newTalker(t)
			a := agentHome(t, model, "")
			hire(t, a, "desk", agent.Settings{})
			give(t, a, "desk", "guard", "export function register(ctx) {"+want.source+"}")
			if u := use(t, a, model, "desk", "agent_memory__search", `{"query":"x"}`); u.Code != want.tool {
				t.Errorf("reading: %+v", u)
			}
			u := use(t, a, model, "desk", "agent_memory__upsert", `{"key":"k","content":"c"}`)
			if u.Code != want.write {
				t.Errorf("writing: %+v", u)
			}
			_, kept, err := a.Agents.Memory("local", "desk").Get(t.Context(), "k")
			if err != nil || kept != (want.write == "") {
				t.Errorf("it was written: %t, %v", kept, err)
			}
		})
	}
}

// A handler that asked to fail ends the turn, whatever it hears (HK-05).
func TestAHookMayEndTheTurn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"session.message.received@v1", "prompt.assemble@v1", "model.before@v1", "model.after@v1", "tool.before@v1", "tool.after@v1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newTalker(t)
			a := agentHome(t, model, "")
			hire(t, a, "desk", agent.Settings{})
			give(t, a, "desk", "strict", `export function register(ctx) {
  ctx.bus.on("`+name+`", () => { throw new Error("that is enough") }, { failureMode: "fail" });
}`)
			model.say(move{tool: "agent_memory__search", args: `{"query":"x"}`}, move{text: "done"})
			answer, err := talk(t, a, "desk", "hello")
			if plugin.CodeOf(err) != plugin.CodeHookFailed || !strings.Contains(err.Error(), "that is enough") || answer.Text == "done" {
				t.Errorf("%+v, %v", answer, err)
			}
			model.say(move{text: "hello"})
			assign(t, a, "desk", "strict", false)
			if answer, err := talk(t, a, "desk", "hello again"); err != nil {
				t.Errorf("without it: %+v, %v", answer, err)
			}
		})
	}
}

// What hooks make of a prompt and of what is said is what the model is sent.
func TestHooksRewriteWhatAModelIsSent(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	give(t, a, "desk", "editor", `export function register(ctx) {
  ctx.bus.on("session.message.received@v1", (e) => ({ ...e, text: e.text.replace("sesame", "[removed]") }));
  ctx.bus.on("prompt.assemble@v1", (e) => ({ ...e, sections: [...e.sections, { key: "house", content: "House rule seven." }] }));
  ctx.bus.on("model.before@v1", (e) => ({ ...e, messages: e.messages.map((m) => m.role === "user" ? { ...m, content: m.content + " (said politely)" } : m) }));
}`)
	model.say(move{text: "yes"})
	if _, err := talk(t, a, "desk", "open sesame"); err != nil {
		t.Fatal(err)
	}
	asked := model.heard()[0]
	for _, want := range []string{"House rule seven.", "open [removed] (said politely)"} {
		if !strings.Contains(asked, want) {
			t.Errorf("the model was sent no %q: %s", want, asked)
		}
	}
	if strings.Contains(asked, "sesame") {
		t.Errorf("the model was sent the word: %s", asked)
	}
}

// A guard that cannot be loaded guards nothing, so nothing with effects is done.
func TestAGuardThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	give(t, a, "desk", "moody", `export async function register(ctx) {
  if (await ctx.memory.get("mood")) throw new Error("not today");
  ctx.bus.on("tool.before@v1", () => ({ allow: true }));
}`)
	if u := use(t, a, model, "desk", "agent_memory__upsert", `{"key":"mood","content":"bad"}`); u.Code != "" {
		t.Fatalf("%+v", u)
	}
	if err := a.Agents.Stop("local", "desk", "user"); err != nil {
		t.Fatal(err)
	}
	if u := use(t, a, model, "desk", "agent_memory__upsert", `{"key":"mood","content":"worse"}`); u.Code != plugin.CodeHookFailed || !strings.Contains(u.Text, "not today") {
		t.Errorf("%+v", u)
	}
	if u := use(t, a, model, "desk", "agent_memory__search", `{"query":"mood"}`); u.Code != "" {
		t.Errorf("%+v", u)
	}
}

// In one conversation there is one turn at a time.
func TestTurnsOfOneConversationFollowEachOther(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	i, err := a.Agents.Instance(t.Context(), "local", "desk")
	if err != nil {
		t.Fatal(err)
	}
	c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli"})
	if err != nil {
		t.Fatal(err)
	}
	const many = 8
	for range many {
		model.say(move{text: "yes"})
	}
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if _, err := i.Turn(t.Context(), c.SessionID, agent.Message{Text: "and?", From: theOwner, Asker: "os:1"}, agent.Audience{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	messages, err := a.Store.Messages(t.Context(), "local", c.SessionID, 0, 100)
	if err != nil || len(messages) != 2*many {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	for n, m := range messages {
		if want := []string{"user", "assistant"}[n%2]; m.Role != want {
			t.Errorf("message %d is of the %s", n+1, m.Role)
		}
	}
	row, err := a.Store.Conversation(t.Context(), "local", c.SessionID)
	if err != nil || row.Turns != many || row.Lease != "" {
		t.Errorf("%+v, %v", row, err)
	}
}

// A tool call that requires approval waits, and the model is told so. A client
// that follows the turn may decide, and the turn continues with the result
// (CORE 6).
func TestAToolThatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := open(t, modelHome(t, model.URL, "policy: {allow: [{kinds: [tool]}, {effects: [memory_write]}]}\n"))
	hire(t, a, "desk", agent.Settings{})
	i, err := a.Agents.Instance(t.Context(), "local", "desk")
	if err != nil {
		t.Fatal(err)
	}
	c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli"})
	if err != nil {
		t.Fatal(err)
	}
	say := func(key string, to agent.Audience) agent.Use {
		t.Helper()
		model.say(move{tool: "agent_memory__upsert", args: `{"key":"` + key + `","content":"c"}`}, move{text: "done"})
		answer, err := i.Turn(t.Context(), c.SessionID, agent.Message{Text: "remember", From: theOwner, Asker: "os:1", Labels: []string{plugin.Untrusted}}, to)
		if err != nil || len(answer.Uses) != 1 {
			t.Fatalf("%+v, %v", answer, err)
		}
		return answer.Uses[0]
	}
	kept := func(key string) bool {
		t.Helper()
		_, found, err := a.Agents.Memory("local", "desk").Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	u := say("unasked", agent.Audience{})
	if u.Status != plugin.PendingApproval || u.Approval == "" || !strings.Contains(u.Text, "pending_approval") || kept("unasked") {
		t.Errorf("without an approver there: %+v", u)
	}
	u = say("agreed", agent.Audience{Ask: func(u agent.Use) (*agent.Reply, error) {
		if _, err := a.Approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: u.Approval, Approve: true, By: a.Principal}); err != nil {
			return nil, err
		}
		res, err := a.Kernel.Resume(t.Context(), "local", u.CallID)
		return &agent.Reply{Result: res, Err: err}, nil
	}})
	if u.Status != plugin.Succeeded || !kept("agreed") {
		t.Errorf("agreed to: %+v", u)
	}
	u = say("denied", agent.Audience{Ask: func(u agent.Use) (*agent.Reply, error) {
		if _, err := a.Approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: u.Approval, By: a.Principal}); err != nil {
			return nil, err
		}
		res, err := a.Kernel.Await(t.Context(), "local", u.CallID)
		return &agent.Reply{Result: res, Err: err}, nil
	}})
	if u.Code != plugin.CodeApprovalDenied || kept("denied") {
		t.Errorf("denied: %+v", u)
	}
}

// The four hook plugins that are shipped do what they say.
func TestShippedHooks(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	for _, name := range []string{"redact-secrets", "tool-allowlist", "prompt-sections", "turn-metrics"} {
		report, err := a.Registry.Register(t.Context(), "../../plugins/hooks/"+name, registry.RegisterOptions{Enable: true})
		if err != nil || len(report.Registered) != 1 || report.Registered[0].NotEnabled != nil {
			t.Fatalf("%s: %+v, %v", name, report, err)
		}
		assign(t, a, store.EveryAgent, name, true)
	}
	if err := a.Agents.Memory("local", "desk").Upsert(t.Context(), "", "prompt/tone", "Never shout.", nil); err != nil {
		t.Fatal(err)
	}
	model.say(move{tool: "turn-metrics__figures", args: "{}"}, move{text: "done"})
	answer, err := talk(t, a, "desk", "my key is AKIAABCDEFGHIJKLMNOP, and password: hunter22")
	if err != nil || len(answer.Uses) != 1 || answer.Uses[0].Code != plugin.CodeHookVetoed || !strings.Contains(answer.Uses[0].Text, "is not on the list") {
		t.Fatalf("%+v, %v", answer, err)
	}
	sent := model.heard()[0]
	for _, want := range []string{"[AWS key removed]", "[password removed]", "Today is 2", "Answer in the language", "Never shout."} {
		if !strings.Contains(sent, want) {
			t.Errorf("the model was sent no %q: %s", want, sent)
		}
	}
	if strings.Contains(sent, "AKIA") || strings.Contains(sent, "hunter22") {
		t.Errorf("the model was sent a secret: %s", sent)
	}
	assign(t, a, "desk", "tool-allowlist", false)
	var figures struct{ Turns, Models, Tools, ToolFailures, Memories int }
	u := use(t, a, model, "desk", "turn-metrics__figures", "{}")
	if err := json.Unmarshal([]byte(u.Text), &figures); err != nil || figures.Turns != 2 || figures.Models != 3 || figures.Tools != 1 || figures.ToolFailures != 1 {
		t.Errorf("%s, %v", u.Text, err)
	}
}
