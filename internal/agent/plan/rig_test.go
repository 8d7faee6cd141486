package plan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// The test binary is also the plugin desk, and a host that runs one plan.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "plugin":
			desk()
		case "host":
			host(os.Args[2], os.Args[3])
		}
	}
	goleak.VerifyTestMain(m)
}

// work is the input of the operations of desk.
type work struct {
	Log  string         `json:"log,omitempty"`  // a file that gets a line for each run
	Say  string         `json:"say,omitempty"`  // that line
	Wait string         `json:"wait,omitempty"` // a file to wait for
	Data jsontext.Value `json:"data,omitempty"` // returned

	Artifacts jsontext.Value `json:"artifacts,omitempty"`
}

// done writes the line, waits, and returns the data.
func done(c *mortise.Call, in work) (jsontext.Value, error) {
	if in.Log != "" {
		f, err := os.OpenFile(in.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if _, err := fmt.Fprintln(f, in.Say); err != nil {
			return nil, err
		}
	}
	for in.Wait != "" {
		if _, err := os.Stat(in.Wait); err == nil {
			break
		}
		select {
		case <-c.Done():
			return nil, c.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	if len(in.Data) == 0 {
		return jsontext.Value(`{"said":` + fmt.Sprintf("%q", in.Say) + `}`), nil
	}
	return in.Data, nil
}

// desk is a plugin of which the agent proposes what the intent's payload says.
func desk() {
	p := mortise.New("desk", "1.0.0")
	mortise.Tool(p, "planner", "Propose.", func(c *mortise.Call, in jsontext.Value) (jsontext.Value, error) {
		var brief struct {
			Intent struct {
				Payload struct {
					Log      string         `json:"log"`
					Wait     string         `json:"wait"`
					Proposal jsontext.Value `json:"proposal"`
					Echo     bool           `json:"echo"`
				} `json:"payload"`
			} `json:"intent"`
		}
		if err := json.Unmarshal(in, &brief); err != nil {
			return nil, err
		}
		payload := brief.Intent.Payload
		if payload.Echo {
			payload.Proposal = jsontext.Value(`{"agent_name":"desk","agent_version":"1.0.0","kind":"step_output","confidence":1,"rationale":{"short":"","signals":[]},"step_output":` + string(in) + `}`)
		}
		return done(c, work{Log: payload.Log, Wait: payload.Wait, Say: "planned", Data: payload.Proposal})
	})
	for _, name := range []string{"draft", "send", "fetch"} {
		mortise.Tool(p, name, "Work.", done)
	}
	mortise.Tool(p, "fail", "Fail.", func(c *mortise.Call, in work) (jsontext.Value, error) {
		return nil, errors.New("it went wrong")
	})
	mortise.Tool(p, "die", "Die.", func(c *mortise.Call, in work) (jsontext.Value, error) {
		os.Exit(7)
		return nil, nil
	})
	p.Run()
}

// A runner is the real one; nothing here offers a preview or reconciles.
type runner struct {
	*process.Runner
	rig *rig
}

func (runner) Preview(context.Context, *plugin.Target, *plugin.Call, plugin.Services) (json.RawMessage, error) {
	return nil, errors.New("no operation of desk has a preview")
}

func (runner) Reconcile(context.Context, *plugin.Target, *plugin.Call, []protocol.Effect, plugin.Services) (protocol.Reconciled, error) {
	return protocol.Reconciled{}, errors.New("no operation of desk reconciles")
}

// A rig is an engine on a real store, ledger, kernel and policy, with one plugin
// in processes of its own. Its registry is a map, so that tests say what is there.
type rig struct {
	*plan.Engine
	kernel    *kernel.Kernel
	ledger    *ledger.Ledger
	store     *sqlite.Store
	approvals *approval.Service
	policy    *policy.Engine
	home      string
	log       string // the file that the operations write to
	targets   map[string]*plugin.Target
	anyone    bool
	broken    atomic.Bool // no process starts
}

func (r *rig) Resolve(_ context.Context, ref string) (*plugin.Target, error) {
	name, limit, _ := strings.Cut(ref, "@")
	if !strings.Contains(name, "/") {
		name += "/" + name
	}
	t := r.targets[name]
	if t == nil || limit != "" && strings.TrimPrefix(limit, "=") != t.Manifest.Version {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no %s", ref)
	}
	return t, nil
}

func (r *rig) ResolveFor(ctx context.Context, ref string, sees func(*plugin.Manifest) ([]*plugin.Operation, bool)) (*plugin.Target, error) {
	t, err := r.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	if operations, whole := sees(t.Manifest); !whole && !slices.Contains(operations, t.Operation) {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no %s", ref)
	}
	return t, nil
}

func (r *rig) Anyone(context.Context, []*plugin.Target, plugin.Principal) bool { return r.anyone }

// rules are the policies of a rig. Sending asks a person.
const rules = `
@id("tools") permit (principal, action == Action::"execute", resource) when { !resource.effects.contains("mail_send") && !resource.tags.contains("forbidden") };
@id("mail") @approval("it sends a mail") permit (principal, action == Action::"execute", resource) when { resource.effects.contains("mail_send") };
@id("approvers") permit (principal == User::"ada", action == Action::"approve", resource);
@id("seen") permit (principal, action == Action::"list", resource) when { resource is Operation && resource.tags.contains("forbidden") };
`

const workSchema = `{"type":"object","properties":{"log":{"type":"string"},"say":{"type":"string"},"wait":{"type":"string"},"data":true,"artifacts":true},"additionalProperties":false}`

// Run starts nothing while the rig is broken.
func (r runner) Run(ctx context.Context, t *plugin.Target, call *plugin.Call, s plugin.Services) (plugin.Result, error) {
	if r.rig.broken.Load() {
		return plugin.Result{}, unsent{plugin.Errorf(plugin.CodeLaunchFailed, "desk: nothing starts at the moment")}
	}
	return r.Runner.Run(ctx, t, call, s)
}

// An unsent error says that no plugin had the call.
type unsent struct{ error }

func (unsent) Sent() bool      { return false }
func (e unsent) Unwrap() error { return e.error }

func newRig(t testing.TB) *rig { return rigAt(t, t.TempDir()) }

func rigAt(t testing.TB, home string) *rig {
	t.Helper()
	r, closeAll, err := assembled(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func assembled(home string) (_ *rig, closeAll func() error, err error) {
	ctx := context.Background()
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	r := &rig{home: home, log: filepath.Join(home, "log.txt"), targets: map[string]*plugin.Target{}, anyone: true}
	if r.store, err = sqlite.Open(ctx, home, sqlite.Options{}); err != nil {
		return nil, nil, err
	}
	if r.ledger, err = ledger.Open(ctx, r.store, ledger.Options{Recover: plan.RecoverPlans}); err != nil {
		return nil, nil, err
	}
	processes := process.New(process.Options{
		Scratch: home,
		Command: func(context.Context, plugin.Package, *plugin.Manifest) ([]string, error) {
			return []string{self, "plugin"}, nil
		},
	})
	file := filepath.Join(home, "rules.cedar")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		return nil, nil, err
	}
	if r.policy, err = policy.Open(policy.Options{Sources: []policy.Source{policy.Files(home, "rules.cedar")}}); err != nil {
		return nil, nil, err
	}
	m := &plugin.Manifest{
		Name: "desk", Version: "1.0.0", Isolation: plugin.IsolationTenant, Runner: plugin.Runner{Kind: "process", Protocol: "2"},
	}
	dir := filepath.Join(home, "package")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	for _, op := range []*plugin.Operation{
		{Name: "planner", Kind: plugin.Agent, AllowedActions: []string{"desk/draft", "desk/send@1.0.0", "desk/fetch", "desk/fail", "desk/die", "desk/planner", "desk/secret", "desk/gone", "other"}},
		{Name: "draft", Kind: plugin.Operator, Input: json.RawMessage(workSchema)},
		{Name: "send", Kind: plugin.Operator, Effects: []string{"mail_send"}, Input: json.RawMessage(workSchema)},
		{Name: "fetch", Kind: plugin.Tool, Labels: []string{plugin.Untrusted}, Input: json.RawMessage(workSchema)},
		{Name: "fail", Kind: plugin.Operator},
		{Name: "die", Kind: plugin.Operator, Effects: []string{"db_write"}},
		{Name: "secret", Kind: plugin.Operator, PolicyTags: []string{"forbidden"}},
		{Name: "other", Kind: plugin.Operator}, // not on the whitelist
	} {
		op.Timeout = 5 * time.Minute // no test waits for its end
		m.Operations = append(m.Operations, op)
		in, err := schema.Compile(op.Input)
		if err != nil {
			return nil, nil, err
		}
		r.targets["desk/"+op.Name] = &plugin.Target{
			Manifest: m, Operation: op, Input: in, Output: schema.Any,
			Package: plugin.Package{Digest: "sha256:" + strings.Repeat("ab", 32), Dir: dir},
		}
	}
	broker := service.New()
	agents := &plan.Agents{Registry: r, Policy: r.policy, Operations: func(context.Context, string) []string { return nil }}
	r.kernel = kernel.New(kernel.Options{Registry: r, Policy: r.policy, Ledger: r.ledger, Runner: runner{processes, r}, Services: broker, Agents: agents})
	r.Engine = plan.New(plan.Options{
		Kernel: r.kernel, Registry: r, Policy: r.policy, Store: r.store, Answers: r.ledger, Approvers: r, Watch: 50 * time.Millisecond, Patience: 2 * time.Second,
	})
	r.approvals = &approval.Service{Store: r.store, May: func(_ context.Context, _ *store.ApprovalRow, by plugin.Principal) error {
		if by.ID != "ada" {
			return plugin.Errorf(plugin.CodePolicyDenied, "%s may not", by.ID)
		}
		return nil
	}}
	return r, func() error {
		return errors.Join(broker.Close(), processes.Close(), r.ledger.Close(), r.store.Close())
	}, nil
}

var owner = plugin.Principal{Type: "user", ID: "bob", Scopes: []string{"*"}}

// A proposed is a step of a proposal in a test.
type proposed map[string]any

// proposal is the input with which the agent proposes these steps.
func proposal(t testing.TB, more map[string]any, steps ...proposed) json.RawMessage {
	t.Helper()
	p := map[string]any{
		"agent_name": "desk", "agent_version": "1.0", "kind": "plan_proposal", "confidence": 0.9,
		"rationale":     map[string]any{"short": "because", "signals": []string{"intent_type:Test.Plan"}},
		"proposed_plan": map[string]any{"steps": steps},
	}
	for k, v := range more {
		p[k] = v
	}
	return intent(t, map[string]any{"proposal": p}, nil)
}

func intent(t testing.TB, payload, context map[string]any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"intent": map[string]any{"type": "Test.Plan", "payload": payload}, "context": context})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// say is the payload of a step that writes a line.
func (r *rig) say(line string) map[string]any { return map[string]any{"log": r.log, "say": line} }

func (r *rig) submit(t testing.TB, key string, input json.RawMessage, labels ...string) (*plan.View, error) {
	t.Helper()
	return r.Submit(t.Context(), plan.Submission{Tenant: "local", Principal: owner, Asker: "os:1", Agent: "desk/planner", Input: input, Key: key, Labels: labels, Origin: plugin.OriginCLI})
}

func (r *rig) must(t testing.TB, key string, input json.RawMessage, labels ...string) *plan.View {
	t.Helper()
	v, err := r.submit(t, key, input, labels...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (r *rig) run(t testing.TB, id string) *plan.View {
	t.Helper()
	v, err := r.Run(t.Context(), "local", id)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (r *rig) decide(t testing.TB, approvalID string, yes bool) {
	t.Helper()
	_, err := r.approvals.Decide(t.Context(), approval.Answer{Tenant: "local", Asker: "os:2", ID: approvalID, Approve: yes, By: plugin.Principal{Type: "user", ID: "ada"}, Reason: "so be it"})
	if err != nil {
		t.Fatal(err)
	}
}

// lines are what the operations wrote.
func (r *rig) lines(t testing.TB) []string {
	t.Helper()
	raw, err := os.ReadFile(r.log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(bytes.TrimSpace(raw)))
}

// kinds are the kinds of entries that begin so, the oldest first.
func (r *rig) kinds(t testing.TB, prefix string) []string {
	t.Helper()
	if err := r.ledger.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for e, err := range r.store.Entries(t.Context(), store.EntryFilter{Kind: prefix}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(e.Kind))
	}
	return kinds
}

func states(v *plan.View) (all []string) {
	for _, s := range v.Steps {
		all = append(all, s.ID+"="+string(s.State))
	}
	return all
}

func equal(t testing.TB, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}
