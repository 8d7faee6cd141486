package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// A setting for all agents also applies to agents that are created later, a
// setting of one agent takes precedence, and a deleted plugin is assigned to no
// agent (HK-09).
func TestWhatAllAgentsHaveReachesLaterOnes(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	r := a.As(a.Principal).Agents()
	give(t, a, "noone", "orders", lookup)
	create := func(id string) {
		t.Helper()
		if _, err := r.Create(t.Context(), host.NewAgent{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	say := func(id, name string, enabled bool) {
		t.Helper()
		if _, err := r.Assign(t.Context(), name, id, enabled); err != nil {
			t.Fatal(err)
		}
	}
	may := func(id string, want bool) {
		t.Helper()
		call := plugin.Call{Tenant: "local", Principal: a.Principal, Agent: id, Origin: plugin.OriginAgent, Operation: "orders/find", Input: []byte(`{"customer":"ann"}`)}
		if _, err := a.Kernel.Call(t.Context(), call); (err == nil) != want {
			t.Errorf("%s called orders/find: %v, want it to: %t", id, err, want)
		}
	}
	create("early")
	create("night")
	say(store.EveryAgent, "orders", true)
	say("night", "orders", false)
	create("later")
	may("early", true)
	may("night", false)
	may("later", true)
	say("early", "orders", true)
	say(store.EveryAgent, "orders", false)
	may("early", true)
	may("later", false)

	if _, err := a.As(a.Principal).Plugins().Delete(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	rows, err := a.Store.Assignments(t.Context(), "local")
	if err != nil || slices.ContainsFunc(rows, func(row store.AssignmentRow) bool { return row.Subject != "noone" || row.Plugin == "orders" }) {
		t.Errorf("after it was deleted: %+v, %v", rows, err)
	}
	if _, err := r.Assign(t.Context(), "orders", "early", true); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("a plugin that is gone: %v", err)
	}
}

// Agents are for those who may configure them; to be given a plugin takes the
// right to configure that too. Each refusal is on the record.
func TestWhoMayChangeAgents(t *testing.T) {
	t.Parallel()
	model := newTalker(t, move{text: "Good morning."})
	home := modelHome(t, model.URL, `
policy:
  files: [policies]
`)
	write(t, home, "policies/agents.cedar", `
@id("tools") permit (principal, action == Action::"execute", resource) when { resource.kind == "tool" };
@id("keeper") permit (principal == User::"kay", action == Action::"configure", resource == Plugin::"mortise.agents");
@id("author") permit (principal == User::"art", action == Action::"configure", resource == Plugin::"orders");
@id("talks") permit (principal == User::"tom", action == Action::"execute", resource == Operation::"agent.chat/turn");
@id("acts") permit (principal is Agent, action == Action::"execute", resource == Operation::"agent.chat/turn");
`)
	a := open(t, home)
	give(t, a, "noone", "orders", lookup)
	who := func(id string) host.Agents {
		return a.As(plugin.Principal{Type: "user", ID: id, Scopes: []string{"*"}}).Agents()
	}
	if _, err := who("kay").Create(t.Context(), host.NewAgent{ID: "desk", Prompt: "You help."}); err != nil {
		t.Fatal(err)
	}
	refused := map[string]error{}
	_, refused["art creates"] = who("art").Create(t.Context(), host.NewAgent{ID: "door"})
	_, refused["art assigns"] = who("art").Assign(t.Context(), "orders", "desk", true)
	_, refused["kay assigns"] = who("kay").Assign(t.Context(), "orders", "desk", true)
	_, refused["tom lists"] = who("tom").List(t.Context())
	_, refused["tom shows"] = who("tom").Show(t.Context(), "desk")
	_, refused["tom changes"] = who("tom").Change(t.Context(), "desk", host.AgentChange{Prompt: new("You rob.")})
	_, refused["tom deletes"] = who("tom").Delete(t.Context(), "desk")
	refused["tom writes"] = who("tom").Remember(t.Context(), "desk", "a", "b")
	_, refused["art talks"] = who("art").Talk(t.Context(), "desk", "", false)
	for what, err := range refused {
		if plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("%s: %v", what, err)
		}
	}
	talk, err := who("tom").Talk(t.Context(), "desk", "", false)
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := talk.Turn(t.Context(), "Good morning", agent.Audience{}); err != nil || answer.Text != "Good morning." {
		t.Errorf("%+v, %v", answer, err)
	}
	if _, err := who("kay").Talk(t.Context(), "desk", talk.Session, false); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("a conversation of another principal: %v", err)
	}
	kinds := map[plugin.EntryKind]int{}
	for e, err := range a.Store.Entries(t.Context(), store.EntryFilter{Tenant: "local"}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(e.Kind), "agent.") {
			kinds[e.Kind]++
		}
	}
	// Of the two who may not give a plugin one lacks the right to the plugin, which
	// is on the record as that. The conversation of another is refused besides.
	if kinds[plugin.EntryAgentRefused] != len(refused) || kinds[plugin.EntryAgentCreated] != 1 || len(kinds) != 2 {
		t.Errorf("the ledger has %v", kinds)
	}
}
