package check_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/check"
)

// A raw plugin speaks the protocol itself: it can break what an SDK would not
// let it break. answer gets what it was asked, and what asks the host.
func raw(answer func(e execution, ask func(method string, params map[string]any) string) string) {
	in := bufio.NewReader(os.Stdin)
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var f struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params execution       `json:"params"`
		}
		if json.Unmarshal(line, &f) != nil {
			return
		}
		switch f.Method {
		case "initialize":
			say(`{"jsonrpc":"2.0","id":%s,"result":{"protocol":"2","plugins":[{"name":"on.trial","version":%q}]}}`, f.ID, os.Args[3])
		case "describe":
			say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"there is no such method"}}`, f.ID)
		case "shutdown":
			say(`{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID)
			return
		case "execute":
			if f.Params.Operation != "do" && f.Params.Operation != "on.trial/do" {
				say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"there is no such operation","data":{"code":"tool_not_exposed"}}}`, f.ID)
				continue
			}
			result := answer(f.Params, func(method string, params map[string]any) string {
				params["call"] = f.Params.Call
				body, err := json.Marshal(params)
				if err != nil {
					panic(err)
				}
				say(`{"jsonrpc":"2.0","id":"s1","method":%q,"params":%s}`, method, body)
				reply, err := in.ReadString('\n')
				if err != nil {
					os.Exit(1)
				}
				return reply
			})
			say(`{"jsonrpc":"2.0","id":%s,%s}`, f.ID, result)
		}
	}
}

type execution struct {
	Call      string          `json:"call"`
	Operation string          `json:"operation"`
	Input     json.RawMessage `json:"input"`
	Context   struct {
		Auth struct {
			Scopes []string `json:"scopes"`
		} `json:"auth"`
		Key string `json:"key"`
	} `json:"context"`
}

func done(data string) string { return `"result":{"status":"succeeded","data":` + data + `}` }

func failed(code string) string {
	return `"result":{"status":"failed","error":{"code":"` + code + `","message":"no"}}`
}

type asker = func(method string, params map[string]any) string

// rawRoles are plugins that keep the contract of their kind, or break it in one place.
var rawRoles = map[string]func(e execution, ask asker) string{
	"echo": func(e execution, _ asker) string { return done(string(e.Input)) },
	"scopes": func(e execution, _ asker) string {
		if len(e.Context.Auth.Scopes) == 0 {
			return failed("scope_denied")
		}
		return done(`{"n":1}`)
	},
	"moody": func(e execution, _ asker) string { return done(strconv.Quote(e.Call)) },
	"candid-moody": func(e execution, _ asker) string {
		return `"result":{"status":"succeeded","data":` + strconv.Quote(e.Call) + `,"nondeterminism":{"is_nondeterministic":true,"reasons":["a token"],"stability":"low"}}`
	},
	"writer": func(_ execution, ask asker) string { // it asks for an effect, and goes on as if nothing had happened
		ask("http.fetch", map[string]any{"args": map[string]any{"method": "POST", "url": "https://example.com/"}})
		return done(`{"n":1}`)
	},
	"event":   func(execution, asker) string { return done(submit("Support.Ticket.Resolve", "")) },
	"admin":   func(execution, asker) string { return done(submit("Support.Ticket.Resolve", `,"scopes":["*"]`)) },
	"untyped": func(execution, asker) string { return done(submit("resolve it", "")) },
	"event-by-http": func(_ execution, ask asker) string {
		ask("http.fetch", map[string]any{"args": map[string]any{"method": "POST", "url": "https://example.com/"}})
		return done(submit("Support.Ticket.Resolve", ""))
	},
	"poster": func(e execution, ask asker) string { // it posts to the address of its input, and fails if it may not
		if len(e.Context.Auth.Scopes) == 0 {
			return failed("scope_denied")
		}
		var in struct {
			URL string `json:"url"`
		}
		if err := json.Unmarshal(e.Input, &in); err != nil {
			return failed("NO_INPUT")
		}
		if answer := ask("http.fetch", map[string]any{"args": map[string]any{"method": "POST", "url": in.URL}}); !strings.Contains(answer, `"status_code":200`) {
			return failed("NOT_POSTED")
		}
		return done(`{"n":1}`)
	},
	"event-by-operator": func(_ execution, ask asker) string {
		if strings.Contains(ask("operations.call", map[string]any{"operation": "Outcome.Write", "input": map[string]any{}}), `"not_found"`) {
			return failed("not_found")
		}
		return done(`{"status":"succeeded"}`)
	},
	"event-by-tool": func(_ execution, ask asker) string {
		ask("operations.call", map[string]any{"operation": "pattern_extractor", "input": map[string]any{}})
		return done(submit("Support.Ticket.Resolve", ""))
	},
	"plan":       proposing(`"has_student_profile"`, "Helper.Act", "on.trial", `0.5`),
	"forbidden":  proposing(`"has_student_profile"`, "Gmail.Send", "on.trial", `0.5`),
	"dreaming":   proposing(`"has_student_profile","has_rich_uncle"`, "Helper.Act", "on.trial", `0.5`),
	"certain":    proposing(`"has_student_profile"`, "Helper.Act", "on.trial", `2`),
	"under-name": proposing(`"has_student_profile"`, "Helper.Act", "another", `0.5`),
}

func submit(intent, more string) string {
	return fmt.Sprintf(`{"intent":{"type":%q,"payload":{"id":1}},"principal":{"external_id":"u1","provider":"desk"%s}}`, intent, more)
}

func proposing(signals, action, name, confidence string) func(execution, asker) string {
	return func(execution, asker) string {
		return done(fmt.Sprintf(`{"agent_name":%q,"agent_version":"1.0.0","kind":"plan_proposal","confidence":%s,"rationale":{"short":"so","signals":[%s]},`+
			`"required_actions":[{"operator":%[4]q,"payload":{}}],"proposed_plan":{"steps":[{"step_id":"s1","action":%[4]q,"gate":"none"}]}}`, name, confidence, signals, action))
	}
}

// onTrial are the files of a plugin of one operation, do.
func onTrial(role, operation, more string) map[string]string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return map[string]string{
		"manifest.yaml": fmt.Sprintf(`
name: on.trial
version: 1.0.0
owner: test
description: It is on trial.
runner: {kind: process, command: [%q, plugin, %s, "1.0.0"], protocol: "2"}
%s
operations:
  do: {description: Do it., input: in.json, output: out.json, %s}
`, self, role, more, operation),
		"in.json":                    `{"type":"object"}`,
		"out.json":                   `{}`,
		"examples/do.one.input.json": `{"n":1}`,
	}
}

const http = "capabilities: [http]\nhttp: {hosts: [example.com]}"

// TestEachKindIsHeldToItsContract: for each kind one plugin that keeps the
// contract passes all its checks, and one plugin for each check breaks it and is
// found out, with the requirement and the place.
func TestEachKindIsHeldToItsContract(t *testing.T) {
	t.Parallel()
	operator := func(role, more string) map[string]string { return onTrial(role, "kind: operator"+more, "") }
	adapter := func(role, more string) map[string]string { return onTrial(role, "kind: adapter", more) }
	for _, c := range []struct {
		name  string
		files map[string]string
		row   string
		want  []string // "" at the front for a plugin of which nothing may fail
	}{
		{"tool", onTrial("echo", "kind: tool", ""), "KN-20", []string{"",
			"pass asks the host for nothing it may not have", "pass gives the same result twice", "pass its cached answer is its fresh one"}},
		{"tool with an effect", onTrial("writer", "kind: tool", http), "KN-20", []string{
			"fail asks the host for nothing it may not have: examples/do.one.input.json: effect_undeclared: http.fetch: "}},
		{"tool that differs", onTrial("moody", "kind: tool", ""), "KN-20", []string{
			"fail gives the same result twice", "fail its cached answer is its fresh one: examples/do.one.input.json: the answer that is kept is not the one it gives now"}},
		{"tool whose expected answer is another", with(onTrial("echo", "kind: tool", ""), "examples/do.one.output.json", `{"n":2}`), "", []string{
			`fail gives the answer that its example expects: examples/do.one.input.json: it answered {"n":1}`}},

		{"operator", operator("scopes", ", permissions: ['do:it']"), "KN-20", []string{"",
			"pass a repeated key gives the first result and runs nothing", "pass is refused to who lacks its permissions", "pass refuses who lacks its permissions itself",
			"pass says so where two runs differ", "pass asks the host for nothing it may not have"}},
		{"operator that looks at no scopes", operator("echo", ", permissions: ['do:it']"), "KN-20", []string{"",
			"warn refuses who lacks its permissions itself: examples/do.one.input.json: at /permissions: "}},
		{"operator that differs", operator("moody", ""), "KN-20", []string{
			"fail says so where two runs differ: examples/do.one.input.json: at /nondeterminism: "}},
		{"operator that differs and says so", operator("candid-moody", ""), "KN-20", []string{"", "pass says so where two runs differ"}},
		{"operator with an effect that it does not declare", onTrial("writer", "kind: operator", http), "KN-20", []string{
			"fail asks the host for nothing it may not have: examples/do.one.input.json: effect_undeclared: http.fetch: "}},
		{"operator with two examples", with(operator("echo", ""), "examples/do.two.input.json", `{"n":2}`), "KN-20", []string{"",
			"pass a repeated key gives the first result and runs nothing: examples/do.one.input.json", "pass a repeated key gives the first result and runs nothing: examples/do.two.input.json"}},
		{"operator with effects", operator("echo", ", effects: [db_write]"), "", []string{"", "not run runs its example: it has effects (db_write): they happen with --effects"}},

		{"adapter", adapter("event", ""), "KN-20", []string{"", "pass makes a request to the kernel of an event", "pass acts through operators alone"}},
		{"adapter that claims rights", adapter("admin", ""), "KN-20", []string{
			"fail makes a request to the kernel of an event: examples/do.one.input.json: at /principal: "}},
		{"adapter without a typed intent", adapter("untyped", ""), "KN-20", []string{
			"fail makes a request to the kernel of an event: examples/do.one.input.json: at /intent/type: "}},
		{"adapter that writes", adapter("event-by-http", http), "KN-20", []string{
			"fail acts through operators alone: examples/do.one.input.json: it went past them: http.fetch: "}},
		{"adapter that asks for a tool", adapter("event-by-tool", "requires: {tools: [pattern_extractor]}"), "KN-20", []string{
			"fail acts through operators alone: examples/do.one.input.json: it went past them: operations.call: "}},

		{"adapter whose operator is not here", adapter("event-by-operator", "requires: {tools: [Outcome.Write]}"), "KN-20", []string{"",
			"not run runs its example: examples/do.one.input.json: it asks for Outcome.Write, which is not here: check the tree that has it", "pass acts through operators alone"}},

		{"agent", agent("plan"), "KN-20", []string{"", "pass answers as an agent does", "pass proposes only what it may", "pass gives reasons that are facts of its input",
			"pass does not run without the context it needs", "pass asks the host for nothing it may not have"}},
		{"agent against the schema", agent("certain"), "KN-20", []string{
			"fail answers as an agent does: examples/do.one.input.json: invalid_output: the agent's answer at /confidence: "}},
		{"agent under another name", agent("under-name"), "KN-20", []string{"fail answers as an agent does: examples/do.one.input.json: invalid_output: "}},
		{"agent that proposes what it may not", agent("forbidden"), "KN-20", []string{"pass answers as an agent does",
			"fail proposes only what it may: examples/do.one.input.json: at /required_actions/0/operator: Gmail.Send is not among its allowed_actions; at /proposed_plan/steps/0/action: "}},
		{"agent that dreams", agent("dreaming"), "KN-20", []string{"pass proposes only what it may",
			`fail gives reasons that are facts of its input: examples/do.one.input.json: at /rationale/signals/1: "has_rich_uncle" is no fact`}},
		{"agent whose example lacks what it needs", with(agent("plan"), "examples/do.one.input.json", `{"intent":{"type":"A.B","payload":{}}}`), "KN-20", []string{
			"fail does not run without the context it needs: examples/do.one.input.json: the example has no student.profile", "fail runs its example: examples/do.one.input.json: needs_context: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, c.files)
			report, err := check.Run(t.Context(), dir, check.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			rows := map[string]string{}
			for _, r := range report.Results {
				line := fmt.Sprintf("%s %s: %s", r.Outcome, r.Check, r.Detail)
				lines = append(lines, line)
				rows[line] = r.Row
			}
			all := strings.Join(lines, "\n")
			want := c.want
			if want[0] == "" {
				want = want[1:]
				if report.Failed() > 0 {
					t.Errorf("something failed:\n%s", all)
				}
			}
			for _, prefix := range want {
				found := false
				for line, row := range rows {
					if strings.HasPrefix(line, prefix) {
						found = true
						if c.row != row && !strings.Contains(line, runsItsExample) {
							t.Errorf("%q proves %q, want %q", line, row, c.row)
						}
					}
				}
				if !found {
					t.Errorf("there is no %q in\n%s", prefix, all)
				}
			}
		})
	}
}

const runsItsExample = "runs its example"

func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

func agent(role string) map[string]string {
	files := onTrial(role, "kind: agent, allowed_actions: [Helper.Act]", "requires: {context_fields: [student.profile]}")
	files["examples/do.one.input.json"] = `{"intent":{"type":"Funding.Outreach","payload":{}},"context":{"student":{"profile":{"name":"Ada"}}}}`
	return files
}

// TestAnOperatorWithEffectsIsRunWhenAsked: with Effects its key is held to its word too.
func TestAnOperatorWithEffectsIsRunWhenAsked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, onTrial("echo", "kind: operator, effects: [db_write]", ""))
	all := strings.Join(outcomes(t, dir, check.Options{Effects: true}), "\n")
	for _, want := range []string{"pass on.trial/do: runs its example: ", "pass on.trial/do: a repeated key gives the first result and runs nothing: "} {
		if !strings.Contains(all, want) {
			t.Errorf("there is no %q in\n%s", want, all)
		}
	}
}
