package adapter_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// TestTheThreeExamplesOfTheContract go from an event to a step that ran, in the
// name of who it is here.
func TestTheThreeExamplesOfTheContract(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, c := range []struct{ operation, example, provider, id, principal, scope, step string }{
		{"salesforce_case", "salesforce_case.created", "salesforce", "0055e000003SxPkAAK", "service::bot", "ticket:write", "Desk/resolve"},
		{"university_portal", "university_portal.accepted", "university_portal", "example-edu/stu-77", "ann", "", "Desk/update"},
		{"slack_mention", "slack_mention.question", "slack", "T061EG9R6/W021FGA1Z", "bob", "", "Desk/answer"},
	} {
		var scopes []string
		if c.scope != "" {
			scopes = []string{c.scope}
		}
		s.link(c.provider, c.id, c.principal, scopes...)
		v := s.must("Examples.Adapter/"+c.operation, s.example(c.example))
		who := principal.Parse(c.principal)
		if v.State != store.PlanQueued || v.Principal != who.Member() || len(v.Steps) != 1 || v.Steps[0].Operation != c.step || !slices.Equal(v.Labels, []string{plugin.Untrusted}) {
			t.Fatalf("%s: %+v", c.operation, v)
		}
		done, err := s.app.Plans.Run(t.Context(), "local", v.ID)
		if err != nil || done.State != store.PlanSucceeded {
			t.Fatalf("%s: %+v, %v", c.operation, done, err)
		}

		// Each call of the way: the adapter's, for who delivers; the agent's and
		// the step's, for who it is here, with the adapter acting.
		step, err := s.app.Ledger.Call(t.Context(), "local", done.Steps[0].CallID)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := s.app.Ledger.Call(t.Context(), "local", done.ProposalCall)
		if err != nil {
			t.Fatal(err)
		}
		for name, row := range map[string]*store.CallRow{"step": step, "agent": asked} {
			if row.Principal != who.Member() || row.Actor != "service:Examples.Adapter" || !slices.Equal(row.Labels, []string{plugin.Untrusted}) {
				t.Errorf("%s: the call of the %s: %+v", c.operation, name, row)
			}
		}
		if asked.Origin != string(plugin.OriginAdapter) {
			t.Errorf("%s: the agent was asked by %s", c.operation, asked.Origin)
		}
		translated := s.entries(plugin.EntryCallSucceeded)
		i := slices.IndexFunc(translated, func(body map[string]any) bool { return body["call_id"] == asked.Parent })
		if i < 0 || translated[i]["operation"] != "Examples.Adapter/"+c.operation || translated[i]["principal"] != "local:owner" || translated[i]["origin"] != "cli" {
			t.Errorf("%s: the adapter's call is not on record as it was made", c.operation)
		}
	}
	if left := s.entries(plugin.EntryDeliveryRefused); len(left) != 0 {
		t.Errorf("refused: %v", left)
	}
}

// TestAnEventDeliveredAgainIsTheSamePlan, from any sender, and many times at
// once.
func TestAnEventDeliveredAgainIsTheSamePlan(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.link("slack", "T061EG9R6/W021FGA1Z", "bob")
	first := s.must("Examples.Adapter/slack_mention", s.example("slack_mention.question"))
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			if v, err := s.deliver("Examples.Adapter/slack_mention", s.example("slack_mention.question")); err != nil || v.ID != first.ID || !v.Replayed {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	others.Wait()
	if n := len(s.entries(plugin.EntryPlanProposed)); n != 1 {
		t.Errorf("%d plans", n)
	}
	// Concurrent deliveries of a new event make one plan, whatever the length of
	// the key.
	s.link("phone", "7", "bob")
	long := s.says(map[string]any{"idempotency_key": strings.Repeat("k", 255)})
	ids := make([]string, 4)
	for i := range ids {
		others.Go(func() {
			if v, err := s.deliver("Desk/says", long); err != nil {
				t.Error(err)
			} else {
				ids[i] = v.ID
			}
		})
	}
	others.Wait()
	if n := len(s.entries(plugin.EntryPlanProposed)); n != 2 || len(slices.Compact(ids)) != 1 {
		t.Errorf("%d plans: %v", n, ids)
	}
	// Another event is another plan, one without a key always.
	other := s.must("Examples.Adapter/slack_mention", strings.Replace(s.example("slack_mention.question"), "Ev0MDYGDKJ", "Ev0MDYGDKK", 1))
	third, fourth := s.must("Desk/says", s.says(nil)), s.must("Desk/says", s.says(nil))
	if ids = slices.Compact(slices.Sorted(slices.Values([]string{first.ID, other.ID, third.ID, fourth.ID}))); len(ids) != 4 {
		t.Errorf("%v", ids)
	}
	// A caller's own key is not an event's, and one adapter's not another's.
	keyed := map[string]any{"idempotency_key": "k 1"}
	mine, err := s.app.Plans.Submit(t.Context(), plan.Submission{
		Tenant: "local", Principal: owner, Agent: "Desk/triage", Key: "Desk/says:k 1", Origin: plugin.OriginCLI,
		Input: json.RawMessage(`{"intent":{"type":"Support.QA.Answer","payload":{"question":"why"}}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := s.must("Desk/says", s.says(keyed)); v.ID == mine.ID || v.Replayed {
		t.Errorf("the event got the caller's plan")
	}
	// What is another request under the same key is a conflict.
	keyed["context"] = map[string]any{"more": 1}
	if _, err := s.deliver("Desk/says", s.says(keyed)); plugin.CodeOf(err) != plugin.CodeKeyConflict {
		t.Errorf("%v", err)
	}
}

// TestAnUnlinkedSenderIsRefused: unknown, linked elsewhere, unlinked meanwhile.
func TestAnUnlinkedSenderIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	event := s.example("slack_mention.question")
	s.refused("Examples.Adapter/slack_mention", event, plugin.CodeMissingIdentity, "mortise identities link slack T061EG9R6/W021FGA1Z PRINCIPAL")
	s.link("slack", "T061EG9R6/W021FGA1Y", "bob")
	s.link("Slack", "T061EG9R6/W021FGA1Z", "bob")
	s.link("salesforce", "T061EG9R6/W021FGA1Z", "bob")
	s.refused("Examples.Adapter/slack_mention", event, plugin.CodeMissingIdentity, "is linked to no principal of this host")
	s.refused("Desk/says", s.says(map[string]any{"principal": map[string]any{"provider": "phone", "external_id": "7'; rm -rf $HOME"}}),
		plugin.CodeMissingIdentity, `mortise identities link phone '7'\''; rm -rf $HOME' PRINCIPAL`)
	s.refused("Desk/says", s.says(map[string]any{"principal": map[string]any{"provider": "phone\x00", "external_id": "7"}}), plugin.CodeMissingIdentity, `"phone\x00"`)

	last := s.entries(plugin.EntryDeliveryRefused)
	if len(last) != 4 || last[2]["provider"] != "slack" || last[2]["external_id"] != "T061EG9R6/W021FGA1Z" || last[2]["intent"] != "Support.QA.Answer" ||
		last[2]["code"] != "missing_identity" || last[2]["call"] == "" {
		t.Errorf("%v", last)
	}

	s.link("slack", "T061EG9R6/W021FGA1Z", "bob")
	if _, err := s.app.As(owner).Identities().Unlink(t.Context(), "slack", "T061EG9R6/W021FGA1Z"); err != nil {
		t.Fatal(err)
	}
	s.refused("Examples.Adapter/slack_mention", event, plugin.CodeMissingIdentity, "is linked to no principal of this host")
	s.link("slack", "T061EG9R6/W021FGA1Z", "bob")
	if v := s.must("Examples.Adapter/slack_mention", event); v.Principal != "bob" {
		t.Errorf("%+v", v)
	}
	// A redelivery is no way round it either.
	if _, err := s.app.As(owner).Identities().Unlink(t.Context(), "slack", "T061EG9R6/W021FGA1Z"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.deliver("Examples.Adapter/slack_mention", event); plugin.CodeOf(err) != plugin.CodeMissingIdentity {
		t.Errorf("%v", err)
	}
}

// TestALinkBelongsToOneAdapter: another adapter that names the same provider
// and the same user gets no principal, and so does every adapter if the link
// names none; the refusal names the link that it would need.
func TestALinkBelongsToOneAdapter(t *testing.T) {
	t.Parallel()
	s := open(t)
	claim := s.says(map[string]any{"principal": map[string]any{"provider": "slack", "external_id": "T061EG9R6/W021FGA1Z"}})
	for _, adapter := range []string{"Examples.Adapter", "", "Desk2", "desk"} {
		if _, err := s.app.As(owner).Identities().For(adapter).Link(s.Context(), "slack", "T061EG9R6/W021FGA1Z", "bob", "*"); err != nil {
			t.Fatal(err)
		}
		s.refused("Desk/says", claim, plugin.CodeMissingIdentity, "PRINCIPAL --adapter Desk --scope")
	}
	last := s.entries(plugin.EntryDeliveryRefused)
	if len(last) != 4 || last[0]["adapter"] != "Desk/says" || last[0]["provider"] != "slack" {
		t.Errorf("%v", last)
	}
	if _, err := s.app.As(owner).Identities().For("Desk").Link(s.Context(), "slack", "T061EG9R6/W021FGA1Z", "bob"); err != nil {
		t.Fatal(err)
	}
	if v := s.must("Desk/says", claim); v.Principal != "bob" {
		t.Errorf("%+v", v)
	}
}

// TestAPrincipalNoLongerConfiguredIsRefused: the configuration does not name the principal any more,
// and the link alone does not restore it.
func TestAPrincipalNoLongerConfiguredIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.link("slack", "T061EG9R6/W021FGA1Z", "bob")
	path := filepath.Join(s.app.Home, "mortise.yaml")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), "bob, ", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.reopen(s.app.Home)
	s.refused("Examples.Adapter/slack_mention", s.example("slack_mention.question"), plugin.CodeMissingIdentity, "is linked to bob, whom mortise.yaml no longer names")
}

// TestNoAdminByAdapter: whatever the deliverer and the person may, what comes in
// that way has the scopes of the link.
func TestNoAdminByAdapter(t *testing.T) {
	t.Parallel()
	s := open(t)
	event := s.example("salesforce_case.created")
	for _, scopes := range [][]string{nil, {"ticket:read"}, {"ticket:writ", "TICKET:WRITE", "ticket:*"}} {
		s.link("salesforce", "0055e000003SxPkAAK", "local:owner", scopes...)
		s.refused("Examples.Adapter/salesforce_case", event, plugin.CodeScopeDenied, "asks for the permission ticket:write")
	}
	if refused := s.entries(plugin.EntryPlanRefused); len(refused) != 3 {
		t.Errorf("%v", refused)
	}
	s.link("salesforce", "0055e000003SxPkAAK", "local:owner", "*")
	if v := s.must("Examples.Adapter/salesforce_case", event); len(v.Steps) != 1 || v.Replayed { // what was refused made no plan
		t.Errorf("%+v", v)
	}
}

// TestPolicyIsAskedAboutTheAdapterToo: what the person may is not enough, for
// the agent and for each step.
func TestPolicyIsAskedAboutTheAdapterToo(t *testing.T) {
	t.Parallel()
	const rules = routes + `
policy:
  groups: {staff: [ann]}
  allow:
    - {kinds: [adapter]}
    - {operations: [Desk/triage], principals: [%AGENT%]}
    - {operations: [Desk/update], principals: [%STEP%]}
`
	for name, c := range map[string]struct {
		agent, step string
		denied      bool
	}{
		"both":                                  {`ann, "service::Examples.Adapter"`, `ann, "service::Examples.Adapter"`, false},
		"the adapter may not ask the agent":     {`ann`, `ann, "service::Examples.Adapter"`, true},
		"the adapter may not take the step":     {`ann, "service::Examples.Adapter"`, `ann`, true},
		"the person may not ask the agent":      {`"service::Examples.Adapter"`, `ann, "service::Examples.Adapter"`, true},
		"the person may not take the step":      {`ann, "service::Examples.Adapter"`, `"service::Examples.Adapter"`, true},
		"who delivers may, and neither of them": {`"local:owner"`, `"local:owner"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openConfigured(t, strings.NewReplacer("%AGENT%", c.agent, "%STEP%", c.step).Replace(rules))
			s.link("university_portal", "example-edu/stu-77", "ann", "*")
			event := s.example("university_portal.accepted")
			if c.denied {
				v, err := s.deliver("Examples.Adapter/university_portal", event)
				if code := plugin.CodeOf(err); code != plugin.CodePolicyDenied && code != plugin.CodeNotFound { // an operation that the principal may not see is not found
					t.Errorf("%+v, %v", v, err)
				}
				if n := len(s.entries(plugin.EntryPlanProposed)); n != 0 {
					t.Errorf("%d plans", n)
				}
				return
			}
			v := s.must("Examples.Adapter/university_portal", event)
			if done, err := s.app.Plans.Run(t.Context(), "local", v.ID); err != nil || done.State != store.PlanSucceeded {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
}

// TestEffectsOfEventsAskAPerson, because what comes from outside is untrusted;
// where a policy says that it may be, they do not.
func TestEffectsOfEventsAskAPerson(t *testing.T) {
	t.Parallel()
	for untrusted, want := range map[string]store.PlanState{"": store.PlanPending, ", untrusted: allow": store.PlanQueued} {
		s := openConfigured(t, routes+`
policy:
  groups: {staff: [ann]}
  allow:
    - {kinds: [agent, adapter]}
    - {kinds: [operator], effects: [desk_write]`+untrusted+`}
`)
		s.link("phone", "7", "ann")
		v := s.must("Desk/says", s.says(map[string]any{"intent": map[string]any{"type": "Desk.Tell", "payload": map[string]any{"text": "x"}}}))
		if v.State != want || (v.Steps[0].Gate == plan.GateHumanApply) != (untrusted == "") {
			t.Errorf("with %q: %s, %+v", untrusted, v.State, v.Steps)
		}
	}
}

// TestWhoDeliversMustBeAllowedTo call the adapter.
func TestWhoDeliversMustBeAllowedTo(t *testing.T) {
	t.Parallel()
	s := openConfigured(t, routes+`
policy:
  groups: {staff: [bob]}
  allow:
    - {kinds: [tool, agent]}
    - {kinds: [adapter], principals: [bob]}
`)
	s.link("slack", "T061EG9R6/W021FGA1Z", "bob")
	_, err := s.deliver("Examples.Adapter/slack_mention", s.example("slack_mention.question"))
	if code := plugin.CodeOf(err); code != plugin.CodePolicyDenied && code != plugin.CodeNotFound {
		t.Errorf("%v", err)
	}
}

// TestIntentsGoToTheConfiguredAgent, and where there is none the error says which
// key would change that.
func TestIntentsGoToTheConfiguredAgent(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.link("phone", "7", "bob")
	intent := func(kind string) map[string]any {
		return map[string]any{"intent": map[string]any{"type": kind, "payload": map[string]any{"says": map[string]any{}}}}
	}
	s.refused("Desk/says", s.says(intent("Billing.Refund")), plugin.CodeNotFound, `intents: {"Billing.Refund": AGENT}`)
	s.refused("Desk/says", s.says(intent("Admission.Application.Other")), plugin.CodeNotFound, "no agent is asked")
	if v := s.must("Desk/says", s.says(intent("Support.Other"))); v.ID != "" || !strings.Contains(string(v.Answer), "What is meant?") {
		t.Errorf("an answer that is no plan: %+v", v)
	}
	// An adapter is no step: an event that brings forth events would never end.
	s.refused("Desk/says", s.says(intent("Desk.Translate")), plugin.CodePolicyDenied, "Desk/says is an adapter; the steps of a plan are operators and tools")
}

// TestOnlyAdaptersTakeEvents, and only events that fit.
func TestOnlyAdaptersTakeEvents(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, ref := range []string{"Desk/answer", "Desk/resolve", "Desk/triage"} {
		s.refused(ref, `{}`, plugin.CodeInvalidInput, "events are delivered to adapters")
	}
	s.refused("Missing/adapter", `{}`, plugin.CodeNotFound, "Missing")
	s.refused("Examples.Adapter/slack_mention", `{"type":"event_callback"}`, plugin.CodeInvalidInput, "input")
	s.refused("Examples.Adapter/slack_mention", `[1]`, plugin.CodeInvalidInput, "input")
	s.refused("Desk/says", `{"says":{"x":"`+strings.Repeat("x", 5<<20)+`"}}`, plugin.CodeInputTooLarge, "5242")
	if calls, deliveries := s.entries(plugin.EntryCallRefused), s.entries(plugin.EntryDeliveryRefused); len(calls) != 4 || len(deliveries) != 3 {
		t.Errorf("%d and %d refusals are on record", len(calls), len(deliveries))
	}
}

// TestAnAdapterActsThroughOperatorsAlone: in a real host, it gets nothing else.
func TestAnAdapterActsThroughOperatorsAlone(t *testing.T) {
	t.Parallel()
	s := open(t)
	for operation, c := range map[string]struct {
		input string
		code  plugin.Code
	}{
		"Desk/update":  {`{"application_id":"1","status":"x"}`, ""},
		"Desk/resolve": {`{"ticket_id":"1"}`, plugin.CodeScopeDenied},
		"Desk/answer":  {`{"question":"why"}`, plugin.CodeServiceDenied},
		"Desk/triage":  {`{"intent":{"type":"Support.QA.Answer","payload":{}}}`, plugin.CodeServiceDenied},
		"Desk/says":    {`{"says":{}}`, plugin.CodeServiceDenied},
		"Desk/nothing": {`{}`, plugin.CodeNotFound},
		"Other/thing":  {`{}`, plugin.CodeServiceDenied},
	} {
		_, err := s.app.Kernel.Call(t.Context(), plugin.Call{
			Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "ann"}, Origin: plugin.OriginCLI, Operation: "Desk/asks",
			Input: json.RawMessage(`{"operation":"` + operation + `","input":` + c.input + `}`),
		})
		var failed *plugin.Error // of the adapter, which passes on what it was told
		if (err == nil) != (c.code == "") || err != nil && (!errors.As(err, &failed) || failed.PluginCode != string(c.code)) {
			t.Errorf("%s: %v; want %q", operation, err, c.code)
		}
	}
	if refused := s.entries(plugin.EntryServiceRefused); len(refused) != 4 {
		t.Errorf("%d refusals are on record", len(refused))
	}
}
