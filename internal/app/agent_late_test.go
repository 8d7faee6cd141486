package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
)

// A desk is a host with an agent that people write to by a channel, and whose memory
// is written only with the approval of a person.
type desk struct {
	*app.App
	t     *testing.T
	model *talker
	heard *listening
	n     int
}

func newDesk(t *testing.T, settings agent.Settings) *desk {
	t.Helper()
	model := newTalker(t)
	a := open(t, modelHome(t, model.URL, "policy: {allow: [{kinds: [tool]}, {effects: [memory_write, mail_send]}]}\n"))
	if err := a.Vault.Put(t.Context(), store.SecretName{Tenant: "local", Owner: secret.Anyone, Scope: "system", Name: "desk"}, "whsec_c2VjcmV0LW9mLXRoZS1kZXNr", secret.By{Principal: "ann"}); err != nil {
		t.Fatal(err)
	}
	settings.Channels = map[string]agent.Channel{"desk": {Scheme: webhook.Standard, Secret: "desk", Reply: "notes/send"}}
	hire(t, a, "support", settings)
	give(t, a, "support", "notes", `export function register(ctx) {
  ctx.tools.add({ name: "send", schema: { type: "object" }, handler: () => ({}) });
}`)
	i, err := a.Agents.Instance(t.Context(), "local", "support")
	if err != nil {
		t.Fatal(err)
	}
	return &desk{App: a, t: t, model: model, heard: listen(t, i)}
}

// said delivers a message of the sender U2 in a room, and gives it its turn.
func (d *desk) said(room, text string) (session string) {
	d.t.Helper()
	d.n++
	body := fmt.Appendf(nil, `{"text":%q,"sender":"U2","room":%q}`, text, room)
	header, err := webhook.Sign("whsec_c2VjcmV0LW9mLXRoZS1kZXNr", fmt.Sprintf("msg_%d", d.n), time.Now(), body)
	if err != nil {
		d.t.Fatal(err)
	}
	got, err := d.Agents.Receive(d.t.Context(), "local", "support", "desk", header, body, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.advance()
	return got.Session
}

// advance gives all messages that wait their turns, as a host that serves does, and
// reports how many conversations there were.
func (d *desk) advance() (n int) {
	d.t.Helper()
	for {
		rows, err := d.Agents.Waiting(d.t.Context(), 10)
		if err != nil {
			d.t.Fatal(err)
		}
		if len(rows) == 0 {
			return n
		}
		for _, row := range rows {
			n++
			if err := d.Agents.Advance(d.t.Context(), "local", row.SessionID); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

// asks has the agent ask for something that a person must approve, and returns the
// question.
func (d *desk) asks(room, key string) (session string, question store.ApprovalRow) {
	d.t.Helper()
	d.model.say(move{tool: "agent_memory__upsert", args: `{"key":"` + key + `","content":"c"}`}, move{text: "I asked for it."})
	session = d.said(room, "remember "+key)
	d.heard.told()
	return session, d.question()
}

// question returns the one that is open.
func (d *desk) question() store.ApprovalRow {
	d.t.Helper()
	open, err := d.Store.Approvals(d.t.Context(), store.ApprovalFilter{Tenant: "local", State: store.ApprovalOpen, Limit: 10})
	if err != nil || len(open) != 1 {
		d.t.Fatalf("%+v, %v", open, err)
	}
	return open[0]
}

// answers decides a question, and carries out what was approved.
func (d *desk) answers(q store.ApprovalRow, approve bool) {
	d.t.Helper()
	ctx := d.t.Context()
	if _, err := d.Approvals.Decide(ctx, approval.Answer{Tenant: "local", Asker: "os:2", ID: q.ID, Approve: approve, By: d.Principal}); err != nil {
		d.t.Fatal(err)
	}
	if approve {
		if _, err := d.Kernel.Resume(ctx, "local", q.SubjectID); err != nil {
			d.t.Fatal(err)
		}
	}
}

// TestAnApprovalAfterTheTurnIsToldToItsConversation: approved, refused and expired, each
// is the next turn's input once, and the room gets the answer.
func TestAnApprovalAfterTheTurnIsToldToItsConversation(t *testing.T) {
	t.Parallel()
	d := newDesk(t, agent.Settings{})
	for _, c := range []struct {
		room    string
		approve bool
		want    string // what the model is told
	}{{"R1", true, "agent.memory/upsert (call "}, {"R2", false, "approval_denied"}} {
		session, q := d.asks(c.room, "k"+c.room)
		d.answers(q, c.approve)
		d.model.say(move{text: "So it ended in " + c.room + "."})
		if n := d.advance(); n != 1 {
			t.Errorf("%s: %d conversations went on", c.room, n)
		}
		last := d.model.heard()[len(d.model.heard())-1]
		if !strings.Contains(last, c.want) || !strings.Contains(last, "The host says") {
			t.Errorf("%s: the model was told %s", c.room, last)
		}
		out := d.heard.heard(event.ChannelMessageOut)
		if !strings.Contains(out, "So it ended in "+c.room) || !strings.Contains(out, session) {
			t.Errorf("%s: the room got %s", c.room, out)
		}
		told := d.heard.told()
		if n := len(slices.DeleteFunc(slices.Clone(told), func(e string) bool { return e != "tool.after" })); n != 1 || slices.Contains(told, "session.message.received") {
			t.Errorf("%s: plugins heard %q", c.room, told)
		}
		row, err := d.Store.Call(t.Context(), "local", q.SubjectID)
		if err != nil {
			t.Fatal(err)
		}
		d.Agents.Ended(t.Context(), row) // another host comes by
		if n := d.advance(); n != 0 {
			t.Errorf("%s: it is told once more", c.room)
		}
		if rows, err := d.Store.Outbox(t.Context(), store.OutboxFilter{Tenant: "local", Limit: 10}); err != nil || len(rows) != 0 {
			t.Errorf("%s: there remain %+v, %v", c.room, rows, err)
		}
	}
}

// What a person approves when the conversation has ended is told in the one after it.
func TestAnApprovalAfterTheConversationIsToldInTheNext(t *testing.T) {
	t.Parallel()
	d := newDesk(t, agent.Settings{LateResults: agent.LateTell})
	session, q := d.asks("R1", "k")
	if _, err := d.Agents.End(t.Context(), "local", session, "user"); err != nil {
		t.Fatal(err)
	}
	asked := len(d.model.heard())
	d.answers(q, true)
	d.advance()
	out := d.heard.heard(event.ChannelMessageOut)
	if !strings.Contains(out, "agent.memory/upsert was carried out.") || strings.Contains(out, session) || len(d.model.heard()) != asked {
		t.Errorf("the room got %s", out)
	}
	next := d.said("R1", "and?") // the model sees it in its conversation
	last := d.model.heard()[len(d.model.heard())-1]
	if next == session || !strings.Contains(last, "was carried out") {
		t.Errorf("the model was told %s", last)
	}
}

// A host that dies as a call ends tells no one; a sweep of another does.
func TestAnApprovalOfWhichTheHostDiedIsTold(t *testing.T) {
	t.Parallel()
	d := newDesk(t, agent.Settings{})
	_, q := d.asks("R1", "k")
	outcome := d.Agents.Outcome
	d.Agents.Outcome = nil // so that the end of the call tells no one
	d.answers(q, true)
	d.Agents.Outcome = outcome
	if n := d.advance(); n != 0 {
		t.Fatalf("%d conversations went on", n)
	}
	rows, err := d.Store.Outbox(t.Context(), store.OutboxFilter{Tenant: "local", Limit: 10})
	if err != nil || len(rows) != 1 || !agent.IsLate(&rows[0]) || rows[0].NextAt.After(time.Now().Add(time.Minute)) {
		t.Fatalf("%+v, %v", rows, err)
	}
	for range 2 {
		if err := d.Agents.LookAtLate(t.Context(), rows[0]); err != nil {
			t.Fatal(err)
		}
	}
	if n := d.advance(); n != 1 {
		t.Errorf("%d conversations went on", n)
	}
	if rows, err := d.Store.Outbox(t.Context(), store.OutboxFilter{Tenant: "local", Limit: 10}); err != nil || len(rows) != 0 {
		t.Errorf("there remain %+v, %v", rows, err)
	}
}

// A question that expires is told too, and a chain of such ends by itself.
func TestQuestionsThatExpireAreToldAndEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t, agent.Settings{})
	now := time.Now()
	d.Approvals.Now = func() time.Time { return now }
	turns := 0
	_, _ = d.asks("R1", "k0")
	for ; turns < 20; turns++ {
		now = now.Add(48 * time.Hour)
		if n, err := d.Approvals.Expire(t.Context()); err != nil || n != 1 {
			t.Fatalf("%d expired, %v", n, err)
		}
		before := len(d.model.heard())
		d.model.say(move{tool: "agent_memory__upsert", args: fmt.Sprintf(`{"key":"k%d","content":"c"}`, turns+1)}, move{text: "I ask again."})
		d.advance()
		if len(d.model.heard()) == before {
			break
		}
	}
	if out := d.heard.heard(event.ChannelMessageOut); turns != 8 || !strings.Contains(out, "was not approved in time") {
		t.Errorf("after %d turns the room got %s", turns, out)
	}
}

// At a terminal no turn begins by itself: the next one has what became of the call.
func TestAnApprovalAfterATurnAtTheTerminal(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]store.AgentState{"a running agent": store.AgentRunning, "a stopped one": store.AgentStopped} {
		d := newDesk(t, agent.Settings{})
		if err := d.Store.Write(t.Context(), func(tx store.Tx) error {
			row, err := tx.Agent(t.Context(), "local", "support")
			if err == nil {
				row.State = state
				_, err = tx.UpdateAgent(*row)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		i, err := d.Agents.Instance(t.Context(), "local", "support")
		if err != nil {
			t.Fatal(err)
		}
		c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		d.model.say(move{tool: "agent_memory__upsert", args: `{"key":"k","content":"c"}`}, move{text: "I asked."})
		m := agent.Message{Text: "remember", From: theOwner, Asker: "os:1", Labels: []string{"untrusted"}}
		if _, err := i.Turn(t.Context(), c.SessionID, m, agent.Audience{}); err != nil {
			t.Fatal(err)
		}
		asked := len(d.model.heard())
		d.answers(d.question(), true)
		d.advance()
		if len(d.model.heard()) != asked {
			t.Errorf("%s: the model was asked by itself", name)
		}
		for range 2 {
			if _, err := i.Turn(t.Context(), c.SessionID, agent.Message{Text: "and?", From: theOwner, Asker: "os:1"}, agent.Audience{}); err != nil {
				t.Fatal(err)
			}
		}
		if last := d.model.heard()[asked+1]; strings.Count(last, "The host says") != 1 {
			t.Errorf("%s: the model was told %s", name, last)
		}
	}
}
