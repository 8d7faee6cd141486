package policy_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	e := open(t, policy.Options{Sources: texts(`
@id("text") permit (principal, action == Action::"execute", resource in Plugin::"text");
@id("mail") permit (principal in Role::"sender", action == Action::"execute", resource == Operation::"mail/send")
when { context.scopes.contains("mail") && context.input has to && context.input.to like "*@example.com" }
unless { context.depth > 2 };
@id("disk") @approval("disks do not grow back") permit (principal, action == Action::"execute", resource in Plugin::"disk");
@id("quiet") @reason("it is night") forbid (principal, action == Action::"execute", resource == Operation::"text/shout");
@id("limit") forbid (principal, action == Action::"execute", resource in Plugin::"disk") when { context.input has n && context.input.n > 3 };
`)})
	for _, c := range []struct {
		target *plugin.Target
		input  string
		want   plugin.Verdict
		says   []string
	}{
		{target("text", "count", plugin.Tool), "", plugin.Allow, []string{`allow: User::"ann" may execute Operation::"text/count"`, "\n  a.cedar:2 text\n"}},
		{target("disk", "wipe", plugin.Operator), "", plugin.AllowWithApproval, []string{"may, once a person agrees, execute", "a.cedar:6 disk asks for approval: disks do not grow back"}},
		{target("text", "shout", plugin.Tool), "", plugin.Deny, []string{"a.cedar:7 quiet forbids it: it is night", "a.cedar:2 text would allow it, but a denial wins"}},
		{target("disk", "wipe", plugin.Operator), `{"n": "x"}`, plugin.Deny, []string{"a.cedar:8 limit could not be evaluated", "a.cedar:6 disk would allow it, but a denial wins"}},
		{target("mail", "send", plugin.Operator), `{"to": "a@b"}`, plugin.Deny, []string{"no rule lets ann run mail/send", "a.cedar:3 mail would allow it, if this were so:\n" +
			"      principal in Role::\"sender\"\n      context.scopes.contains(\"mail\")\n      context.input.to like \"*@example.com\"\n"}},
	} {
		q := &policy.Question{Target: c.target, Call: &plugin.Call{Principal: plugin.Principal{ID: "ann"}, Input: []byte(c.input)}}
		x := e.Explain(q)
		if x.Verdict != c.want || x.Verdict != e.Ask(q).Verdict || x.Policies != 5 {
			t.Errorf("%s: %+v", c.target.Name(), x)
		}
		for _, want := range c.says {
			if !strings.Contains(x.String(), want) {
				t.Errorf("%s lacks %q:\n%s", c.target.Name(), want, x)
			}
		}
	}
}

func TestExplainNamesScopesThatAreMissing(t *testing.T) {
	t.Parallel()
	e := open(t, policy.Options{Sources: texts(permitAll)})
	of := target("mail", "send", plugin.Operator)
	of.Operation.Permissions = []string{"a", "b"}
	x := e.Explain(&policy.Question{Target: of, Call: &plugin.Call{Principal: plugin.Principal{ID: "ann", Scopes: []string{"a"}}}})
	if len(x.MissingScopes) != 1 || !strings.Contains(x.String(), "refused before policy is asked: the principal lacks b") {
		t.Errorf("%s", x)
	}
	if x.Permits[0].Text == "" || x.Permits[0].Line != 1 || x.Permits[0].ID != "all" {
		t.Errorf("%+v", x.Permits)
	}
}
