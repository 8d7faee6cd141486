package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/base/canon"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

const secret = "whsec_c2VjcmV0LW9mLXRoZS1kZXNr"

// channels returns a desk whose agent "shop" has a channel.
func channels(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.hire("shop", agent.Settings{MaxSteps: 2, Channels: map[string]agent.Channel{"web": {Scheme: webhook.Standard, Secret: "s", Reply: "web/send", Labels: []string{"private"}}}})
	return d
}

// send delivers a message.
func (d *desk) send(id, body string) (agent.Received, error) {
	d.t.Helper()
	header, err := webhook.Sign(secret, id, time.Now(), []byte(body))
	if err != nil {
		d.t.Fatal(err)
	}
	return d.Receive(context.Background(), "t", "shop", "web", header, []byte(body), nil)
}

// got is send for what must be taken.
func (d *desk) got(id, body string) string {
	d.t.Helper()
	r, err := d.send(id, body)
	if err != nil || r.Session == "" || r.Seen {
		d.t.Fatalf("%+v, %v", r, err)
	}
	return r.Session
}

func TestReceive(t *testing.T) {
	t.Parallel()
	d := channels(t)
	session := d.got("m1", `{"text":"hi","sender":"U1"}`)
	if !slices.Equal(d.woken, []string{session}) {
		t.Errorf("woken: %q", d.woken)
	}
	if r, err := d.send("m1", `{"text":"hi","sender":"U1"}`); err != nil || !r.Seen || r.Session != session {
		t.Errorf("again: %+v, %v", r, err)
	}
	if r, err := d.send("m2", `{"text":""}`); err != nil || !r.Ignored || len(d.woken) != 1 {
		t.Errorf("nothing said: %+v, %v", r, err)
	}
	if other := d.got("m3", `{"text":"hi"}`); other == session {
		t.Error("a message without a sender went into a sender's conversation")
	}
	if one, two := d.got("m4", `{"text":"hi"}`), d.got("m5", `{"text":"hi","sender":"U1"}`); one == two || two != session {
		t.Errorf("later they are in %s and %s", one, two)
	}
	odd := d.got("m6", `{"text":"hi","sender":"`+strings.Repeat("é", 120)+"\u200b"+`"}`)
	if row, err := d.Store.Conversation(t.Context(), "t", odd); err != nil || row == nil {
		t.Errorf("%+v, %v", row, err)
	}
	rows, err := d.Store.Messages(t.Context(), "t", session, 0, 10)
	if err != nil || len(rows) != 2 || !slices.Equal(rows[0].Labels, []string{"private", plugin.Untrusted}) {
		t.Errorf("%+v, %v", rows, err)
	}

	header, err := webhook.Sign(secret, "m7", time.Now(), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		agent, channel string
		header         http.Header
		body           string
		code           plugin.Code
	}{
		"no agent":   {"none", "web", header, "{}", plugin.CodeUnauthenticated},
		"no channel": {"shop", "mail", header, "{}", plugin.CodeUnauthenticated},
		"terminal":   {"shop", agent.Terminal, header, "{}", plugin.CodeUnauthenticated},
		"forged":     {"shop", "web", header, `{"text":"hi"}`, plugin.CodeUnauthenticated},
		"unsigned":   {"shop", "web", nil, "{}", plugin.CodeUnauthenticated},
		"malformed":  {"shop", "web", header, "{}", plugin.CodeInvalidInput},
	} {
		_, err := d.Receive(t.Context(), "t", c.agent, c.channel, c.header, []byte(c.body), nil)
		if plugin.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}

	d.state("shop", store.AgentStopped)
	_, err = d.send("m8", `{"text":"hi"}`)
	wantCode(t, err, plugin.CodeUnavailable)
	d.state("shop", store.AgentRunning)
	d.got("m8", `{"text":"hi"}`)
}

// state starts or stops an agent.
func (d *desk) state(id string, s store.AgentState) {
	d.t.Helper()
	d.write(func(tx store.Tx) error {
		row, err := tx.Agent(context.Background(), "t", id)
		if err != nil {
			return err
		}
		row.State = s
		_, err = tx.UpdateAgent(*row)
		return err
	})
}

// Hooks may change what comes in, and refuse it: then the sender may send it again.
func TestReceiveWithHooks(t *testing.T) {
	t.Parallel()
	d := channels(t)
	fails := true
	d.equip("shop", "editor", event.Subscription{Event: event.ChannelMessageIn, Mode: event.Fail, Transform: func(_ context.Context, p *event.Payload) (*event.Payload, error) {
		if fails {
			return nil, errors.New("not now")
		}
		return p.With("text", `"hello"`).With("metadata", `{"a":1}`), nil
	}})
	_, err := d.send("m1", `{"text":"hi","sender":"U1"}`)
	wantCode(t, err, plugin.CodeHookFailed)
	fails = false
	session := d.got("m1", `{"text":"hi","sender":"U1"}`)
	rows, err := d.Store.Messages(t.Context(), "t", session, 0, 10)
	if err != nil || len(rows) != 1 || string(rows[0].Body) != `{"text":"hello","sender":"U1","metadata":{"a":1},"channel":"web"}` {
		t.Errorf("%s, %v", rows[0].Body, err)
	}
}

// Two concurrent first messages of one sender end up in one conversation,
// whichever nodes take them.
func TestTwoFirstMessages(t *testing.T) {
	t.Parallel()
	d := channels(t)
	nodes := []*desk{d, deskOn(t, d.Store)}
	for round := range 3 { // a later one follows a conversation that ended
		var all sync.WaitGroup
		var mu sync.Mutex
		sessions := map[string]int{}
		for n := range 8 {
			all.Go(func() {
				session := nodes[n%2].got(fmt.Sprintf("m%d-%d", round, n), `{"text":"hi","sender":"U1"}`)
				mu.Lock()
				defer mu.Unlock()
				sessions[session]++
			})
		}
		all.Wait()
		if len(sessions) != 1 {
			t.Errorf("round %d: %v", round, sessions)
		}
		i, err := d.Instance(t.Context(), "t", "shop")
		if err != nil {
			t.Fatal(err)
		}
		for session := range sessions {
			if err := i.End(t.Context(), session, "user"); err != nil {
				t.Error(err)
			}
		}
	}
}

// A waiting message has one turn, though two nodes advance it at once, and one answer,
// tainted with what came in.
func TestAdvance(t *testing.T) {
	t.Parallel()
	d := channels(t)
	other := deskOn(t, d.Store)
	session := d.got("m1", `{"text":"hi","sender":"U1","metadata":{"thread":"7"}}`)
	d.got("m2", `{"text":"are you there?","sender":"U1"}`)
	if waiting, err := d.Waiting(t.Context(), 5); err != nil || len(waiting) != 1 {
		t.Errorf("%+v, %v", waiting, err)
	}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			if err := []*desk{d, other}[n%2].Advance(t.Context(), "t", session); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(d.heard()) + len(other.heard()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	sent := append(d.called("web/send"), other.called("web/send")...)
	if len(sent) != 2 || sent[0].Key == sent[1].Key {
		t.Fatalf("%+v", sent)
	}
	slices.SortFunc(sent, func(a, b plugin.Call) int { return strings.Compare(a.Key, b.Key) })
	want := fmt.Sprintf(`{"channel":"web","metadata":{"thread":"7"},"session":%q,"text":"yes","to":"U1"}`, session)
	if c := sent[0]; string(c.Input) != want || c.Key != "reply:"+session+":1" || c.Principal.ID != "web:U1" || len(c.Principal.Scopes) != 0 || !slices.Equal(c.Labels, []string{"private", plugin.Untrusted}) {
		t.Errorf("%+v: %s", c, c.Input)
	}
	if err := d.Advance(t.Context(), "t", session); err != nil || len(d.called("web/send"))+len(other.called("web/send")) != 2 {
		t.Errorf("attended to once more: %v", err)
	}
	if waiting, err := d.Waiting(t.Context(), 5); err != nil || len(waiting) != 0 {
		t.Errorf("%+v, %v", waiting, err)
	}
}

// An answer goes to where its message came from, also where that has an id above
// 2^53: in the input of an operation with effects such a number is text, with the
// same digits.
func TestAnswersKeepTheIDsOfTheirMessage(t *testing.T) {
	t.Parallel()
	d := channels(t)
	session := d.got("m1", `{"text":"hi","sender":"U1","metadata":{"chat":9007199254740993,"thread":"","in":[{"n":-9007199254740993,"big":1e300}],"small":9007199254740992,"f":1.5}}`)
	if err := d.Advance(t.Context(), "t", session); err != nil {
		t.Fatal(err)
	}
	sent := d.called("web/send")
	want := `{"chat":"9007199254740993","thread":"","in":[{"n":"-9007199254740993","big":"1e300"}],"small":9007199254740992,"f":1.5}`
	if len(sent) != 1 || !strings.Contains(string(sent[0].Input), `"metadata":`+want) {
		t.Fatalf("%+v", sent)
	}
	if at, found := canon.BigNumber(sent[0].Input); found {
		t.Errorf("the kernel refuses it for the number at %s", at)
	}
}

// A turn that fails still marks its message as handled, and the sender is told;
// this holds for a turn that was cut and for one that ended with the host. The
// answer has the labels of the incoming message.
func TestAttendWithTurnsThatFail(t *testing.T) {
	t.Parallel()
	broken := llm.Move{Err: &llm.Error{Kind: llm.Unreachable, Message: "away"}}
	for name, c := range map[string]struct {
		first func(ctx context.Context, c llm.Conversation) llm.Move
		want  string
	}{
		"fails": {func(context.Context, llm.Conversation) llm.Move { return broken }, "did not work"},
		"cut":   {func(context.Context, llm.Conversation) llm.Move { return wish("do", "{}", "u") }, "too many steps"},
		"hook":  {func(context.Context, llm.Conversation) llm.Move { t.Error("the model was asked"); return broken }, "did not work"},
		"ends":  {nil, "did not work"},
		"late":  {nil, "just in time"},
	} {
		d := channels(t)
		ctx, cancel := context.WithCancel(t.Context())
		switch name {
		case "hook":
			d.equip("shop", "strict", event.Subscription{Event: event.SessionMessageReceived, Mode: event.Fail, Transform: func(context.Context, *event.Payload) (*event.Payload, error) {
				return nil, errors.New("no")
			}})
		case "ends":
			c.first = func(context.Context, llm.Conversation) llm.Move { cancel(); return broken }
		case "late":
			c.first = func(context.Context, llm.Conversation) llm.Move { cancel(); return llm.Move{Text: "just in time"} }
		}
		d.think(c.first)
		d.say(wish("do", "{}", "u"))
		session := d.got("m1", `{"text":"hi","sender":"U1"}`)
		if err := d.Advance(ctx, "t", session); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		sent := d.called("web/send")
		var in struct{ Text string }
		if len(sent) != 1 || json.Unmarshal(sent[0].Input, &in) != nil || !strings.Contains(in.Text, c.want) || !slices.Contains(sent[0].Labels, plugin.Untrusted) {
			t.Errorf("%s: %+v", name, sent)
		}
		if waiting, err := d.Waiting(t.Context(), 5); err != nil || len(waiting) != 0 {
			t.Errorf("%s: %+v, %v", name, waiting, err)
		}
	}
}

// A message whose turn cannot start yet keeps waiting: another turn is running,
// the turn is abandoned, or the agent was stopped.
func TestAttendLater(t *testing.T) {
	t.Parallel()
	d := channels(t)
	session := d.got("m1", `{"text":"hi","sender":"U1"}`)
	waits := func(what string) {
		t.Helper()
		if row, err := d.Store.Conversation(t.Context(), "t", session); err != nil || row.Handled != 0 || len(d.heard()) != 0 || len(d.called("web/send")) != 0 {
			t.Errorf("%s: %+v, %v", what, row, err)
		}
	}
	var mu sync.Mutex
	now := time.Now()
	d.Options.Now = func() time.Time { // the wait for the turn soon reaches its deadline
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(10 * time.Second)
		return now
	}
	d.write(func(tx store.Tx) error {
		_, err := tx.TakeTurn("t", session, "another", time.Now(), time.Now().Add(time.Hour))
		return err
	})
	wantCode(t, d.Advance(t.Context(), "t", session), plugin.CodeOverloaded)
	waits("another turn")
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	d.Options.Now = time.Now
	if err := d.Advance(ctx, "t", session); err == nil {
		t.Error("the turn had an answer although no caller waited")
	}
	waits("no caller waits")
	d.write(func(tx store.Tx) error { _, err := tx.EndTurn("t", session, "another", time.Now()); return err })
	d.state("shop", store.AgentStopped)
	if err := d.Advance(t.Context(), "t", session); err != nil {
		t.Error(err)
	}
	waits("stopped")
	d.state("shop", store.AgentRunning)
	if err := d.Advance(t.Context(), "t", session); err != nil || len(d.called("web/send")) != 1 {
		t.Errorf("at last: %v", err)
	}
}

// An answer that a person must agree to is on its way; the message has its turn
// behind it.
func TestAnAnswerThatWaitsForAPerson(t *testing.T) {
	t.Parallel()
	d := channels(t)
	d.do = func(context.Context, plugin.Call) (plugin.Result, error) {
		return plugin.Result{Status: plugin.PendingApproval, Approval: &plugin.Pending{ID: "ap1"}}, nil
	}
	session := d.got("m1", `{"text":"hi","sender":"U1"}`)
	for range 2 {
		if err := d.Advance(t.Context(), "t", session); err != nil {
			t.Error(err)
		}
	}
	if n := len(d.called("web/send")); n != 1 {
		t.Errorf("%d answers", n)
	}
}

// A time of a schedule is a conversation of its own, as is a question; both end
// with their answer.
func TestFireAndAsk(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var told []string
	d.equip("one", "watch",
		event.Subscription{Event: event.ScheduleFired, Transform: func(_ context.Context, p *event.Payload) (*event.Payload, error) {
			return p.With("prompt", `"`+p.String("prompt")+` please"`), nil
		}},
		event.Subscription{Event: event.SessionClosed, Listen: func(_ context.Context, p *event.Payload) error { d.note(&told, p.String("reason")); return nil }})
	if answer, err := d.Fire(t.Context(), by(), "one", "s1", "cron", "Sum up"); err != nil || answer.Text != "yes" {
		t.Errorf("%+v, %v", answer, err)
	}
	if got := d.heard()[0].Messages; len(got) != 1 || got[0].Text != "Sum up please" {
		t.Errorf("%+v", got)
	}
	if answer, err := d.Ask(t.Context(), by("private"), "one", "hi"); err != nil || !slices.Equal(answer.Labels, []string{"private"}) {
		t.Errorf("%+v, %v", answer, err)
	}
	d.say(llm.Move{Err: &llm.Error{Kind: llm.Budget, Message: "spent"}})
	_, err := d.Ask(t.Context(), by(), "one", "hi")
	wantCode(t, err, plugin.CodeBudgetExceeded)
	if !slices.Equal(told, []string{"idle", "idle", "error"}) || len(d.closed) != 3 {
		t.Errorf("closed %q, told %q", d.closed, told)
	}
	_, err = d.Ask(t.Context(), by(), "one", strings.Repeat("x", agent.MaxText+1))
	wantCode(t, err, plugin.CodeInvalidInput)
	d.state("one", store.AgentStopped)
	_, err = d.Fire(t.Context(), by(), "one", "s1", "cron", "Sum up")
	wantCode(t, err, plugin.CodeDisabled)
	_, err = d.Fire(t.Context(), by(), "none", "s1", "cron", "Sum up")
	wantCode(t, err, plugin.CodeNotFound)
}
