package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// TestTheActorMustBeAllowedToo: of the principal and of the agent or service
// that acts for it the stricter verdict holds.
func TestTheActorMustBeAllowedToo(t *testing.T) {
	t.Parallel()
	e := open(t, policy.Options{Sources: texts(`
@id("ann") permit (principal == User::"ann", action, resource);
@id("gated") @approval permit (principal == User::"bob", action, resource);
@id("planner") permit (principal == Agent::"planner", action, resource);
@id("staff") permit (principal in Group::"staff", action, resource);
@id("no_wipe") forbid (principal is Agent, action, resource in Plugin::"disk");
@id("consent") forbid (principal, action, resource is Operation) when { resource.effects.contains("send") } unless { context.consent.contains("send") };
`), Standing: func(_ string, who plugin.Principal) policy.Standing {
		switch {
		case who.Type == "service" && who.ID == "robot":
			return policy.Standing{Groups: []string{"staff"}}
		case who.ID == "ann":
			return policy.Standing{Consent: []string{"send"}}
		}
		return policy.Standing{}
	}})
	text, disk, mail := target("text", "count", plugin.Tool), target("disk", "wipe", plugin.Operator), target("mail", "send", plugin.Operator, "send")
	for _, c := range []struct {
		who, actor string
		target     *plugin.Target
		want       plugin.Verdict
		reasons    []string
	}{
		{"ann", "", text, plugin.Allow, []string{"a.cedar:2 ann"}},
		{"ann", "agent:planner", text, plugin.Allow, []string{"for ann: a.cedar:2 ann", "for the acting agent::planner: a.cedar:4 planner"}},
		{"ann", "service:robot", text, plugin.Allow, []string{"for ann: a.cedar:2 ann", "for the acting service::robot: a.cedar:5 staff"}},
		{"ann", "agent:robot", text, plugin.Deny, []string{`for the acting agent::robot: no rule lets agent::robot run text/count, a tool; to allow it, add {operations: ["text/count"]} to policy.allow in mortise.yaml`}},
		{"carl", "agent:planner", text, plugin.Deny, []string{`for carl: no rule lets carl run text/count, a tool; to allow it, add {operations: ["text/count"]} to policy.allow in mortise.yaml`}},
		{"bob", "agent:planner", text, plugin.AllowWithApproval, []string{"for bob: a.cedar:3 gated asks for approval"}},
		{"ann", "agent:planner", disk, plugin.Deny, []string{"for the acting agent::planner: a.cedar:6 no_wipe forbids it"}},
		{"ann", "plugin:disk", disk, plugin.Allow, []string{"a.cedar:2 ann"}}, // no principal
		{"ann", "agent:", text, plugin.Allow, nil},
		{"ann", "user:carl", text, plugin.Allow, nil},
		{"ann", "agent:planner", mail, plugin.Allow, nil}, // consent is the person's
		{"planner", "agent:planner", text, plugin.Deny, nil},
	} {
		call := &plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: "user", ID: c.who}, Actor: c.actor}
		q := &policy.Question{Target: c.target, Call: call}
		d := e.Ask(q)
		if d.Verdict != c.want || c.reasons != nil && fmt.Sprint(d.Reasons) != fmt.Sprint(c.reasons) {
			t.Errorf("%s by %s, %s: got %s %q, want %s %q", c.who, c.actor, c.target.Name(), d.Verdict, d.Reasons, c.want, c.reasons)
		}
		x := e.Explain(q)
		if x.Verdict != d.Verdict || fmt.Sprint(x.Reasons) != fmt.Sprint(d.Reasons) {
			t.Errorf("%s by %s: explained as %s %q", c.who, c.actor, x.Verdict, x.Reasons)
		}
		if x.Acting != nil && !strings.Contains(x.String(), "of these, for the actor:\n") {
			t.Errorf("%s", x)
		}
	}
	own := &plugin.Call{Principal: plugin.Principal{Type: "agent", ID: "planner"}, Actor: "agent:planner"}
	if d := e.Decide(text, own); d.Verdict != plugin.Allow || d.Reasons[0] != "a.cedar:4 planner" {
		t.Errorf("an agent that acts for itself: %+v", d)
	}
}
