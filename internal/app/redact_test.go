package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/store"
)

// canaries are what no model may be sent, each with what a tool answers that has
// it inside.
var canaries = []struct{ canary, answer string }{
	{"AKIAABCDEFGHIJKLMNOP", `return "the key is AKIAABCDEFGHIJKLMNOP."`},
	{"AKIABBBBBBBBBBBBBBBB", `return {key: "AKIABBBBBBBBBBBBBBBB"}`},
	{"AKIACCCCCCCCCCCCCCCC", `return {a: [{b: {c: ["x AKIACCCCCCCCCCCCCCCC y"]}}]}`},
	{"AKIADDDDDDDDDDDDDDDD", `return {AKIADDDDDDDDDDDDDDDD: 1}`},
	{"AKIAEEEEEEEEEEEEEEEE", `return {body: JSON.stringify({inner: JSON.stringify({key: "AKIAEEEEEEEEEEEEEEEE"})})}`},
	{"AKIAFFFFFFFFFFFFFFFF", `throw new Error("401 for AKIAFFFFFFFFFFFFFFFF")`},
	{"hunter2345", `return {user: "ann", password: "hunter2345"}`},
	{"hunter3456", `return {body: '{"db_password": "hunter3456"}'}`},
	{"hunter4567", `return "export PASSWORD=hunter4567 and more"`},
	{"hunter5678", `throw new Error('config {"secret": "hunter5678"} was refused')`},
	{"AKIAGGGGGGGGGGGGGGGG", `return {text: "escaped \\u0041KIAGGGGGGGGGGGGGGGG"}`},
	{"MIIEowIBAAKCAQEA", `return "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA-x-\n-----END RSA PRIVATE KEY-----"`},
	{"AKIAHHHHHHHHHHHHHHHH", `return {log: "AKIAHHHHHHHHHHHHHHHH " + "z".repeat(90000)}`},
	{"AKIAIIIIIIIIIIIIIIII", `return ["_AKIAIIIIIIIIIIIIIIII_"]`},
}

// What a tool returns reaches no model with a secret in it, whatever it looks like
// and wherever it stands: the result, its error, the prompt, what the agent
// remembers, the wish for another tool, and the history of later turns.
func TestNoSecretThatAToolReturnedReachesAModel(t *testing.T) {
	t.Parallel()
	model := newTalker(t)
	a := agentHome(t, model, "")
	hire(t, a, "desk", agent.Settings{})
	report, err := a.Registry.Register(t.Context(), "../../plugins/hooks/redact-secrets", registry.RegisterOptions{Enable: true})
	if err != nil || len(report.Registered) != 1 || report.Registered[0].NotEnabled != nil {
		t.Fatalf("%+v, %v", report, err)
	}
	assign(t, a, store.EveryAgent, "redact-secrets", true)
	var tools strings.Builder
	for n, c := range canaries {
		fmt.Fprintf(&tools, "if (n === %d) { %s }\n", n, c.answer)
	}
	give(t, a, "desk", "leaky", `export function register(ctx) {
  ctx.tools.add({ name: "leak", description: "Look something up.", schema: { type: "object", properties: { n: { type: "integer" }, note: { type: "string" } } },
    handler: ({ n }) => { `+tools.String()+` } });
}`)
	if err := a.Store.Write(t.Context(), func(tx store.Tx) error {
		row, err := tx.Agent(t.Context(), "local", "desk")
		if err != nil {
			return err
		}
		row.Prompt = "You know AKIAPROMPTPROMPTPROM."
		_, err = tx.UpdateAgent(*row)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.Agents.Memory("local", "desk").Upsert(t.Context(), "", "leak", "look AKIAMEMORYMEMORYMEMO up", nil); err != nil {
		t.Fatal(err)
	}
	i, err := a.Agents.Instance(t.Context(), "local", "desk")
	if err != nil {
		t.Fatal(err)
	}
	c, err := i.Open(t.Context(), agent.Source{Channel: agent.Terminal, Kind: "cli", Peer: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	turn := func(text string, moves ...move) {
		t.Helper()
		model.say(moves...)
		if answer, err := i.Turn(t.Context(), c.SessionID, agent.Message{Text: text, From: theOwner, Asker: "os:1", Role: "owner"}, agent.Audience{}); err != nil || answer.Text != "done" {
			t.Fatalf("%+v, %v", answer, err)
		}
	}
	for n := range canaries {
		turn("look it up", move{tool: "leaky__leak", args: fmt.Sprintf(`{"n":%d,"note":"AKIAINPUTINPUTINPUTI"}`, n)}, move{text: "done"})
	}
	turn("and now?", move{text: "done"}) // all of the above is its history
	all := model.heard()
	if len(all) != 2*len(canaries)+1 {
		t.Fatalf("the model was asked %d times", len(all))
	}
	removed := 0
	for n, sent := range all {
		removed += strings.Count(sent, " removed]")
		for _, canary := range []string{"AKIA", "u0041KIA", "hunter", "MIIEowIBAAKCAQEA"} {
			if at := strings.Index(sent, canary); at >= 0 {
				t.Errorf("request %d has %s: …%s…", n, canary, sent[max(0, at-80):min(len(sent), at+80)])
			}
		}
	}
	if removed < 3*len(canaries) {
		t.Errorf("only %d secrets were removed in all", removed)
	}
}
