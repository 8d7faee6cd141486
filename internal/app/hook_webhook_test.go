package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/webhook"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A hearer is a webhook: it takes down what comes, and answers as it is told to.
type hearer struct {
	*httptest.Server
	mu      sync.Mutex
	answers []func(w http.ResponseWriter) // of the next requests; 200 afterwards
	bodies  []string
	forged  int
}

func newHearer(t *testing.T) *hearer {
	t.Helper()
	h := &hearer{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		d, err := webhook.Standard.Verify(r.Header, body, []string{doorSecret}, time.Now())
		if err != nil || r.Method != http.MethodPost || !strings.Contains(string(body), d.ID) {
			h.forged++
		}
		h.bodies = append(h.bodies, string(body))
		if len(h.answers) > 0 {
			next := h.answers[0]
			h.answers = h.answers[1:]
			next(w)
		}
	}))
	t.Cleanup(h.Close)
	return h
}

// says is an answer.
func says(status int, body string, header ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func (h *hearer) will(answers ...func(http.ResponseWriter)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, answers...)
}

// heard returns the values of a member of the payloads that came, in their order.
func (h *hearer) heard(t *testing.T, member string) (all []string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, body := range h.bodies {
		var n struct {
			ID, Event, Agent string
			At               time.Time
			Payload          map[string]any
		}
		if err := json.Unmarshal([]byte(body), &n); err != nil || n.ID == "" || n.Agent != "support" || n.At.IsZero() || n.Event == "" {
			t.Errorf("it was sent %s: %v", body, err)
		}
		all = append(all, fmt.Sprint(n.Payload[member]))
	}
	return all
}

// hooked returns a home, where hooks.example.com is the hearer, and a function
// that opens it with the plugin audit.
func hooked(t *testing.T, h *hearer, url, hooks string) *app.App {
	t.Helper()
	address := strings.TrimPrefix(h.URL, "http://")
	a := agentHome(t, newTalker(t), "egress: {map: {hooks.example.com: '"+address+"'}}\n")
	if err := a.Vault.Put(t.Context(), store.SecretName{Tenant: "local", Owner: "audit", Scope: "system", Name: "signing"}, doorSecret, secret.By{Principal: "ann"}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", fmt.Sprintf(`name: audit
version: 1.0.0
owner: test
description: Hears of what agents do.
runner: {kind: webhook, url: %q, secret: signing}
hooks:
%s`, url, hooks))
	report, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil || len(report.Registered) != 1 || report.Registered[0].NotEnabled != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	hire(t, a, "support", agent.Settings{})
	assign(t, a, "support", "audit", true)
	return a
}

// remember emits memory.upsert@v1 with a key.
func remember(t *testing.T, a *app.App, key string) {
	t.Helper()
	i, err := a.Agents.Instance(t.Context(), "local", "support")
	if err != nil {
		t.Fatal(err)
	}
	p, err := event.NewPayload(fmt.Sprintf(`{"agentId":"support","at":"2026-03-02T09:00:09Z","key":%q,"content":"x"}`, key))
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Bus().Emit(t.Context(), event.MemoryUpsert, p); err != nil {
		t.Fatal(err)
	}
}

// send does what is due, once, and returns how many events wait then.
func send(t *testing.T, a *app.App) (left int) {
	t.Helper()
	s := a.Sweeper("webhook")
	due, err := s.Due(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range due {
		if err := s.Do(t.Context(), item); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := a.Store.Outbox(t.Context(), store.OutboxFilter{Tenant: "local"})
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

// sendAll does what is due until no event waits.
func sendAll(t *testing.T, a *app.App) {
	t.Helper()
	testwait.Until(t, "no event waits", func() bool { return send(t, a) == 0 })
}

const upserts = "  - {event: memory.upsert@v1}\n"

// Events reach a webhook signed and in the order in which they happened, however
// often that takes, and outlive the host (HK-11).
func TestAWebhookHearsOfEventsInTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHearer(t)
	a := hooked(t, h, "http://hooks.example.com/mortise", upserts)
	a.WaitForWebhooks(time.Millisecond, time.Millisecond, time.Millisecond)
	for i := range 5 {
		remember(t, a, fmt.Sprint("key", i))
	}
	if got := h.heard(t, "key"); len(got) != 0 {
		t.Errorf("it was told %q before a host served", got)
	}
	home := a.Home
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a = open(t, home)
	a.WaitForWebhooks(time.Millisecond, time.Millisecond, time.Millisecond)
	h.will(says(500, ""), says(503, "later", "Retry-After", "0"), says(200, ""), says(302, "", "Location", "/elsewhere"))
	sendAll(t, a)
	want := "key0 key0 key0 key1 key1 key2 key3 key4"
	if got := strings.Join(h.heard(t, "key"), " "); got != want || h.forged != 0 {
		t.Errorf("it was told %q, want %q; %d forged", got, want, h.forged)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.bodies[0] != h.bodies[2] {
		t.Errorf("the third attempt sent %s, the first %s", h.bodies[2], h.bodies[0])
	}
}

func TestAnEventIsGivenUpAndTheNextGoesOn(t *testing.T) {
	t.Parallel()
	h := newHearer(t)
	a := hooked(t, h, "http://hooks.example.com/mortise", upserts)
	a.WaitForWebhooks(time.Millisecond, time.Millisecond)
	i, err := a.Agents.Instance(t.Context(), "local", "support")
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, i)
	h.will(says(500, ""), says(500, ""), says(500, ""))
	remember(t, a, "lost")
	remember(t, a, "kept")
	sendAll(t, a)
	if got := strings.Join(h.heard(t, "key"), " "); got != "lost lost lost kept" {
		t.Errorf("it was told %q", got)
	}
	if failed := l.heard(event.PluginError); !strings.Contains(failed, `"pluginId":"audit"`) || !strings.Contains(failed, "not delivered after 3 attempts") || !strings.Contains(failed, event.MemoryUpsert) {
		t.Errorf("the bus was told %s", failed)
	}
}

func TestAWebhookThatIsGoneIsDisabled(t *testing.T) {
	t.Parallel()
	h := newHearer(t)
	a := hooked(t, h, "http://hooks.example.com/mortise", upserts)
	h.will(says(410, ""))
	remember(t, a, "one")
	remember(t, a, "two")
	sendAll(t, a)
	remember(t, a, "three")
	sendAll(t, a)
	if got := h.heard(t, "key"); len(got) != 1 {
		t.Errorf("it was told %q", got)
	}
	if _, err := a.Registry.Find(t.Context(), "audit"); plugin.CodeOf(err) != plugin.CodeDisabled {
		t.Errorf("the plugin: %v", err)
	}
}

// Neither an address of its own nor a redirect leads a delivery to where plugins
// may not go (T35, egress).
func TestAWebhookLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	inside := newHearer(t)
	for name, url := range map[string]string{"loopback": inside.URL + "/", "by a redirect": "http://hooks.example.com/", "cloud": "http://169.254.169.254/"} {
		h := newHearer(t)
		a := hooked(t, h, url, upserts)
		a.WaitForWebhooks(time.Hour)
		h.will(says(307, "", "Location", inside.URL))
		remember(t, a, "secret")
		if left := send(t, a); left != 1 {
			t.Errorf("%s: %d wait", name, left)
		}
		rows, err := a.Store.Outbox(t.Context(), store.OutboxFilter{Tenant: "local"})
		if err != nil || len(rows) != 1 || rows[0].Attempt != 1 || rows[0].Problem == "" {
			t.Fatalf("%s: %+v, %v", name, rows, err)
		}
		if want := map[bool]string{true: "redirects are not followed", false: "leads to"}[name == "by a redirect"]; !strings.Contains(rows[0].Problem, want) {
			t.Errorf("%s: %s", name, rows[0].Problem)
		}
	}
	if got := inside.heard(t, "key"); len(got) != 0 {
		t.Errorf("inside was told %q", got)
	}
}

// schedule.fired is the one event that a webhook may change, and its prompt is all
// it may change of it.
func TestAWebhookMayChangeAPrompt(t *testing.T) {
	t.Parallel()
	h := newHearer(t)
	a := hooked(t, h, "http://hooks.example.com/mortise", "  - {event: schedule.fired@v1, failure_mode: fail}\n")
	i, err := a.Agents.Instance(t.Context(), "local", "support")
	if err != nil {
		t.Fatal(err)
	}
	payload := `{"agentId":"support","at":"2026-03-02T07:00:00Z","scheduleId":"morning","type":"cron","prompt":"Sum up the night."}`
	var labels func() []string
	fire := func() (string, error) {
		p, err := event.NewPayload(payload)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), testwait.Limit)
		defer cancel()
		ctx, labels = agent.Tainting(ctx)
		made, err := i.Bus().Transform(ctx, event.ScheduleFired, p)
		if err != nil {
			return "", err
		}
		return made.Text(), nil
	}
	changed := strings.Replace(payload, "Sum up the night.", "Be brief.", 1)
	for _, c := range []struct {
		answer func(http.ResponseWriter)
		want   string // "" is a failure
	}{
		{says(200, ""), payload},
		{says(204, ""), payload},
		{says(200, "{}"), payload},
		{says(200, `{"payload":null}`), payload},
		{says(200, `{"payload":{"prompt":"Be brief."}}`), changed},
		{says(200, `{"payload":{"prompt":"Be brief.","agentId":"admin","scheduleId":"x"}}`), changed},
		{says(200, `{"prompt":"Be brief."}`), ""},
		{says(200, `{"PAYLOAD":{"prompt":"Be brief."}}`), ""},
		{says(200, `{"error":"denied"}`), ""},
		{says(200, " { } "), payload},
		{says(200, `{"payload":{"prompt":7}}`), ""},
		{says(200, `{"payload":{}}`), ""},
		{says(200, `{"payload":"Be brief."}`), ""},
		{says(200, `["x"]`), ""},
		{says(200, `{"payload":{"prompt":"a","prompt":"b"}}`), ""},
		{says(200, `{"payload":{"prompt":"`+strings.Repeat("x", 64<<10)+`"}}`), ""},
		{says(200, "not JSON"), ""},
		{says(500, `{"payload":{"prompt":"Be brief."}}`), ""},
		{says(302, `{"payload":{"prompt":"Be brief."}}`, "Location", h.URL), ""},
	} {
		h.will(c.answer)
		got, err := fire()
		if got != c.want || (c.want == "") != (err != nil) {
			t.Errorf("it made %s, %v, want %s", got, err, c.want)
		}
		if outside := slices.Equal(labels(), []string{plugin.Untrusted}); outside != (c.want == changed) {
			t.Errorf("%s has the labels %q", got, labels())
		}
	}
	if h.forged != 0 {
		t.Errorf("%d were not signed", h.forged)
	}
	if rows, err := a.Store.Outbox(t.Context(), store.OutboxFilter{}); err != nil || len(rows) != 0 {
		t.Errorf("%d wait, %v", len(rows), err)
	}
}
