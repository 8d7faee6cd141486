package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMissingContextIsSaidBeforeTheAgentRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m := r.targets["desk/planner"].Manifest
	m.Requires.ContextFields = []string{"student.profile", "professor.entity", "request.scope", "professor_id"}
	input := intent(t, map[string]any{"log": r.log, "professor_id": 910}, map[string]any{"student": map[string]any{"profile": nil}, "professor.entity": map[string]any{"name": "X"}})
	_, err := r.submit(t, "", input)
	e := plugin.AsError(err)
	equal(t, "code", e.Code, plugin.CodeNeedsContext)
	equal(t, "details", string(e.Details), `{"missing":["student.profile","request.scope"]}`)
	equal(t, "lines", r.lines(t), "[]")
	equal(t, "calls", r.kinds(t, "call."), "[call.refused]")
	equal(t, "plans", r.kinds(t, "plan."), "[plan.refused]")
}

// What an agent is told: what it declared, what it may propose, under which
// policy, and nothing else.
func TestTheBriefOfAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.targets["desk/planner"].Manifest.Requires.ContextFields = []string{"student.profile", "student.profile.name", "scope"}
	input := intent(t, map[string]any{"echo": true, "scope": "all"}, map[string]any{
		"student": map[string]any{"profile": map[string]any{"name": "Ann", "id": json.RawMessage("12345678901234567890")}, "password": "secret"}, "other": "secret",
	})
	v := r.must(t, "", input)
	var answer struct {
		Output struct {
			Intent         json.RawMessage            `json:"intent"`
			Context        json.RawMessage            `json:"context"`
			PolicySnapshot json.RawMessage            `json:"policy_snapshot"`
			Tools          []map[string]any           `json:"tool_registry"`
			Constraints    json.RawMessage            `json:"constraints"`
			Runtime        map[string]json.RawMessage `json:"runtime"`
		} `json:"step_output"`
	}
	if err := json.Unmarshal(v.Answer, &answer); err != nil || v.ID != "" {
		t.Fatalf("%+v, %v", v, err)
	}
	got := answer.Output
	equal(t, "context", string(got.Context), `{"student":{"profile":{"id":12345678901234567890,"name":"Ann"}}}`)
	equal(t, "constraints", string(got.Constraints), `{}`)
	var tools []string
	for _, tool := range got.Tools {
		tools = append(tools, fmt.Sprint(tool["operation"], " ", tool["gate"]))
	}
	// Not those that policy denies, are agents, or do not exist.
	equal(t, "tools", tools, "[desk/die none desk/draft none desk/fail none desk/fetch none desk/send human_apply]")
	var snapshot struct {
		Version    string
		Operations map[string]string
	}
	if err := json.Unmarshal(got.PolicySnapshot, &snapshot); err != nil {
		t.Fatal(err)
	}
	equal(t, "policies", snapshot.Version, r.policy.Version())
	equal(t, "verdicts", snapshot.Operations["desk/send"]+" "+snapshot.Operations["desk/draft"]+" "+snapshot.Operations["desk/secret"], "allow_with_approval allow deny")
	equal(t, "runtime", string(got.Runtime["deadline_ms"])+" "+string(got.Runtime["max_actions"])+" "+string(got.Runtime["max_input_bytes"]), "300000 64 4194304")
}

func TestTheInputOfAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, input := range []string{
		`{}`, `[]`, `{"intent":{}}`, `{"intent":{"type":""}}`, `{"intent":{"type":7}}`, `{"intent":{"type":"A","payload":[]}}`,
		`{"intent":{"type":"A"},"context":[]}`, `{"intent":{"type":"A"},"constraints":"x"}`, `{"intent":{"type":"A"},"contxt":{}}`,
	} {
		_, err := r.submit(t, "", json.RawMessage(input))
		equal(t, input, plugin.CodeOf(err), plugin.CodeInvalidInput)
	}
}

func TestSignalsAreGrounded(t *testing.T) {
	t.Parallel()
	in := plan.Request{
		Intent:  jsontext.Value(`{"type":"Funding.Outreach.Email.Generate","payload":{"professor_id":910,"tone":"warm","nested":{"flag":true,"list":[1]},"none":null}}`),
		Context: jsontext.Value(`{"resume":{"doc":{"sha":"x"}},"student.profile":{"name":"Ann"},"a":{"b":{"c":1}},"empty":null}`),
	}
	for signal, want := range map[string]bool{
		"intent_type:Funding.Outreach.Email.Generate": true,
		"intent_type:Funding.Outreach.Email":          false,
		"has_professor_id":                            true,
		"has_resume_doc":                              true,
		"has_Resume_Doc":                              true,
		"has_resume_docs":                             false,
		"has_student_profile":                         true,
		"has_student_profile_name":                    true,
		"has_nested_flag":                             true,
		"has_none":                                    false,
		"has_empty":                                   false,
		"has_":                                        false,
		"context:a.b.c":                               true,
		"context:a.b.d":                               false,
		"context:student.profile.name":                true,
		"context:professor_id":                        false, // that is the payload
		"fact:tone=warm":                              true,
		"fact:tone=cold":                              false,
		"fact:professor_id=910":                       true,
		"fact:nested.flag=true":                       true,
		"fact:nested.list=[1]":                        false,
		"fact:tone":                                   false,
		"user seems nice":                             false,
		"":                                            false,
	} {
		if got := plan.Grounded(signal, in); got != want {
			t.Errorf("%q: %v", signal, got)
		}
	}
}

func TestAnAnswerThatMayNotCount(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	step := proposed{"step_id": "s1", "action": "desk/draft"}
	for name, one := range map[string]struct {
		more  map[string]any
		steps []proposed
		code  plugin.Code
		says  string
	}{
		"an ungrounded signal":          {map[string]any{"rationale": map[string]any{"short": "", "signals": []string{"intent_type:Test.Plan", "has_budget"}}}, []proposed{step}, plugin.CodeInvalidOutput, "has_budget"},
		"another's name":                {map[string]any{"agent_name": "Switchboard"}, []proposed{step}, plugin.CodeInvalidOutput, "Switchboard"},
		"another version":               {map[string]any{"agent_version": "2.0"}, []proposed{step}, plugin.CodeInvalidOutput, "2.0"},
		"no confidence":                 {map[string]any{"confidence": nil}, []proposed{step}, plugin.CodeInvalidOutput, "/confidence"},
		"too much confidence":           {map[string]any{"confidence": 1.5}, []proposed{step}, plugin.CodeInvalidOutput, "/confidence"},
		"another kind":                  {map[string]any{"kind": "command"}, []proposed{step}, plugin.CodeInvalidOutput, "/kind"},
		"a member that is none":         {map[string]any{"execute_now": true}, []proposed{step}, plugin.CodeInvalidOutput, "execute_now"},
		"another gate":                  {nil, []proposed{{"step_id": "s1", "action": "desk/draft", "gate": "auto"}}, plugin.CodeInvalidOutput, "/gate"},
		"no steps":                      {nil, []proposed{}, plugin.CodeInvalidOutput, "steps"},
		"a step not on the whitelist":   {nil, []proposed{step, {"step_id": "s2", "action": "desk/other"}}, plugin.CodePolicyDenied, "desk/other"},
		"an action not on it":           {map[string]any{"required_actions": []any{map[string]any{"operator": "bank/pay"}}}, []proposed{step}, plugin.CodePolicyDenied, "bank/pay"},
		"other versions than allowed":   {nil, []proposed{{"step_id": "s1", "action": "desk/send@2.0.0"}}, plugin.CodePolicyDenied, "desk/send@2.0.0"},
		"an output and no suggestions":  {map[string]any{"kind": "next_step_suggestions"}, nil, plugin.CodeInvalidOutput, "suggestions"},
		"a step output that is missing": {map[string]any{"kind": "step_output"}, nil, plugin.CodeInvalidOutput, "step_output"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := r.submit(t, "", proposal(t, one.more, one.steps...))
			equal(t, "code", plugin.CodeOf(err), one.code)
			if err == nil || !strings.Contains(err.Error(), one.says) {
				t.Errorf("it does not say %q: %v", one.says, err)
			}
		})
	}
}

func TestWhatAnAgentProducesFitsItsOwnSchema(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	narrow, err := schema.Compile([]byte(`{"type":"object","required":["subject"]}`))
	if err != nil {
		t.Fatal(err)
	}
	target := *r.targets["desk/planner"]
	target.Output = narrow
	r.targets["desk/planner"] = &target
	output := func(data any) map[string]any {
		return map[string]any{"kind": "step_output", "step_output": data, "proposed_plan": map[string]any{"steps": []any{}}}
	}
	_, err = r.submit(t, "", proposal(t, output(map[string]any{"body": 1})))
	equal(t, "code", plugin.CodeOf(err), plugin.CodeInvalidOutput)
	v := r.must(t, "", proposal(t, output(map[string]any{"subject": "x"})))
	if v.ID != "" || !strings.Contains(string(v.Answer), `"subject":"x"`) {
		t.Errorf("%+v", v)
	}
	r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft"})) // a plan is not held against it
}

// Each of these is refused before anything runs, with its own code, and says
// which step.
func TestAPlanThatIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	draft := func(id string, more ...any) proposed {
		p := proposed{"step_id": id, "action": "desk/draft", "payload": r.say(id)}
		for i := 0; i < len(more); i += 2 {
			p[more[i].(string)] = more[i+1]
		}
		return p
	}
	ref := func(from, pointer string) map[string]any {
		return map[string]any{"data": []any{map[string]any{"$from": from, "pointer": pointer}}}
	}
	many := func(n int) (steps []proposed) {
		for i := range n {
			steps = append(steps, draft(fmt.Sprintf("s%d", i)))
		}
		return steps
	}
	for name, one := range map[string]struct {
		steps []proposed
		code  plugin.Code
		step  string
	}{
		"a cycle":                        {[]proposed{draft("a"), draft("b", "needs", []string{"c"}), draft("c", "needs", []string{"b"})}, plugin.CodeInvalidInput, "b, c"},
		"a step that needs itself":       {[]proposed{draft("a", "needs", []string{"a"})}, plugin.CodeInvalidInput, "step a"},
		"an unknown step in needs":       {[]proposed{draft("a", "needs", []string{"z"})}, plugin.CodeInvalidInput, "step a"},
		"an unknown step in a reference": {[]proposed{draft("a"), draft("b", "payload", ref("z", ""))}, plugin.CodeInvalidInput, "step b"},
		"a reference to a later step":    {[]proposed{draft("a", "payload", ref("b", "")), draft("b")}, plugin.CodeInvalidInput, "step a"},
		"a reference to itself":          {[]proposed{draft("a", "payload", ref("a", ""))}, plugin.CodeInvalidInput, "step a"},
		"a reference beside the path":    {[]proposed{draft("a", "needs", []string{}), draft("b", "needs", []string{}, "payload", ref("a", ""))}, plugin.CodeInvalidInput, "step b"},
		"a pointer that is none":         {[]proposed{draft("a"), draft("b", "payload", ref("a", "x"))}, plugin.CodeInvalidInput, "step b"},
		"a reference with more in it":    {[]proposed{draft("a"), draft("b", "payload", map[string]any{"data": map[string]any{"$from": "a", "path": "x"}})}, plugin.CodeInvalidInput, "step b"},
		"the same id twice":              {[]proposed{draft("a"), draft("a")}, plugin.CodeInvalidInput, "step a"},
		"an operation that is not there": {[]proposed{draft("a"), {"step_id": "b", "action": "desk/gone"}}, plugin.CodeNotFound, "step b"},
		"one that policy denies":         {[]proposed{draft("a"), {"step_id": "b", "action": "desk/secret"}}, plugin.CodePolicyDenied, "step b"},
		"an agent as a step":             {[]proposed{draft("a"), {"step_id": "b", "action": "desk/planner"}}, plugin.CodePolicyDenied, "step b"},
		"a payload that does not fit":    {[]proposed{draft("a"), draft("b", "payload", map[string]any{"say": 7})}, plugin.CodeInvalidInput, "step b"},
		"a number above 2^53":            {[]proposed{draft("a"), draft("b", "payload", map[string]any{"data": json.RawMessage("9007199254740993")})}, plugin.CodeInvalidInput, "step b"},
		"65 steps":                       {many(65), plugin.CodeLimitExceeded, "65 steps"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := r.submit(t, "", proposal(t, nil, one.steps...))
			equal(t, "code", plugin.CodeOf(err), one.code)
			if err == nil || !strings.Contains(err.Error(), one.step) {
				t.Errorf("it does not name %s: %v", one.step, err)
			}
		})
	}
	t.Cleanup(func() {
		equal(t, "lines", r.lines(t), "[]")
	})
}

// The ledger has what an agent says of its own randomness (kernel contracts, 5.2.4).
func TestRandomnessIsOnRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := r.submit(t, "", proposal(t, map[string]any{"randomness_disclosure": map[string]any{"model": "m-1", "temperature": 0.7}}, proposed{"step_id": "s1", "action": "desk/draft"})); err != nil {
		t.Fatal(err)
	}
	for e, err := range r.store.Entries(t.Context(), store.EntryFilter{Kind: "call.succeeded"}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Body), `"randomness_disclosure":{"model":"m-1","temperature":0.7}`) {
			return
		}
		t.Errorf("%s", e.Body)
	}
	t.Error("no call is on record")
}

func TestARefusedPlanIsOnRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, err := r.submit(t, "", proposal(t, map[string]any{"randomness_disclosure": map[string]any{"temperature": 0.7}}, proposed{"step_id": "s1", "action": "desk/secret"}))
	equal(t, "code", plugin.CodeOf(err), plugin.CodePolicyDenied)
	for e, err := range r.store.Entries(t.Context(), store.EntryFilter{Kind: "plan.refused"}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"policy_denied"`, `step s1`, `"temperature":0.7`, `"proposal_call":"0`} {
			if !strings.Contains(string(e.Body), want) {
				t.Errorf("it lacks %s: %s", want, e.Body)
			}
		}
		return
	}
	t.Error("there is no entry")
}

func TestAGateWithoutAnApprover(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.anyone = false
	_, err := r.submit(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft"}, proposed{"step_id": "s2", "action": "desk/send"}))
	equal(t, "code", plugin.CodeOf(err), plugin.CodeApprovalDenied)
	if err == nil || !strings.Contains(err.Error(), "step s2") {
		t.Errorf("%v", err)
	}
	v := r.must(t, "", proposal(t, nil, proposed{"step_id": "s1", "action": "desk/draft"})) // no gate, so no approver needed
	equal(t, "state", v.State, store.PlanQueued)
}

// The nth step of an operation gets the nth payload that was given for it; its
// own wins.
func TestWhereAPayloadComesFrom(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, map[string]any{"required_actions": []any{
		map[string]any{"operator": "desk/draft", "payload": map[string]any{"say": "first"}},
		map[string]any{"operator": "desk/fetch", "payload": map[string]any{"say": "fetch"}},
		map[string]any{"operator": "desk/draft", "payload": map[string]any{"say": "second"}},
	}},
		proposed{"step_id": "a", "action": "desk/draft"},
		proposed{"step_id": "b", "action": "desk/draft", "payload": map[string]any{"say": "own"}},
		proposed{"step_id": "c", "action": "desk/fetch"},
		proposed{"step_id": "d", "action": "desk/draft"},
	))
	var inputs []string
	for _, s := range v.Steps {
		inputs = append(inputs, string(s.Input))
	}
	equal(t, "inputs", inputs, `[{"say":"first"} {"say":"own"} {"say":"fetch"} {}]`)
	equal(t, "needs", fmt.Sprint(v.Steps[0].Needs, v.Steps[3].Needs), "[] [c]")
}

func TestStepsRunInTheOrderTheyNeed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	v := r.must(t, "", proposal(t, nil,
		proposed{"step_id": "last", "action": "desk/draft", "needs": []string{"first", "second"}, "payload": r.say("last")},
		proposed{"step_id": "second", "action": "desk/draft", "needs": []string{"first"}, "payload": r.say("second")},
		proposed{"step_id": "first", "action": "desk/draft", "needs": []string{}, "payload": r.say("first")},
	))
	equal(t, "state", r.run(t, v.ID).State, store.PlanSucceeded)
	equal(t, "lines", r.lines(t), "[first second last]")
}
