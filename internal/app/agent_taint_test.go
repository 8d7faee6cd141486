package app_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/plugin"
)

// TestLabelsGoFromEveryWayInToEveryWayOut: whatever brings something tainted into a
// conversation, all that leaves it later has the labels, and what has an effect waits for
// a person. Of what is clean, nothing does (PL-19).
func TestLabelsGoFromEveryWayInToEveryWayOut(t *testing.T) {
	t.Parallel()
	needPython(t)
	tainted := []string{plugin.Private, plugin.Untrusted}
	remember := func(d *desk, labels []string) {
		t.Helper()
		if err := d.Agents.Memory("local", "support").Upsert(t.Context(), "", "plan", "the harvest plan", labels); err != nil {
			t.Fatal(err)
		}
	}
	for name, in := range map[string]struct {
		before  func(d *desk)
		message agent.Message
		moves   []move // before the effect
		want    []string
	}{
		"nothing":                    {message: agent.Message{Text: "hello"}},
		"a memory that is not found": {before: func(d *desk) { remember(d, tainted) }, message: agent.Message{Text: "hello"}},
		"the message":                {message: agent.Message{Text: "hello", Labels: tainted}, want: tainted},
		"a memory in the prompt":     {before: func(d *desk) { remember(d, tainted) }, message: agent.Message{Text: "what of the harvest?"}, want: tainted},
		"a memory that was searched": {
			before: func(d *desk) { remember(d, tainted) }, message: agent.Message{Text: "hello"}, moves: []move{{tool: "agent_memory__search", args: `{"query":"harvest"}`}}, want: tainted,
		},
		"a hook that reads a memory": {
			before: func(d *desk) {
				remember(d, tainted)
				give(t, d.App, "support", "teller", `export function register(ctx) {
  ctx.bus.on("prompt.assemble@v1", async (e) => ({ ...e, sections: [...e.sections, { key: "plan", content: JSON.stringify(await ctx.memory.search("harvest")) }] }));
}`)
			}, message: agent.Message{Text: "hello"}, want: tainted,
		},
		"what a tool answers": {
			before: func(d *desk) {
				dir := t.TempDir()
				write(t, dir, "reads.py", `
from mortise import Plugin
plugin = Plugin("reads", version="1.0.0")
@plugin.tool(labels=["private", "untrusted"])
def web(page: str) -> str:
    """Read a page."""
    return "a page"
plugin.run()
`)
				register(t, d.App, dir+"/reads.py", true)
				assign(t, d.App, "support", "reads", true)
			}, message: agent.Message{Text: "read a page of the web"}, moves: []move{{tool: "reads__web", args: `{"page":"x"}`}}, want: tainted,
		},
		"an earlier turn": {
			before: func(d *desk) { d.model.say(move{text: "noted"}) }, message: agent.Message{Text: "earlier", Labels: tainted}, want: tainted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, agent.Settings{})
			if in.before != nil {
				in.before(d)
			}
			i, err := d.Agents.Instance(t.Context(), "local", "support")
			if err != nil {
				t.Fatal(err)
			}
			c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			turn := func(m agent.Message) agent.Answer {
				t.Helper()
				m.From, m.Asker, m.Role = theOwner, "os:1", "owner"
				answer, err := i.Turn(t.Context(), c.SessionID, m, agent.Audience{})
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			if name == "an earlier turn" {
				turn(in.message)
				in.message = agent.Message{Text: "and now?"}
			}
			d.model.say(append(slices.Clone(in.moves), move{tool: "agent_memory__upsert", args: `{"key":"summary","content":"what I heard"}`}, move{text: "done"})...)
			answer := turn(in.message)
			last := answer.Uses[len(answer.Uses)-1]

			// The answer, as every way out has it: to people, a channel, or who asked the agent.
			if got := append([]string{}, answer.Labels...); !slices.Equal(got, append([]string{}, in.want...)) {
				t.Errorf("the answer has the labels %q, want %q", got, in.want)
			}
			rows, err := d.Store.LastMessages(t.Context(), "local", c.SessionID, 0, 1)
			if err != nil || len(rows) != 1 || !slices.Equal(rows[0].Labels, append([]string{}, in.want...)) {
				t.Errorf("on record it has %+v, %v", rows, err)
			}
			// The effect: with anything untrusted a person is asked, and what is kept keeps it.
			asks := slices.Contains(in.want, plugin.Untrusted)
			if (last.Status == plugin.PendingApproval) != asks || last.Operation != "agent.memory/upsert" {
				t.Errorf("the effect ended as %s (%s %s); to be asked about: %t", last.Status, last.Code, last.Text, asks)
			}
			if asks {
				d.answers(d.question(), true)
			}
			kept, err := d.Store.Memory(t.Context(), "local", "support", "summary")
			if err != nil || kept == nil || !slices.Equal(kept.Labels, append([]string{}, in.want...)) {
				t.Errorf("what it remembers of it has %+v, %v", kept, err)
			}
			// What was summarised taints those who read the summary, another agent's call included.
			call := plugin.Call{Tenant: "local", Principal: theOwner, Agent: "support", Origin: plugin.OriginAgent, Operation: "agent.memory/search", Input: json.RawMessage(`{"query":"heard"}`)}
			if res, err := d.Kernel.Call(t.Context(), call); err != nil || !strings.Contains(string(res.Data), "what I heard") || !slices.Equal(append([]string{}, res.Labels...), append([]string{}, in.want...)) {
				t.Errorf("who searches the summary gets the labels %q of %s, %v", res.Labels, res.Data, err)
			}
		})
	}
}

// What comes by a channel is untrusted on every way out of the host: the reply, a plan of
// a brain, and the end of a call that is told later.
func TestWhatAChannelSaysIsUntrustedOnEveryWayOut(t *testing.T) {
	t.Parallel()
	needPython(t)
	d := newDesk(t, agent.Settings{})
	session, q := d.asks("R1", "k")
	d.answers(q, true)
	d.advance()
	rows, err := d.Store.Messages(t.Context(), "local", session, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, row := range rows {
		seen[row.Role]++
		if !slices.Contains(row.Labels, plugin.Untrusted) {
			t.Errorf("message %d (%s) has the labels %q", row.N, row.Role, row.Labels)
		}
	}
	if fmt.Sprint(seen) != "map[assistant:3 inbound:2 tool:1 user:2]" {
		t.Errorf("there are %v", seen)
	}

	b := newDesk(t, agent.Settings{Brain: "clerk/decide"})
	dir := t.TempDir()
	write(t, dir, "clerk.py", clerk)
	register(t, b.App, dir+"/clerk.py", true)
	assign(t, b.App, "support", "clerk", true)
	b.said("R1", "mail ann")
	plan, err := b.Plans.Show(t.Context(), "local", b.question().SubjectID)
	if err != nil || !slices.Contains(plan.Labels, plugin.Untrusted) {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
}

// TestWhatAFailedCallTellsAsksAPerson: an error is as untrusted as an answer, on every way on
// which an agent hears of it. An effect that follows waits for a person.
func TestWhatAFailedCallTellsAsksAPerson(t *testing.T) {
	t.Parallel()
	needPython(t)
	upsert := move{tool: "agent_memory__upsert", args: `{"key":"summary","content":"what it told me"}`}
	// fails has the question approved, and returns how the call ends: as a failure.
	fails := func(d *desk) (plugin.Result, error) {
		d.t.Helper()
		q := d.question()
		if _, err := d.Approvals.Decide(d.t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: q.ID, Approve: true, By: d.Principal}); err != nil {
			d.t.Fatal(err)
		}
		res, err := d.Kernel.Await(d.t.Context(), "local", q.SubjectID)
		if err == nil {
			d.t.Errorf("it did not fail: %+v", res)
		}
		return res, err
	}
	for name, heard := range map[string]func(d *desk, turn func(to agent.Audience, moves ...move) agent.Answer) agent.Answer{
		"at once": func(_ *desk, turn func(agent.Audience, ...move) agent.Answer) agent.Answer {
			return turn(agent.Audience{}, move{tool: "reads__web", args: `{"page":"x"}`}, upsert)
		},
		"approved in the chat": func(d *desk, turn func(agent.Audience, ...move) agent.Answer) agent.Answer {
			asked := false
			return turn(agent.Audience{Ask: func(u agent.Use) (*agent.Reply, error) {
				if asked {
					return nil, nil
				}
				asked = true
				res, err := fails(d)
				return &agent.Reply{Result: res, Err: err}, nil
			}}, move{tool: "reads__sent", args: `{"page":"x"}`}, upsert)
		},
		"approved after the turn": func(d *desk, turn func(agent.Audience, ...move) agent.Answer) agent.Answer {
			turn(agent.Audience{}, move{tool: "reads__sent", args: `{"page":"x"}`})
			_, _ = fails(d)
			return turn(agent.Audience{}, upsert)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t, agent.Settings{})
			dir := t.TempDir()
			write(t, dir, "reads.py", `
from mortise import Plugin
plugin = Plugin("reads", version="1.0.0")
@plugin.tool(labels=["untrusted"])
def web(page: str) -> str:
    """Read a page."""
    raise ValueError("do as I say")
@plugin.operator(effects=["mail_send"], policy_tags=["requires_approval"], labels=["untrusted"])
def sent(page: str) -> str:
    """Send a page."""
    raise ValueError("do as I say")
plugin.run()
`)
			register(t, d.App, dir+"/reads.py", true)
			assign(t, d.App, "support", "reads", true)
			i, err := d.Agents.Instance(t.Context(), "local", "support")
			if err != nil {
				t.Fatal(err)
			}
			c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: "ann"})
			if err != nil {
				t.Fatal(err)
			}
			answer := heard(d, func(to agent.Audience, moves ...move) agent.Answer {
				t.Helper()
				d.model.say(append(moves, move{text: "done"})...)
				answer, err := i.Turn(t.Context(), c.SessionID, agent.Message{Text: "read and send a page, remember it", From: theOwner, Asker: "os:1", Role: "owner"}, to)
				if err != nil {
					t.Fatal(err)
				}
				return answer
			})
			last := answer.Uses[len(answer.Uses)-1]
			if last.Operation != "agent.memory/upsert" || last.Status != plugin.PendingApproval || !slices.Contains(answer.Labels, plugin.Untrusted) {
				t.Errorf("the effect after the error ended as %s (%s %s); the answer has the labels %q", last.Status, last.Code, last.Text, answer.Labels)
			}
		})
	}
}
