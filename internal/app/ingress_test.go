package app_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/server"
)

const doorSecret = "whsec_c2VjcmV0LW9mLXRoZS1kZXNr"

// reachable gives a host an agent with a channel of each scheme.
func reachable(t *testing.T, a *app.App) {
	t.Helper()
	if err := a.Vault.Put(t.Context(), store.SecretName{Tenant: "local", Owner: secret.Anyone, Scope: "system", Name: "desk"}, doorSecret, secret.By{Principal: "ann"}); err != nil {
		t.Fatal(err)
	}
	channels := map[string]agent.Channel{}
	for _, s := range webhook.Schemes() {
		channels[string(s)] = agent.Channel{Scheme: s, Secret: "desk"}
	}
	hire(t, a, "support", agent.Settings{Channels: channels})
}

// A parcel is a delivery as it travels.
type parcel struct {
	scheme webhook.Scheme
	header http.Header
	body   []byte
}

func sum(text string) string {
	m := hmac.New(sha256.New, []byte(doorSecret))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

// genuine returns what a scheme's own sender would send.
func genuine(t *testing.T, s webhook.Scheme, id, text string, at time.Time) parcel {
	t.Helper()
	p := parcel{s, http.Header{}, nil}
	stamp := strconv.FormatInt(at.Unix(), 10)
	switch s {
	case webhook.Standard:
		p.body = fmt.Appendf(nil, `{"text":%q,"sender":"U2"}`, text)
		h, err := webhook.Sign(doorSecret, id, at, p.body)
		if err != nil {
			t.Fatal(err)
		}
		p.header = h
	case webhook.Slack:
		p.body = fmt.Appendf(nil, `{"type":"event_callback","event_id":%q,"event":{"type":"message","text":%q,"user":"U2","channel":"C1"}}`, id, text)
		p.header.Set("X-Slack-Request-Timestamp", stamp)
		p.header.Set("X-Slack-Signature", "v0="+sum("v0:"+stamp+":"+string(p.body)))
	case webhook.GitHub:
		p.body = fmt.Appendf(nil, `{"action":"created","comment":{"body":%q},"sender":{"login":"ann","type":"User"}}`, text)
		p.header.Set("X-GitHub-Event", "issue_comment")
		p.header.Set("X-GitHub-Delivery", id)
		p.header.Set("X-Hub-Signature-256", "sha256="+sum(string(p.body)))
	case webhook.Telegram:
		n := sha256.Sum256([]byte(id))
		p.body = fmt.Appendf(nil, `{"update_id":%d,"message":{"message_id":1,"text":%q,"from":{"id":7},"chat":{"id":9}}}`, int(n[0])<<16|int(n[1])<<8|int(n[2]), text)
		p.header.Set("X-Telegram-Bot-Api-Secret-Token", doorSecret)
	}
	p.header.Set("Content-Type", "application/json")
	return p
}

// deliver sends a parcel and returns the status; 0 where there was no answer.
func deliver(client *http.Client, address string, p parcel) (int, string) {
	req, err := http.NewRequest(http.MethodPost, address+"/api/agents/support/channels/"+string(p.scheme)+"/webhook", bytes.NewReader(p.body))
	if err != nil {
		return 0, err.Error()
	}
	req.Header = p.header
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw)
}

// inbound counts the messages that came in, by channel.
func inbound(t *testing.T, st store.Reader) map[string]int {
	t.Helper()
	found := map[string]int{}
	rows, err := st.Conversations(context.Background(), store.ConversationFilter{Tenant: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rows {
		messages, err := st.Messages(context.Background(), "local", c.SessionID, 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range messages {
			if m.Role == store.Inbound {
				found[c.Channel]++
			}
		}
	}
	return found
}

// door serves a host's channels on loopback, with no bound of how often.
func door(t *testing.T, a *app.App) (address string, client *http.Client) {
	t.Helper()
	s := httptest.NewServer(server.New(server.Options{Agents: server.Deliveries{Agents: a.Agents}, Tenant: "local", Rate: 1e9, Burst: 1e9}))
	t.Cleanup(s.Close)
	return s.URL, s.Client()
}

// 500 forged deliveries over HTTP: none is accepted (G17, T35).
func TestForgedDeliveriesAreNotTaken(t *testing.T) {
	t.Parallel()
	a := agentHome(t, newTalker(t), "")
	reachable(t, a)
	address, client := door(t, a)
	now := time.Now()
	random := rand.New(rand.NewPCG(1, 2))
	tried := 0
	forged := func(what string, p parcel) {
		t.Helper()
		tried++
		if status, body := deliver(client, address, p); status != http.StatusUnauthorized || strings.Contains(body, "c2VjcmV0") {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	for _, s := range webhook.Schemes() {
		names := map[webhook.Scheme][]string{
			webhook.Standard: {"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}, webhook.Slack: {"X-Slack-Request-Timestamp", "X-Slack-Signature"},
			webhook.GitHub: {"X-Hub-Signature-256"}, webhook.Telegram: {"X-Telegram-Bot-Api-Secret-Token"},
		}[s]
		for _, name := range names {
			for _, change := range []func(string) []string{
				func(string) []string { return nil }, func(v string) []string { return []string{v, v} }, func(v string) []string { return []string{v[:len(v)-1]} },
				func(v string) []string { return []string{v + "0"} }, func(string) []string { return []string{"0"} },
			} {
				p := genuine(t, s, "id", "hello", now)
				p.header[name] = change(p.header.Get(name))
				forged(string(s)+" with another "+name, p)
			}
		}
		for _, other := range webhook.Schemes() {
			if other != s {
				p := genuine(t, other, "id", "hello", now)
				p.scheme = s
				forged(string(other)+" as "+string(s), p)
			}
		}
		if s == webhook.Standard || s == webhook.Slack {
			for _, off := range []time.Duration{-webhook.Tolerance - 10*time.Second, webhook.Tolerance + 10*time.Second, -time.Hour, -24 * 365 * time.Hour} {
				forged("signed "+off.String()+" from now", genuine(t, s, "id", "hello", now.Add(off)))
			}
		}
		for i := range 125 {
			p := genuine(t, s, fmt.Sprint("id", i), "hello", now)
			if s == webhook.Telegram { // only the token counts
				token := []byte(doorSecret)
				token[random.IntN(len(token))] ^= 1
				p.header.Set("X-Telegram-Bot-Api-Secret-Token", string(token))
			} else if i%2 == 0 {
				p.body[random.IntN(len(p.body))] ^= 1
			} else {
				p.body = append(p.body, ' ')
			}
			forged(string(s)+" changed on its way", p)
		}
	}
	if got := inbound(t, a.Store); len(got) != 0 || tried < 500 {
		t.Errorf("of %d forged deliveries these were taken: %v", tried, got)
	}
}

// 1,000 deliveries of 20 messages, in any order and 16 at a time: each message is
// taken once (G17, F29).
func TestRepeatedDeliveriesAreTakenOnce(t *testing.T) {
	t.Parallel()
	a := agentHome(t, newTalker(t), "")
	reachable(t, a)
	address, client := door(t, a)
	now := time.Now()
	var all []parcel
	for _, s := range webhook.Schemes() {
		for m := range 5 {
			for n := range 50 {
				id, at := fmt.Sprint("message-", m), now
				switch {
				case s == webhook.GitHub && n%2 == 1: // its ids are not signed
					id = fmt.Sprint("message-", m, "-", n)
				case n%5 == 1: // signed again
					at = now.Add(-time.Duration(n) * time.Second)
				case n%10 == 2 && (s == webhook.Standard || s == webhook.Slack): // recorded long ago
					at = now.Add(-time.Hour)
				}
				all = append(all, genuine(t, s, id, fmt.Sprint("message ", m), at))
			}
		}
	}
	rand.New(rand.NewPCG(3, 4)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var mu sync.Mutex
	statuses := map[int]int{}
	work := make(chan parcel)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for p := range work {
				status, body := deliver(client, address, p)
				mu.Lock()
				statuses[status]++
				mu.Unlock()
				if status != 200 && status != 202 && status != 401 {
					t.Errorf("%s: %d %s", p.scheme, status, body)
				}
			}
		})
	}
	for _, p := range all {
		work <- p
	}
	close(work)
	wg.Wait()
	got := inbound(t, a.Store)
	for _, s := range webhook.Schemes() {
		if got[string(s)] != 5 {
			t.Errorf("%s: %d messages were taken, want 5", s, got[string(s)])
		}
	}
	if statuses[202] != 20 || statuses[401] == 0 || len(all) != 1000 {
		t.Errorf("of %d deliveries %v", len(all), statuses)
	}
}

// A host that is killed right after it said that it has a delivery has it: 20
// rounds, 5 with -short, or as many as MORTISE_KILLS says (G17).
func TestWhatWasAcceptedOutlivesAKill(t *testing.T) {
	t.Parallel()
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	if n, err := strconv.Atoi(os.Getenv("MORTISE_KILLS")); err == nil {
		rounds = n
	}
	home := modelHome(t, newTalker(t).URL, agentPolicy)
	a := open(t, home)
	reachable(t, a)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for round := range rounds {
		cmd := exec.Command(self, "mortise", "serve", "--home", home, "--listen", "127.0.0.1:0")
		says, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		address, lines := "", bufio.NewScanner(says)
		for address == "" && lines.Scan() {
			_, address, _ = strings.Cut(lines.Text(), "listening on ")
		}
		transport := &http.Transport{DisableKeepAlives: true}
		schemes := webhook.Schemes()
		for n := range 3 {
			id := fmt.Sprint(round, "-", n)
			client := &http.Client{Transport: transport, Timeout: time.Minute}
			status, body := deliver(client, address, genuine(t, schemes[(round+n)%len(schemes)], id, "message "+id, time.Now()))
			if status != http.StatusAccepted {
				t.Errorf("round %d: %d %s", round, status, body)
				continue
			}
			accepted++
		}
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, says)
		_ = cmd.Wait()
	}
	st, err := setup.Reading(t.Context(), home, "")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	got := 0
	for _, n := range inbound(t, st) {
		got += n
	}
	if got != accepted || accepted != 3*rounds {
		t.Errorf("%d messages of %d that were accepted are there", got, accepted)
	}
}

// A message that was delivered gets its turn once a host serves, and an idle
// conversation ends.
func TestMessagesHaveTheirTurnAndSilenceEnds(t *testing.T) {
	t.Parallel()
	model := newTalker(t, move{text: "Here I am."})
	a := agentHome(t, model, "")
	reachable(t, a)
	i, err := a.Agents.Instance(t.Context(), "local", "support")
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, i)
	a.SweepEvery(24 * time.Hour) // so that only a wake-up brings the message
	working(t, a)
	address, client := door(t, a)
	if status, body := deliver(client, address, genuine(t, webhook.Standard, "m1", "Are you there?", time.Now())); status != 202 {
		t.Fatalf("%d %s", status, body)
	}
	testwait.Until(t, "a woken node answers", func() bool { return strings.Contains(l.heard("channel.message.out@v1"), "Here I am.") })
	idle := a.IdleAfter(time.Nanosecond)
	testwait.Until(t, "the conversation is closed as idle", func() bool {
		due, err := idle.Due(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range due {
			if err := idle.Do(t.Context(), item); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Contains(l.heard("session.closed@v1"), `"reason":"idle"`)
	})
	if due, err := a.Sweeper("idle").Due(t.Context(), 10); err != nil || len(due) != 0 {
		t.Errorf("within a day %v, %v", due, err)
	}
	// A later message opens a new conversation.
	if status, body := deliver(client, address, genuine(t, webhook.Standard, "m2", "And now?", time.Now())); status != 202 {
		t.Fatalf("%d %s", status, body)
	}
	if rows, err := a.Store.Conversations(t.Context(), store.ConversationFilter{Tenant: "local"}); err != nil || len(rows) != 2 {
		t.Errorf("%d conversations, %v", len(rows), err)
	}
}

// Who has no secret gets one answer, whatever is wrong: whether there is an agent,
// a channel, or a secret of that channel, it does not learn.
func TestStrangersDoNotLearnWhichChannelsThereAre(t *testing.T) {
	t.Parallel()
	a := agentHome(t, newTalker(t), "")
	reachable(t, a)
	hire(t, a, "mute", agent.Settings{Channels: map[string]agent.Channel{"standard": {Scheme: webhook.Standard, Secret: "not-set"}}})
	address, client := door(t, a)
	answers := map[string][]string{}
	stranger := genuine(t, webhook.Standard, "m1", "hi", time.Now())
	stranger.header.Set("webhook-signature", "v1,"+strings.Repeat("A", 43)+"=")
	for _, at := range []string{"support/channels/standard", "support/channels/slack", "support/channels/github", "support/channels/telegram", "support/channels/none",
		"missing/channels/standard", "mute/channels/standard"} {
		for _, header := range []http.Header{stranger.header, {"Content-Type": {"application/json"}}} {
			req, err := http.NewRequest(http.MethodPost, address+"/api/agents/"+at+"/webhook", bytes.NewReader(stranger.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = header
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			answer := fmt.Sprint(resp.StatusCode, " ", string(raw))
			answers[answer] = append(answers[answer], at)
		}
	}
	if len(answers) != 1 {
		t.Errorf("%d different answers: %v", len(answers), answers)
	}
}

// What has two readings is refused, also where its sender is known; so is a
// header that servers on the way may have taken for the one that proves it.
func TestADeliveryHasOneReading(t *testing.T) {
	t.Parallel()
	a := agentHome(t, newTalker(t), "")
	reachable(t, a)
	address, client := door(t, a)
	n := 0
	send := func(body string, more ...string) int {
		n++
		p := parcel{webhook.Standard, nil, []byte(body)}
		h, err := webhook.Sign(doorSecret, fmt.Sprintf("one-%d", n), time.Now(), p.body)
		if err != nil {
			t.Fatal(err)
		}
		h.Set("Content-Type", "application/json")
		for _, name := range more {
			h[name] = []string{"v1,x"}
		}
		p.header = h
		status, _ := deliver(client, address, p)
		return status
	}
	if status := send(`{"text":"hi","sender":"U1"}`); status != http.StatusAccepted {
		t.Fatalf("the plain one: %d", status)
	}
	for _, body := range []string{
		`{"text":"hi","text":"ho"}`, `{"text":"hi","sender":"U1","sender":"U2"}`, `{"text":"hi","metadata":{"a":1,"a":2}}`,
		"{\"text\":\"h\xffi\"}", `{"text":"\ud800"}`, `{"text":"hi"} {}`, `{"text":"hi"`, ``,
	} {
		if status := send(body); status != http.StatusBadRequest {
			t.Errorf("%q: %d", body, status)
		}
	}
	for _, name := range []string{"Webhook_Id", "webhook_signature", "WEBHOOK_TIMESTAMP", "Webhook.Id"} {
		if status := send(`{"text":"hi","sender":"U1"}`, name); status != http.StatusUnauthorized {
			t.Errorf("beside %s: %d", name, status)
		}
	}
	if got := inbound(t, a.Store)["standard"]; got != 1 {
		t.Errorf("%d messages came in", got)
	}
}
