package app_test

import (
	"context"
	"encoding/json"
	"fmt"
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
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A move is what a scripted model says next: text, or the wish for a tool.
type move struct{ text, tool, args string }

// A talker is a server that speaks chat completions and says what it was told to,
// in their order.
type talker struct {
	*httptest.Server
	mu    sync.Mutex
	moves []move
	asked []string
}

func newTalker(t *testing.T, moves ...move) *talker {
	t.Helper()
	s := &talker{moves: moves}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var raw json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
			http.Error(w, `{"error":{"message":"no JSON"}}`, http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, string(raw))
		next := move{text: "I have nothing more to say."}
		if len(s.moves) > 0 {
			next, s.moves = s.moves[0], s.moves[1:]
		}
		n := len(s.asked)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(delta, reason string) {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, reason)
		}
		if next.tool != "" {
			send(fmt.Sprintf(`{"role":"assistant","tool_calls":[{"index":0,"id":"use_%d","type":"function","function":{"name":%q,"arguments":%q}}]}`, n, next.tool, next.args), "null")
			send(`{}`, `"tool_calls"`)
		} else {
			for _, word := range strings.SplitAfter(next.text, " ") {
				send(fmt.Sprintf(`{"role":"assistant","content":%q}`, word), "null")
			}
			send(`{}`, `"stop"`)
		}
		fmt.Fprint(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10,\"total_tokens\":110}}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s
}

// say adds to what the model will say.
func (s *talker) say(moves ...move) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves = append(s.moves, moves...)
}

// forget forgets what the model would still say.
func (s *talker) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moves = nil
}

func (s *talker) heard() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// agentPolicy lets the test's agents remember and be scheduled.
const agentPolicy = `
policy:
  allow:
    - kinds: [tool]
    - effects: [memory_write, agent_turn]
      untrusted: allow
`

// agentHome is a host with a scripted model and agents.
func agentHome(t *testing.T, s *talker, more string) *app.App {
	t.Helper()
	return open(t, modelHome(t, s.URL, agentPolicy+more))
}

// hire makes a running agent.
func hire(t *testing.T, a *app.App, id string, settings agent.Settings) {
	t.Helper()
	now := time.Now().UTC()
	if err := a.Store.Write(t.Context(), func(tx store.Tx) error {
		_, err := tx.InsertAgent(store.AgentRow{
			Tenant: "local", ID: id, CreatedBy: "ann", CreatedAt: now, UpdatedAt: now, Settings: settings.Encode(), State: store.AgentRunning,
		})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// give registers a script and enables it for a subject.
func give(t *testing.T, a *app.App, subject, name, source string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "manifest.json", fmt.Sprintf(`{"id":%q}`, name), "index.ts", source)
	report, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil || len(report.Registered) != 1 || report.Registered[0].NotEnabled != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	assign(t, a, subject, name, true)
}

func assign(t *testing.T, a *app.App, subject, name string, enabled bool) {
	t.Helper()
	if err := a.Store.Write(t.Context(), func(tx store.Tx) error {
		return tx.PutAssignment(store.AssignmentRow{Tenant: "local", Subject: subject, Plugin: name, Enabled: enabled, By: "ann", UpdatedAt: time.Now()})
	}); err != nil {
		t.Fatal(err)
	}
}

// A listening takes down each event of an agent as it comes.
type listening struct {
	mu     sync.Mutex
	events []string
	last   map[string]string // the payload of the last one, by event
}

// listen puts a handler for each event of the catalogue on an agent's bus.
func listen(t *testing.T, i *agent.Instance) *listening {
	t.Helper()
	l := &listening{last: map[string]string{}}
	for _, e := range event.Catalogue {
		note := func(p *event.Payload) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.events = append(l.events, e.Name)
			l.last[e.Name] = p.Text()
		}
		s := event.Subscription{Event: e.Name, Plugin: "test.listener", Priority: new(float64(1_000_000))}
		switch e.Shape {
		case event.Listener:
			s.Listen = func(_ context.Context, p *event.Payload) error { note(p); return nil }
		case event.Transform:
			s.Transform = func(_ context.Context, p *event.Payload) (*event.Payload, error) { note(p); return nil, nil }
		case event.Veto:
			s.Veto = func(_ context.Context, p *event.Payload) (event.Verdict, error) {
				note(p)
				return event.Verdict{Allow: true}, nil
			}
		}
		if _, err := i.Bus().On(s); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// told returns the events since the last call, without versions; plugin.error,
// which is emitted asynchronously, is left out.
func (l *listening) told() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, e := range l.events {
		if e != event.PluginError {
			all = append(all, strings.TrimSuffix(e, "@v1"))
		}
	}
	l.events = nil
	return all
}

func (l *listening) heard(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last[name]
}

var theOwner = plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"*"}}

const lookup = `
export function register(ctx) {
  ctx.tools.add({ name: "find", description: "Find an order by its customer.",
    schema: { type: "object", properties: { customer: { type: "string" } }, required: ["customer"] },
    handler: ({ customer }) => ({ orders: [customer + "-1"] }) });
  ctx.bus.on("memory.upsert@v1", () => { throw new Error("I never work"); });
}`

// One conversation emits all fifteen events, each where it belongs (HK-06).
func TestAConversationEmitsEveryEvent(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	if err := a.Vault.Put(t.Context(), store.SecretName{Tenant: "local", Owner: secret.Anyone, Scope: "system", Name: "desk"}, "whsec_"+"c2VjcmV0LW9mLXRoZS1kZXNr", secret.By{Principal: "ann"}); err != nil {
		t.Fatal(err)
	}
	hire(t, a, "support", agent.Settings{Channels: map[string]agent.Channel{"desk": {Scheme: webhook.Standard, Secret: "desk"}}})
	give(t, a, "support", "orders", lookup)

	// The first event is emitted before a listener could register: a plugin hears
	// it.
	give(t, a, "support", "first", `export function register(ctx) {
  let started = 0;
  ctx.bus.on("agent.started@v1", () => { started++ });
  ctx.tools.add({ name: "started", schema: { type: "object" }, handler: () => ({ started }) });
}`)
	i, err := a.Agents.Instance(t.Context(), "local", "support")
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, i)
	call := plugin.Call{Tenant: "local", Principal: theOwner, Agent: "support", Origin: plugin.OriginAgent, Operation: "first/started"}
	if res, err := a.Kernel.Call(t.Context(), call); err != nil || string(res.Data) != `{"started":1}` {
		t.Fatalf("agent.started: %s, %v", res.Data, err)
	}
	l.told()

	body := []byte(`{"text":"Where is my order?","sender":"U2","metadata":{"thread":"17"}}`)
	header, err := webhook.Sign("whsec_c2VjcmV0LW9mLXRoZS1kZXNr", "msg_1", time.Now(), body)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Agents.Receive(t.Context(), "local", "support", "desk", header, body, nil)
	if err != nil || got.Session == "" {
		t.Fatalf("%+v, %v", got, err)
	}
	want := []string{"channel.message.in", "session.opened"}
	if told := l.told(); !slices.Equal(told, want) {
		t.Errorf("a delivery told %q, want %q", told, want)
	}
	if again, err := a.Agents.Receive(t.Context(), "local", "support", "desk", header, body, nil); err != nil || !again.Seen {
		t.Errorf("the same delivery again: %+v, %v", again, err)
	}
	l.told()

	model.say(move{tool: "orders__find", args: `{"customer":"ann"}`},
		move{tool: "agent_memory__upsert", args: `{"key":"customer/ann","content":"asks for orders"}`}, move{text: "It is ann-1."})
	if err := a.Agents.Advance(t.Context(), "local", got.Session); err != nil {
		t.Fatal(err)
	}
	thought := []string{"prompt.assemble", "model.before", "model.after"}
	want = slices.Concat([]string{"session.message.received"}, thought, []string{"tool.before", "tool.after"},
		thought, []string{"tool.before", "memory.upsert", "tool.after"}, thought, []string{"channel.message.out"})
	if told := l.told(); !slices.Equal(told, want) {
		t.Errorf("a turn told\n%q, want\n%q", told, want)
	}
	if out := l.heard(event.ChannelMessageOut); !strings.Contains(out, `"text":"It is ann-1."`) || !strings.Contains(out, `"thread":"17"`) {
		t.Errorf("the answer was %s", out)
	}
	if after := l.heard(event.ToolAfter); !strings.Contains(after, `"ok":true`) {
		t.Errorf("the tool ended with %s", after)
	}
	if asked := model.heard(); len(asked) != 3 || !strings.Contains(asked[1], `ann-1`) || !strings.Contains(asked[0], "orders__find") {
		t.Errorf("the model was asked %q", asked)
	}
	if kept, _, err := a.Agents.Memory("local", "support").Get(t.Context(), "customer/ann"); err != nil || kept != "asks for orders" {
		t.Errorf("it remembers %q, %v", kept, err)
	}

	for name, member := range map[string]string{
		event.ModelBefore: "toolResults", event.ModelAfter: "messages", event.MemoryUpsert: "metadata", event.SessionMessageReceived: "metadata",
	} { // what may be absent, and is there now
		if p := l.heard(name); !strings.Contains(p, `"`+member+`":`) {
			t.Errorf("%s carried no %s: %s", name, member, p)
		}
	}
	model.say(move{text: "A quiet night."})
	answer, err := a.Agents.Fire(t.Context(), &plugin.Call{Tenant: "local", Principal: theOwner, Asker: "os:1"}, "support", "morning", "cron", "Sum up the night.")
	if err != nil || answer.Text != "A quiet night." {
		t.Fatalf("%+v, %v", answer, err)
	}
	want = slices.Concat([]string{"schedule.fired", "session.opened", "session.message.received"}, thought, []string{"session.closed"})
	if told := l.told(); !slices.Equal(told, want) {
		t.Errorf("a schedule told %q, want %q", told, want)
	}
	if err := a.Agents.Stop("local", "support", "user"); err != nil {
		t.Fatal(err)
	}
	if told := l.told(); !slices.Equal(told, []string{"agent.stopped"}) {
		t.Errorf("stopping told %q", told)
	}
	if failed := l.heard(event.PluginError); !strings.Contains(failed, `"pluginId":"orders"`) || !strings.Contains(failed, "I never work") {
		t.Errorf("the handler that failed: %s", failed)
	}
	for _, e := range event.Catalogue { // agent.started was counted above
		if p := l.heard(e.Name); e.Name != event.AgentStarted && !fits(t, &e, p) {
			t.Errorf("%s carried %s", e.Name, p)
		}
	}
}

// fits reports whether a payload has what its event says.
func fits(t *testing.T, e *event.Event, payload string) bool {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(payload), &members); err != nil {
		return false
	}
	for _, f := range e.Fields {
		if _, found := members[f.Name]; !found && !f.Optional {
			t.Logf("%s has no %s", e.Name, f.Name)
			return false
		}
	}
	compiled, err := schema.Compile(e.Schema())
	if err == nil {
		err = compiled.Check(t.Context(), []byte(payload))
	}
	if err != nil {
		t.Logf("%s does not fit its schema: %v", e.Name, err)
		return false
	}
	return documented(t, e.Name, e.Fields, members)
}

// documented reports whether each member is one that the catalogue has, at every
// depth.
func documented(t *testing.T, at string, fields []event.Field, members map[string]json.RawMessage) bool {
	t.Helper()
	for name, raw := range members {
		i := slices.IndexFunc(fields, func(f event.Field) bool { return f.Name == name })
		if i < 0 {
			t.Logf("%s has %s, which its event does not know", at, name)
			return false
		}
		if len(fields[i].Members) == 0 {
			continue
		}
		var elements []map[string]json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			t.Logf("%s.%s: %v", at, name, err)
			return false
		}
		for _, element := range elements {
			if !documented(t, at+"."+name, fields[i].Members, element) {
				return false
			}
		}
	}
	return true
}
