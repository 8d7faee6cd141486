package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/event"
	"github.com/mortise-dev/mortise/internal/service/llm"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A desk is everything around agents: a real store, and a kernel, plugins and a
// model that do as a test says.
type desk struct {
	*agent.Agents
	t *testing.T

	mu      sync.Mutex
	moves   []func(ctx context.Context, c llm.Conversation) llm.Move
	asked   []llm.Conversation
	by      []llm.Caller
	calls   []plugin.Call
	do      func(ctx context.Context, call plugin.Call) (plugin.Result, error)
	plugins map[string]*kit
	closed  []string
	woken   []string
}

// A kit is a plugin that agents may have.
type kit struct {
	digest string
	guards bool
	subs   func() []event.Subscription
	err    error // of finding it
	open   func() error
	opened int
	shut   int
}

// newDesk returns a desk on a store of its own.
func newDesk(t *testing.T) *desk {
	t.Helper()
	st, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	d := deskOn(t, st)
	d.hire("one", agent.Settings{})
	return d
}

// deskOn returns a desk on a store: another node, where there is one already.
func deskOn(t *testing.T, st agent.Store) *desk {
	t.Helper()
	d := &desk{t: t, plugins: map[string]*kit{}}
	d.Agents = agent.New(agent.Options{
		Store: st, Kernel: d, Plugins: d, Model: d, Turn: 2 * time.Minute,
		Open:   func(context.Context, string, string) (string, error) { return "sess_" + uuid.NewString(), nil },
		Closed: func(_ context.Context, _, id string) error { d.note(&d.closed, id); return nil },
		Secrets: func(context.Context, string, string) ([]string, error) {
			return []string{secret}, nil
		},
		Sender: func(_ context.Context, _, channel, sender string) (plugin.Principal, string, string, error) {
			return plugin.Principal{Type: "user", ID: channel + ":" + sender, Scopes: []string{}}, "guest", "", nil
		},
		Wake: func(_ context.Context, _, session string) { d.note(&d.woken, session) },
	})
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func (d *desk) note(list *[]string, s string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*list = append(*list, s)
}

// write changes the store.
func (d *desk) write(fn func(tx store.Tx) error) {
	d.t.Helper()
	if err := d.Store.Write(context.Background(), fn); err != nil {
		d.t.Fatal(err)
	}
}

// hire makes a running agent.
func (d *desk) hire(id string, s agent.Settings) {
	d.t.Helper()
	now := time.Now().UTC()
	d.write(func(tx store.Tx) error {
		_, err := tx.InsertAgent(store.AgentRow{Tenant: "t", ID: id, CreatedBy: "ann", CreatedAt: now, UpdatedAt: now, Settings: s.Encode(), State: store.AgentRunning})
		return err
	})
}

// give assigns a plugin to a subject.
func (d *desk) give(subject, name string, enabled bool) {
	d.t.Helper()
	d.write(func(tx store.Tx) error {
		return tx.PutAssignment(store.AssignmentRow{Tenant: "t", Subject: subject, Plugin: name, Versions: "^1", Enabled: enabled, By: "ann", UpdatedAt: time.Now()})
	})
}

// equip gives an agent a plugin with one subscription.
func (d *desk) equip(subject, name string, subs ...event.Subscription) *kit {
	d.t.Helper()
	k := &kit{digest: "1", subs: func() []event.Subscription { return subs }}
	d.mu.Lock()
	d.plugins[name] = k
	d.mu.Unlock()
	d.give(subject, name, true)
	return k
}

// say has the model say something next.
func (d *desk) say(moves ...llm.Move) {
	for _, m := range moves {
		d.think(func(context.Context, llm.Conversation) llm.Move { return m })
	}
}

func (d *desk) think(f func(ctx context.Context, c llm.Conversation) llm.Move) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moves = append(d.moves, f)
}

// wish is a move that asks for a tool, once for each id.
func wish(tool, input string, ids ...string) llm.Move {
	var m llm.Move
	for _, id := range ids {
		m.Uses = append(m.Uses, llm.ToolUse{ID: id, Name: tool, Input: json.RawMessage(input)})
	}
	return m
}

// Converse implements [agent.Model].
func (d *desk) Converse(ctx context.Context, by llm.Caller, c llm.Conversation) llm.Move {
	d.mu.Lock()
	d.asked, d.by = append(d.asked, c), append(d.by, by)
	next := func(context.Context, llm.Conversation) llm.Move { return llm.Move{Text: "yes"} }
	if len(d.moves) > 0 {
		next, d.moves = d.moves[0], d.moves[1:]
	}
	d.mu.Unlock()
	return next(ctx, c)
}

// Call implements [agent.Kernel]: it asks the agent's hooks as the kernel does.
func (d *desk) Call(ctx context.Context, call plugin.Call) (plugin.Result, error) {
	d.mu.Lock()
	d.calls = append(d.calls, call)
	do := d.do
	d.mu.Unlock()
	res := plugin.Result{Status: plugin.Succeeded, CallID: call.ID, Data: json.RawMessage(`{"done":true}`), Labels: call.Labels}
	op := &plugin.Operation{Name: "do", Effects: []string{"db_write"}}
	heard, err := d.Before(ctx, &plugin.Target{Manifest: &plugin.Manifest{Name: "tool"}, Operation: op}, &call)
	switch {
	case err != nil:
		return plugin.Result{Status: plugin.Failed}, err
	case heard.Vetoed != "":
		return plugin.Result{Status: plugin.Failed}, plugin.Errorf(plugin.CodeHookVetoed, "%s", heard.Vetoed)
	case heard.Unguard != "":
		return plugin.Result{Status: plugin.Failed}, plugin.Errorf(plugin.CodeHookFailed, "%s", heard.Unguard)
	}
	if do != nil {
		return do(ctx, call)
	}
	return res, nil
}

// called returns the calls of an operation.
func (d *desk) called(operation string) []plugin.Call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(d.calls), func(c plugin.Call) bool { return c.Operation != operation })
}

// heard returns what the model was asked.
func (d *desk) heard() []llm.Conversation {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

// Hooked implements [agent.Plugins].
func (d *desk) Hooked(_ context.Context, name, _ string) (agent.Hooked, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.plugins[name]
	if k == nil {
		return agent.Hooked{}, plugin.Errorf(plugin.CodeNotFound, "there is no %s", name)
	}
	return agent.Hooked{Plugin: name, Digest: k.digest, Hears: k.subs != nil, Guards: k.guards}, k.err
}

// Hook implements [agent.Plugins].
func (d *desk) Hook(ctx context.Context, _ agent.Owner, h agent.Hooked) (agent.Handlers, error) {
	d.mu.Lock()
	k := d.plugins[h.Plugin]
	d.mu.Unlock()
	if k.open != nil {
		if err := k.open(); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k.opened++
	return handlers{d, k}, nil
}

type handlers struct {
	d *desk
	k *kit
}

func (h handlers) Subscriptions() []event.Subscription { return h.k.subs() }

func (h handlers) Close() error {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	h.k.shut++
	return nil
}

// Offer implements [agent.Plugins].
func (d *desk) Offer(context.Context, agent.Ask) ([]agent.Tool, error) {
	return []agent.Tool{{Name: "do", Operation: "tool/do", Schema: json.RawMessage(`{"type":"object"}`)}}, nil
}

// open returns an instance and a conversation of it.
func (d *desk) open(id string) (*agent.Instance, string) {
	d.t.Helper()
	i, err := d.Instance(d.t.Context(), "t", id)
	if err != nil {
		d.t.Fatal(err)
	}
	c, err := i.Open(d.t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: "ann"})
	if err != nil {
		d.t.Fatal(err)
	}
	return i, c.SessionID
}

var ann = plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"*"}}

// hello is a message of the owner.
func hello(text string) agent.Message {
	return agent.Message{Text: text, From: ann, Asker: "os:1", Role: "owner"}
}

// by returns a call of ann's that asks an agent.
func by(labels ...string) *plugin.Call {
	return &plugin.Call{Tenant: "t", Principal: ann, Asker: "os:1", Labels: labels, Trace: plugin.Trace{Correlation: "p"}}
}

// roles returns the roles of what is on record, without what only came in.
func (d *desk) roles(session string) string {
	d.t.Helper()
	rows, err := d.Store.Messages(context.Background(), "t", session, 0, 10_000)
	if err != nil {
		d.t.Fatal(err)
	}
	var all []string
	for _, r := range rows {
		all = append(all, r.Role)
	}
	return strings.Join(all, " ")
}

func wantCode(t *testing.T, err error, code plugin.Code) {
	t.Helper()
	if plugin.CodeOf(err) != code {
		t.Errorf("got %v, want the code %s", err, code)
	}
}

// What all agents have an agent has too, unless something else is said of it.
func TestGiven(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.give(store.EveryAgent, "mail", true)
	d.give(store.EveryAgent, "notes", true)
	d.give("one", "notes", false)
	d.give("one", "own", true)
	d.give("two", "other", true)
	d.write(func(tx store.Tx) error {
		return tx.PutAssignment(store.AssignmentRow{Tenant: "t", Subject: "one", Plugin: "mail", Versions: "=2.0.0", Enabled: true, UpdatedAt: time.Now()})
	})
	for id, want := range map[string]string{"one": "map[mail:=2.0.0 own:^1]", "two": "map[mail:^1 notes:^1 other:^1]", "three": "map[mail:^1 notes:^1]"} {
		if got, err := d.Assignments(t.Context(), "t", id); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s has %v, %v, want %s", id, got, err, want)
		}
	}
	for name, want := range map[string]bool{"own": true, "notes": false, agent.Builtin: true} {
		if got, err := d.Assigned(t.Context(), &plugin.Call{Tenant: "t", Agent: "one"}, name); err != nil || got != want {
			t.Errorf("%s is assigned: %t, %v", name, got, err)
		}
	}
}

// Fifty agents with five plugins each start within five seconds, and Close releases each plugin.
func TestFiftyAgentsWithFivePlugins(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := range 5 {
		d.equip(store.EveryAgent, fmt.Sprintf("p%d", n), event.Subscription{Event: event.AgentStarted, Listen: func(context.Context, *event.Payload) error { return nil }})
	}
	for n := range 50 {
		d.hire(fmt.Sprintf("a%d", n), agent.Settings{})
	}
	began := time.Now()
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			if _, err := d.Instance(t.Context(), "t", fmt.Sprintf("a%d", n)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	t.Run("within five seconds", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make test-long: the time in which fifty agents start")
		}
		if took > 5*time.Second {
			t.Errorf("fifty agents started in %s, want at most 5 s", took)
		}
	})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for name, k := range d.plugins {
		if k.opened != 50 || k.shut != 50 {
			t.Errorf("%s was opened %d times, and closed %d times", name, k.opened, k.shut)
		}
	}
	_, err := d.Instance(t.Context(), "t", "a1")
	wantCode(t, err, plugin.CodeUnavailable)
}
