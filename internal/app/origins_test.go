package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/agent/adapter"
	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/agent/schedule"
	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/approval"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// gates are the plugins of TestNoOriginPassesAGate, each behind one gate, with
// the code that a refused caller gets. Open has none.
var gates = []struct {
	name string
	code plugin.Code // "" for the one that runs, pending for one that waits
}{
	{"open", ""},
	{"hidden", plugin.CodeNotFound},
	{"held", plugin.CodeQuarantined},
	{"off", plugin.CodeDisabled},
	{"denied", plugin.CodePolicyDenied},
	{"gated", pending},
	{"scoped", plugin.CodeScopeDenied},
	{"typed", plugin.CodeInvalidInput},
}

// pending stands for a call that waits for a person.
const pending plugin.Code = "pending_approval"

// gatePlugin is the plugin behind a gate: its one operation leaves a line in a
// file, so that nothing that ran can be overlooked.
func gatePlugin(name, log string) {
	p := mortise.New(name, "1.0.0")
	options := []mortise.Option{mortise.Effects("db_write")}
	if name == "scoped" {
		options = append(options, mortise.Permissions("admin"))
	}
	mortise.Operator(p, "run", "Leave a line.", func(_ *mortise.Call, in struct {
		N int `json:"n"`
	}) (string, error) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, name)
		return "ran", err
	}, options...)
	p.Run()
}

// caller asks for another operation, and agent proposes one.
func callerPlugin() {
	p := mortise.New("caller", "1.0.0")
	mortise.Operator(p, "ask", "Ask for an operation.", func(c *mortise.Call, in struct {
		Operation string         `json:"operation"`
		Input     map[string]any `json:"input"`
	}) (map[string]any, error) {
		var data any
		err := c.Call(in.Operation, in.Input, &data)
		var refused *mortise.ServiceError
		if errors.As(err, &refused) {
			return map[string]any{"code": refused.Code}, nil
		}
		return map[string]any{"data": data}, err
	}, mortise.Effects("db_write"))
	p.Run()
}

func plannerPlugin() {
	p := mortise.New("planner", "1.0.0")
	var all []string
	for _, gate := range gates {
		all = append(all, gate.name+"/run")
	}
	if len(os.Args) > 2 {
		all = os.Args[2:]
	}
	mortise.Agent(p, "plan", "Propose an operation.", func(_ *mortise.Call, in mortise.AgentInput) (mortise.Proposal, error) {
		var payload struct {
			Operation string         `json:"operation"`
			Input     map[string]any `json:"input"`
		}
		if err := json.Unmarshal(in.Intent.Payload, &payload); err != nil {
			return mortise.Proposal{}, err
		}
		return mortise.Proposal{
			AgentName: "planner", AgentVersion: "1.0.0", Kind: "plan_proposal", Confidence: 1, Rationale: mortise.Rationale{Short: "It was asked for.", Signals: []string{"intent_type:Gate.Meet"}},
			RequiredActions: []mortise.RequiredAction{{Operator: payload.Operation, Payload: payload.Input}},
			ProposedPlan:    &mortise.ProposedPlan{Steps: []mortise.ProposedStep{{ID: "s1", Action: payload.Operation, Gate: "none"}}},
		}, nil
	}, mortise.AllowedActions(all...))
	p.Run()
}

// chatPlugin makes an intent of whatever it is told happened.
func chatPlugin() {
	p := mortise.New("chat", "1.0.0")
	mortise.Adapter(p, "inbound", "Make an intent of an event.", func(_ *mortise.Call, in struct {
		Operation string         `json:"operation"`
		Input     map[string]any `json:"input"`
	}) (mortise.SubmitRequest, error) {
		return mortise.SubmitRequest{
			Intent:    mortise.SubmitIntent{Type: "Gate.Meet", Payload: map[string]any{"operation": in.Operation, "input": in.Input}},
			Principal: mortise.ExternalPrincipal{Provider: "chat", ExternalID: "U1"},
		}, nil
	})
	p.Run()
}

var ann = plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"basic"}}

// A way is one origin: it asks for an operation and returns what became of that.
type way func(t *testing.T, a *app.App, operation, input string) plugin.Code

// outcome is the code of what became of a call.
func outcome(res plugin.Result, err error) plugin.Code {
	switch {
	case err != nil:
		return plugin.CodeOf(err)
	case res.Status == plugin.PendingApproval:
		return pending
	case res.Status == plugin.Succeeded:
		return ""
	}
	return plugin.Code(res.Status)
}

// ways are all origins there are, by name; some have several.
var ways = map[string]map[string]way{
	"OriginCLI": {
		"at once": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
			return outcome(a.Kernel.Call(t.Context(), asking(plugin.OriginCLI, operation, input)))
		},
		"without waiting": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
			call := asking(plugin.OriginCLI, operation, input)
			call.NoWait = true
			res, err := a.Kernel.Call(t.Context(), call)
			if err == nil && res.Status == plugin.InProgress {
				res, err = a.Kernel.Await(t.Context(), call.Tenant, res.CallID)
			}
			return outcome(res, err)
		},
		"under a key": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
			call := asking(plugin.OriginCLI, operation, input)
			call.Key = "order-" + operation
			return outcome(a.Kernel.Call(t.Context(), call))
		},
	},
	"OriginAPI": {
		"at once": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
			return outcome(a.As(ann).Invoke(t.Context(), host.Invocation{Operation: operation, Input: json.RawMessage(input), Origin: plugin.OriginAPI}))
		},
		"recorded first": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
			res, err := a.As(ann).Invoke(t.Context(), host.Invocation{Operation: operation, Input: json.RawMessage(input), Origin: plugin.OriginAPI, NoWait: true})
			if err == nil && res.Status == plugin.InProgress {
				res, err = a.As(ann).Calls().Wait(t.Context(), res.CallID, host.Waiting{})
			}
			return outcome(res, err)
		},
	},
	"OriginMCP": {
		"a tool": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
			return outcome(a.As(ann).Invoke(t.Context(), host.Invocation{Operation: operation, Input: json.RawMessage(input), Origin: plugin.OriginMCP}))
		},
	},
	"OriginCall": {
		"of a plugin": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			call := asking(plugin.OriginCLI, "caller/ask", fmt.Sprintf(`{"operation":%q,"input":%s}`, operation, input))
			call.Timeout = testwait.Limit
			before := waiting(t, a, operation)
			var res plugin.Result
			var err error
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				res, err = a.Kernel.Call(ctx, call)
			}()
			asks := false // a person, for whom the caller does not wait here
			testwait.Until(t, "the call ends or waits for a person", func() bool {
				select {
				case <-ended:
					return true
				default:
					asks = waiting(t, a, operation) > before
					return asks
				}
			})
			cancel()
			<-ended
			if asks {
				return pending
			}
			var heard struct {
				Code plugin.Code `json:"code"`
			}
			if err == nil && json.Unmarshal(res.Data, &heard) == nil && heard.Code != "" {
				return heard.Code
			}
			return outcome(res, err)
		},
	},
	"OriginPlan": {"a step": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
		return planned(t, a, operation, input)
	}},
	"OriginFeed": {
		"a run of a feed": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
			id, err := feed(t, a, operation, input)
			if err != nil {
				return plugin.CodeOf(err)
			}
			res, err := a.Schedules.Run(t.Context(), "local", id)
			if err == nil && res.Status == plugin.InProgress {
				res, err = a.Kernel.Await(t.Context(), "local", res.CallID)
			}
			return outcome(res, err)
		},
	},
	"OriginAgent": {"a tool of an agent": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
		if row, err := a.Store.Agent(t.Context(), "local", "desk"); err != nil || row == nil {
			hire(t, a, "desk", agent.Settings{})
		}
		assign(t, a, "desk", strings.Split(operation, "/")[0], true)
		call := asking(plugin.OriginAgent, operation, input)
		call.Agent = "desk"
		return outcome(a.Kernel.Call(t.Context(), call))
	}},
	"OriginAdapter": {"an event": func(t *testing.T, a *app.App, operation, input string) plugin.Code {
		v, err := a.Adapters.Deliver(t.Context(), adapter.Delivery{
			Tenant: "local", Adapter: "chat", By: plugin.Principal{Type: "user", ID: "root", Scopes: []string{"*"}}, Asker: "os:1", Origin: plugin.OriginCLI,
			Event: json.RawMessage(fmt.Sprintf(`{"operation":%q,"input":%s}`, operation, input)),
		})
		return ended(t, a, v, err)
	}},
}

// feed makes a feed past the checks of the command line, so that every gate is
// the kernel's, and ann's own scopes are what she has.
func feed(t *testing.T, a *app.App, operation, input string) (string, error) {
	t.Helper()
	s, err := a.Schedules.Create(t.Context(), "local", schedule.Schedule{Owner: ann, Asker: "os:1", Operation: operation, Input: json.RawMessage(input), Spec: "every 1h"}, nil)
	return s.ID, err
}

func asking(origin plugin.Origin, operation, input string) plugin.Call {
	return plugin.Call{Tenant: "local", Principal: ann, Asker: "os:1", Origin: origin, Operation: operation, Input: json.RawMessage(input)}
}

// waiting returns how many calls of an operation wait for a person.
func waiting(t *testing.T, a *app.App, operation string) int {
	t.Helper()
	rows, err := a.Store.Calls(t.Context(), store.CallFilter{Operation: operation, State: store.CallPending})
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

// planned has an agent propose the operation and takes the plan to its end.
func planned(t *testing.T, a *app.App, operation, input string) plugin.Code {
	t.Helper()
	v, err := a.Plans.Submit(t.Context(), plan.Submission{
		Tenant: "local", Principal: ann, Asker: "os:1", Agent: "planner", Origin: plugin.OriginCLI,
		Input: json.RawMessage(fmt.Sprintf(`{"intent":{"type":"Gate.Meet","payload":{"operation":%q,"input":%s}}}`, operation, input)),
	})
	return ended(t, a, v, err)
}

// ended takes a plan to its end, if there is one.
func ended(t *testing.T, a *app.App, v *plan.View, err error) plugin.Code {
	t.Helper()
	if err != nil {
		return plugin.CodeOf(err)
	}
	if v.State == store.PlanQueued {
		if v, err = a.Plans.Run(t.Context(), "local", v.ID); err != nil {
			return plugin.CodeOf(err)
		}
	}
	switch {
	case v.State == store.PlanPending:
		return pending
	case v.Error != nil:
		return v.Error.Code
	case v.State == store.PlanSucceeded:
		return ""
	}
	return plugin.Code(v.State)
}

// Every origin that exists meets every gate (PL-01): none passes one, each is
// told why in the same words, and where there is no gate each gets through.
func TestNoOriginPassesAGate(t *testing.T) {
	t.Parallel()
	if got := origins(t); len(got) != len(ways) {
		t.Fatalf("there are the origins %q, and ways for %d of them", got, len(ways))
	}
	home := t.TempDir()
	log := filepath.Join(home, "ran.txt")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, "mortise.yaml", "sandbox: \"off\" # what a plugin does shows in a file outside\npolicy: {files: [gates.cedar], configure: [root], groups: {people: [ann]}}\napprovals: {by: [bob]}\nintents: {Gate.Meet: planner}\n", "gates.cedar", `
@id("run") @untrusted("allow") permit (principal, action in [Action::"execute", Action::"list"], resource) unless {
  resource in Plugin::"hidden" || resource in Plugin::"denied" || resource in Plugin::"gated"
};
@id("seen") permit (principal, action == Action::"list", resource in Plugin::"denied");
@id("gate") @approval("it is gated") permit (principal, action == Action::"execute", resource in Plugin::"gated");
`)
	a := open(t, home)
	add := func(name, rest string, args ...string) {
		quoted := make([]string, len(args))
		for i, arg := range args {
			quoted[i] = strconv.Quote(arg)
		}
		dir := filepath.Join(home, "source", name)
		write(t, dir, "manifest.yaml", fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: A test.\nfeed: {allowed: [run]}\nrunner: {kind: process, command: [%q, %s]}\n%s", name, self, strings.Join(quoted, ", "), rest))
		register(t, a, dir, false)
	}
	var all []string
	for _, gate := range gates {
		add(gate.name, "", "gate", gate.name, log)
		all = append(all, gate.name+"/run")
	}
	add("chat", "", "chat")
	add("caller", "requires: {tools: ["+strings.Join(all, ", ")+"]}\n", "caller")
	add("planner", "operations:\n  plan: {kind: agent, description: Propose., allowed_actions: ["+strings.Join(all, ", ")+"]}\n", "planner")
	linkAdapter(t, a, "chat", "chat", "U1", "ann", "basic")
	if _, err := a.Registry.Disable(t.Context(), "off"); err != nil {
		t.Fatal(err)
	}
	err = a.Store.Write(t.Context(), func(tx store.Tx) error {
		_, err := tx.SetPluginState("held", "1.0.0", store.PluginQuarantined)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Registry.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}

	ran := 0
	for _, origin := range slices.Sorted(maps.Keys(ways)) {
		for _, manner := range slices.Sorted(maps.Keys(ways[origin])) {
			for _, gate := range gates {
				input := `{"n":1}`
				if gate.name == "typed" {
					input = `{"n":"one"}`
				}
				got := ways[origin][manner](t, a, gate.name+"/run", input)
				if got != gate.code {
					t.Errorf("%s, %s, meets %s: %q, want %q", origin, manner, gate.name, got, gate.code)
				}
				if got == pending {
					approvable(t, a, origin+", "+manner)
				}
				if gate.code == "" {
					ran++
				}
			}
		}
	}
	lines, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(lines)); len(got) != ran || slices.ContainsFunc(got, func(name string) bool { return name != "open" }) {
		t.Errorf("what ran is %q, want open %d times", got, ran)
	}
}

// approvable checks that every question that is open may be answered by a person who has no part
// in it: who asks is known.
func approvable(t *testing.T, a *app.App, asked string) {
	t.Helper()
	open, err := a.Store.Approvals(t.Context(), store.ApprovalFilter{Tenant: "local", State: store.ApprovalOpen, Limit: 1000})
	if err != nil || len(open) == 0 {
		t.Fatalf("%s: there is no question, %v", asked, err)
	}
	for i := range open {
		answer := approval.Answer{Tenant: "local", ID: open[i].ID, Approve: true, By: plugin.Principal{Type: "user", ID: "bob"}, Asker: "os:2"}
		if err := a.Approvals.Entitled(t.Context(), &open[i], answer); err != nil {
			t.Errorf("%s: bob may not approve what %q asks: %v", asked, open[i].Asker, err)
		}
	}
}

// origins reads the names of the origins that exist from where they are declared.
func origins(t *testing.T) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "plugin", "call.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value := spec.(*ast.ValueSpec)
			if kind, ok := value.Type.(*ast.Ident); ok && kind.Name == "Origin" {
				names = append(names, value.Names[0].Name)
			}
		}
	}
	// A decision is about a tool of another program, and a way to no plugin of this host.
	names = slices.DeleteFunc(names, func(name string) bool { return name == "OriginDecision" })
	for _, name := range names {
		if ways[name] == nil {
			t.Errorf("nothing here comes by %s", name)
		}
	}
	return names
}

// TestWhatATurnAsksForNamesWhoAsks: on each way to a turn of an agent, a person who has no part in
// it can approve the calls of the agent.
func TestWhatATurnAsksForNamesWhoAsks(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	home := modelHome(t, model.URL, "policy: {files: [turn.cedar]}\napprovals: {by: [bob]}\n")
	write(t, home, "turn.cedar", `
@id("run") @untrusted("allow") permit (principal, action in [Action::"execute", Action::"list"], resource) unless { resource == Operation::"agent.memory/upsert" };
@id("gate") @approval("it is gated") permit (principal, action in [Action::"execute", Action::"list"], resource == Operation::"agent.memory/upsert");
`)
	a := open(t, home)
	for _, id := range []string{"desk", "front"} {
		hire(t, a, id, agent.Settings{})
	}
	assign(t, a, "front", "agent.chat", true)
	const asks = `{"agent":"desk","text":"remember it"}`
	turn := asking(plugin.OriginAPI, "agent.chat/turn", asks)
	turn.Principal = theOwner
	for name, take := range map[string]func() error{
		"at a terminal": func() error {
			_, err := talk(t, a, "desk", "remember it")
			return err
		},
		"by agent.chat/turn": func() error {
			_, err := a.Kernel.Call(t.Context(), turn)
			return err
		},
		"by agent.chat/turn, later": func() error {
			call := turn
			call.NoWait = true
			res, err := a.Kernel.Call(t.Context(), call)
			if err == nil {
				_, err = a.Kernel.Await(t.Context(), "local", res.CallID)
			}
			return err
		},
		"by another agent": func() error {
			_, err := talk(t, a, "front", "have it remembered")
			return err
		},
		"by a schedule": func() error {
			s, err := a.Schedules.Create(t.Context(), "local", schedule.Schedule{Owner: a.Principal, Asker: "os:1", Operation: "agent.chat/turn", Input: json.RawMessage(asks), Spec: "every 1h"}, nil)
			if err != nil {
				return err
			}
			res, err := a.Schedules.Run(t.Context(), "local", s.ID)
			if err == nil && res.Status == plugin.InProgress {
				_, err = a.Kernel.Await(t.Context(), "local", res.CallID)
			}
			return err
		},
	} {
		before := waiting(t, a, "agent.memory/upsert")
		first := []move{{tool: "agent_memory__upsert", args: `{"key":"k","content":"c"}`}, {text: "I asked."}, {text: "done"}}
		if name == "by another agent" {
			model.say(move{tool: "agent_chat__turn", args: asks})
		}
		model.say(first...)
		if err := take(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := waiting(t, a, "agent.memory/upsert") - before; n != 1 {
			t.Errorf("%s: %d calls wait for a person, want 1", name, n)
		}
		approvable(t, a, name)
		model.forget()
	}
}
