package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/plugin"
)

// afterListener hears tool.after, and tells what it heard; before that it redacts
// what the tool is given, and refuses what says so.
const afterListener = `
const heard = [];
export function register(ctx) {
  ctx.bus.on("tool.before@v1", (e) => {
    if (!e.args.content) return { allow: true };
    return { allow: true, payload: { ...e, args: { ...e.args, content: e.args.content.replace("s3cret", "***") } } };
  }, { priority: 10 });
  ctx.bus.on("tool.before@v1", (e) => ({ allow: !(e.args.content || "").includes("refuse"), reason: "no" }), { priority: 90 });
  ctx.bus.on("tool.after@v1", (e) => { if (e.toolName !== "listener/heard") heard.push(JSON.parse(JSON.stringify(e))); });
  ctx.tools.add({ name: "heard", description: "What was heard.", schema: { type: "object" }, handler: () => heard });
}`

type afterEvent struct {
	Call   string          `json:"toolCallId"`
	Args   json.RawMessage `json:"args"`
	Result json.RawMessage `json:"result"`
	OK     bool            `json:"ok"`
	Error  string          `json:"error"`
}

func heardOf(t *testing.T, a *app.App) (events []afterEvent) {
	t.Helper()
	res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: theOwner, Agent: "desk", Origin: plugin.OriginAgent, Operation: "listener/heard", Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(res.Data, &events); err != nil {
		t.Fatal(err)
	}
	return events
}

// A listener of tool events gets the arguments that were run, after the hooks:
// also where a later hook, or the schema, refused the call.
func TestToolAfterHasTheArgumentsThatHooksMade(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	give(t, a, "desk", "listener", afterListener)
	for _, content := range []string{"s3cret", "s3cret, refuse"} {
		use(t, a, model, "desk", "agent_memory__upsert", `{"key":"k","content":"`+content+`"}`)
	}
	use(t, a, model, "desk", "agent_memory__upsert", `{"content":"s3cret","surplus":1}`)
	events := heardOf(t, a)
	if len(events) != 3 {
		t.Fatalf("%+v", events)
	}
	for _, e := range events {
		if strings.Contains(string(e.Args), "s3cret") || !strings.Contains(string(e.Args), "***") {
			t.Errorf("heard %s", e.Args)
		}
	}
	if !events[0].OK || events[1].OK || events[2].OK {
		t.Errorf("%+v", events)
	}
}

// A call that waits for a person has not ended: tool.after comes once, when it
// has, however it ended.
func TestToolAfterComesOnceWithTheRealEndOfACallThatWaited(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := open(t, modelHome(t, model.URL, "policy: {allow: [{kinds: [tool]}, {effects: [memory_write]}]}\n"))
	hire(t, a, "desk", agent.Settings{})
	give(t, a, "desk", "listener", afterListener)
	i, err := a.Agents.Instance(t.Context(), "local", "desk")
	if err != nil {
		t.Fatal(err)
	}
	a.Approvals.TrustAs = true // the one who asks and the one who answers are names here
	c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli"})
	if err != nil {
		t.Fatal(err)
	}
	for n, end := range []struct {
		name string
		do   func(u agent.Use) error
		ok   bool
	}{
		{"approved and run", func(u agent.Use) error {
			if _, err := a.Approvals.Decide(t.Context(), approval.Answer{Tenant: "local", ID: u.Approval, Approve: true, By: a.Principal}); err != nil {
				return err
			}
			if _, err := a.Kernel.Await(t.Context(), "local", u.CallID); err != nil {
				return err
			}
			_, err := a.Kernel.Await(t.Context(), "local", u.CallID)
			return err
		}, true},
		{"denied", func(u agent.Use) error {
			_, err := a.Approvals.Decide(t.Context(), approval.Answer{Tenant: "local", ID: u.Approval, By: a.Principal})
			return err
		}, false},
		{"cancelled", func(u agent.Use) error {
			_, err := a.Kernel.Cancel(t.Context(), "local", u.CallID, "ann", "never mind")
			return err
		}, false},
		{"expired", func(u agent.Use) error {
			a.Approvals.Now = func() time.Time { return time.Now().Add(48 * time.Hour) }
			defer func() { a.Approvals.Now = nil }()
			_, err := a.Approvals.Expire(t.Context())
			return err
		}, false},
	} {
		model.say(move{tool: "agent_memory__upsert", args: `{"key":"k","content":"s3cret"}`}, move{text: "done"})
		answer, err := i.Turn(t.Context(), c.SessionID, agent.Message{Text: "remember", From: theOwner, Asker: "os:1", Labels: []string{plugin.Untrusted}}, agent.Audience{})
		if err != nil || len(answer.Uses) != 1 || answer.Uses[0].Status != plugin.PendingApproval {
			t.Fatalf("%s: %+v, %v", end.name, answer, err)
		}
		u := answer.Uses[0]
		if got := heardOf(t, a); len(got) != n {
			t.Fatalf("%s: while it waited this was heard: %+v", end.name, got[n:])
		}
		if err := end.do(u); err != nil {
			t.Fatalf("%s: %v", end.name, err)
		}
		got := heardOf(t, a)
		if len(got) != n+1 {
			t.Fatalf("%s: %d events, want %d: %+v", end.name, len(got), n+1, got)
		}
		e := got[n]
		if e.Call != u.CallID || e.OK != end.ok || (e.Error == "") != end.ok || (e.Result != nil) != end.ok || strings.Contains(string(e.Args), "s3cret") {
			t.Errorf("%s: %+v", end.name, e)
		}
	}
}
