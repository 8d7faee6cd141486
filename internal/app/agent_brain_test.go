package app_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// clerk is a plugin whose agent decides by the words of a message, and what it may
// propose.
const clerk = `
from mortise import Plugin

plugin = Plugin("clerk", version="1.0.0")

def answer(kind, text, **more):
    return {"agent_name": "decide", "agent_version": "1.0.0", "kind": kind, "confidence": 1,
            "rationale": {"short": "It was asked for.", "signals": ["intent_type:Conversation.Message"]},
            "suggestions": [{"type": "reply", "text": text}] if text else [], **more}

def step(action, payload, gate="none"):
    return {"required_actions": [{"operator": action, "payload": payload}],
            "proposed_plan": {"steps": [{"step_id": "s1", "action": action, "gate": gate}]}}

@plugin.agent(allowed_actions=["clerk/find", "clerk/send"])
def decide(intent: dict, context: dict, tool_registry: list) -> dict:
    """Decide what a message asks for."""
    text = intent["payload"]["text"]
    if text.startswith("find "):
        return answer("plan_proposal", "I look it up.", **step("clerk/find", {"who": text[5:]}))
    if text.startswith("mail "):
        return answer("plan_proposal", "", **step("clerk/send", {"to": text[5:]}, "human_apply"))
    if text == "evil":
        return answer("plan_proposal", "", **step("agent.memory/upsert", {"key": "k", "content": "c"}))
    said = [m["role"] + " " + m["content"] for m in context["conversation"]["messages"]]
    return answer("next_step_suggestions", context["agent"]["id"] + " heard " + text + " after " + " | ".join(said))

@plugin.tool
def find(who: str) -> dict:
    """Find the orders of a customer."""
    return {"orders": [who + "-1"]}

@plugin.operator(effects=["mail_send"])
def send(to: str) -> str:
    """Send a mail."""
    return "sent to " + to

plugin.run()
`

// TestAnOperationAsABrain: what it suggests is the answer, what it proposes is a plan
// with the gates of policy, and its steps are the agent's own calls.
func TestAnOperationAsABrain(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := newDesk(t, agent.Settings{Brain: "clerk/decide"})
	dir := t.TempDir()
	write(t, dir, "clerk.py", clerk)
	out := func() string { return d.heard.heard(event.ChannelMessageOut) }

	register(t, d.App, filepath.Join(dir, "clerk.py"), true)
	d.said("R0", "hello")
	if !strings.Contains(out(), "did not work") {
		t.Errorf("without its plugin the room got %s", out())
	}
	assign(t, d.App, "support", "clerk", true)

	d.said("R1", "hello")
	if !strings.Contains(out(), "support heard hello after ") {
		t.Errorf("the room got %s", out())
	}
	d.heard.told()
	d.said("R1", "find ann")
	if !strings.Contains(out(), `I look it up.\nDone: clerk/find.`) {
		t.Errorf("the room got %s", out())
	}
	if told := d.heard.told(); !slices.Equal(told, []string{"channel.message.in", "session.message.received", "tool.before", "tool.after", "channel.message.out", "tool.before"}) {
		t.Errorf("plugins heard %q", told)
	}
	if after := d.heard.heard(event.ToolAfter); !strings.Contains(after, "ann-1") || !strings.Contains(after, "clerk/find") {
		t.Errorf("plugins heard %s", after)
	}
	d.said("R1", "and now?")
	for _, want := range []string{"user hello", "assistant support heard hello", `{\"orders\":[\"ann-1\"]}`, "I look it up."} {
		if !strings.Contains(strings.ReplaceAll(out(), `\\`, `\`), want) {
			t.Errorf("it knows nothing of %q: %s", want, out())
		}
	}
	d.said("R1", "evil")
	if !strings.Contains(out(), "did not work") {
		t.Errorf("the room got %s", out())
	}
	if asked := d.model.heard(); len(asked) != 0 {
		t.Errorf("a model was asked: %q", asked)
	}

	// A gate: a person is asked about the plan, and the room hears of the end.
	d.said("R2", "mail ann")
	if !strings.Contains(out(), "It was asked for.") || !strings.Contains(out(), "waits until a person approves plan") {
		t.Errorf("the room got %s", out())
	}
	d.heard.told()
	q := d.question()
	if q.SubjectKind != store.SubjectPlan || q.Asker != "channel:desk/U2" {
		t.Errorf("the question is %+v", q)
	}
	ctx := t.Context()
	rows, err := d.Store.Outbox(ctx, store.OutboxFilter{Tenant: "local", Limit: 10})
	if err != nil || len(rows) != 1 || !agent.IsLate(&rows[0]) {
		t.Fatalf("%+v, %v", rows, err)
	}
	look := func() {
		t.Helper()
		rows, err := d.Store.Outbox(ctx, store.OutboxFilter{Tenant: "local", Limit: 10})
		for i := 0; err == nil && i < len(rows); i++ {
			err = d.Agents.LookAtLate(ctx, rows[i])
		}
		if err != nil {
			t.Fatal(err)
		}
		d.advance()
	}
	look()
	if told := d.heard.told(); len(told) != 0 {
		t.Errorf("before the answer plugins heard %q", told)
	}
	if _, err := d.Approvals.Decide(ctx, approval.Answer{Tenant: "local", Asker: "os:2", ID: q.ID, Approve: true, By: d.Principal}); err != nil {
		t.Fatal(err)
	}
	if view, err := d.Plans.Run(ctx, "local", q.SubjectID); err != nil || view.State != store.PlanSucceeded {
		t.Fatalf("%+v, %v", view, err)
	}
	for range 2 {
		look()
	}
	if !strings.Contains(out(), "Done: clerk/send.") {
		t.Errorf("the room got %s", out())
	}
	if told := d.heard.told(); !slices.Equal(told, []string{"tool.before", "tool.after", "channel.message.out", "tool.before"}) {
		t.Errorf("plugins heard %q", told)
	}
	d.said("R2", "and now?")
	if !strings.Contains(out(), "sent to ann") {
		t.Errorf("it knows nothing of the mail: %s", out())
	}
}

// The hooks of an agent guard what its brain has proposed, and the plugins that it was
// given are all that its plans reach.
func TestTheHooksOfAnAgentGuardItsPlans(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := newDesk(t, agent.Settings{Brain: "clerk/decide"})
	dir := t.TempDir()
	write(t, dir, "clerk.py", clerk)
	register(t, d.App, filepath.Join(dir, "clerk.py"), true)
	assign(t, d.App, "support", "clerk", true)
	give(t, d.App, "support", "guard", `export function register(ctx) {
  ctx.bus.on("tool.before@v1", (e) => e.toolName === "clerk/find" ? { allow: false, reason: "not here" } : { allow: true });
}`)
	i, err := d.Agents.Instance(t.Context(), "local", "support")
	if err != nil {
		t.Fatal(err)
	}
	c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := i.Turn(t.Context(), c.SessionID, agent.Message{Text: "find ann", From: theOwner, Asker: "os:1"}, agent.Audience{})
	if err != nil || len(answer.Uses) != 1 || answer.Uses[0].Code != plugin.CodeHookVetoed || !strings.Contains(answer.Text, "did not succeed") {
		t.Errorf("%+v, %v", answer, err)
	}
}
