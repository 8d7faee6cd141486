package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// FuzzPolicies reads anything as a set of policies. What is refused has a place
// in the text; what is taken decides without a panic, and prints as policies
// that decide the same.
func FuzzPolicies(f *testing.F) {
	examples, err := filepath.Glob("../../../docs/examples/policies/*.cedar")
	if err != nil || len(examples) == 0 {
		f.Fatal("there are no examples")
	}
	for _, path := range examples {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text), `{}`)
	}
	f.Add(trustAll+permitAll, `{}`)
	f.Add(permitAll+forbidSend+approveAll+failing, `{"amount": 3}`)
	f.Add(`permit (principal is User in Group::"g", action in [Action::"list"], resource) when { if true then {a: 1}.a == 1 else [1].contains(2) };`, `{"a": [1, {"b": null}]}`)
	f.Add(`permit (principal, action, resource) when { context.input has a.b && context.input.a.b.lessThan(decimal("1.0")) };`, `{"a": {"b": 0.5}}`)
	f.Fuzz(func(t *testing.T, text, input string) {
		hung := time.AfterFunc(time.Minute, func() { panic(text) })
		defer hung.Stop()
		document := policy.Document{Name: "a.cedar", Text: []byte(text)}
		_, err := policy.Check([]policy.Document{document})
		if err != nil {
			for _, p := range err.(policy.Problems) {
				if p.File != "a.cedar" || p.Line < 1 || p.Column < 1 || p.Message == "" {
					t.Errorf("%+v", p)
				}
			}
			return
		}
		e := open(t, policy.Options{Sources: texts(text)})
		q := &policy.Question{Target: target("mail", "send", plugin.Operator, "gmail_send"), Call: &plugin.Call{
			Tenant: "t", Principal: plugin.Principal{ID: "ann", Scopes: []string{"a"}}, Input: json.RawMessage(input),
			Actor: "agent:planner", Labels: []string{plugin.Untrusted},
		}}
		x := e.Explain(q)
		if d := e.AskAll(q); d.Verdict != x.Verdict {
			t.Fatalf("%s by the index, %s without it", x.Verdict, d.Verdict)
		}
		again := open(t, policy.Options{Sources: texts(e.Text())})
		if d := again.Ask(q); d.Verdict != x.Verdict {
			t.Fatalf("%s, and %s once printed:\n%s", x.Verdict, d.Verdict, e.Text())
		}
	})
}
