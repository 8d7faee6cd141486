package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

const trustAll = "@id(\"trust\") @untrusted(\"allow\") permit (principal, action, resource);\n"

// TestAnEffectWithUntrustedArgumentsAsksAPerson, unless policy says otherwise.
func TestAnEffectWithUntrustedArgumentsAsksAPerson(t *testing.T) {
	t.Parallel()
	send, read := target("mail", "send", plugin.Operator, "gmail_send", "db_write"), target("mail", "read", plugin.Tool)
	for _, c := range []struct {
		name, text string
		target     *plugin.Target
		labels     []string
		want       plugin.Verdict
		reasons    []string
	}{
		{"nothing untrusted", permitAll, send, []string{"private"}, plugin.Allow, []string{"a.cedar:1 all"}},
		{"untrusted", permitAll, send, []string{"private", "untrusted"}, plugin.AllowWithApproval,
			[]string{"a.cedar:1 all allows it; but an argument is untrusted and it has the effects gmail_send, db_write, so a person is asked"}},
		{"untrusted, without effects", permitAll, read, []string{"untrusted"}, plugin.Allow, []string{"a.cedar:1 all"}},
		{"policy says otherwise", trustAll, send, []string{"untrusted"}, plugin.Allow, []string{"a.cedar:1 trust allows it with untrusted arguments too"}},
		{"one of two permits says otherwise", permitAll + trustAll, send, []string{"untrusted"}, plugin.Allow, []string{"a.cedar:2 trust allows it with untrusted arguments too"}},
		{"what says otherwise does not match", permitAll + strings.Replace(trustAll, "resource)", "resource == Operation::\"mail/read\")", 1), send, []string{"untrusted"}, plugin.AllowWithApproval, nil},
		{"what says otherwise, nothing untrusted", trustAll, send, nil, plugin.Allow, []string{"a.cedar:1 trust"}},
		{"a gate stays a gate", approveAll + trustAll, send, []string{"untrusted"}, plugin.AllowWithApproval, []string{"a.cedar:1 gate asks for approval: look twice"}},
		{"a forbid stays a forbid", trustAll + "forbid (principal, action, resource);", send, []string{"untrusted"}, plugin.Deny, []string{"a.cedar:2 forbids it"}},
		{"nothing allows it", "", send, []string{"untrusted"}, plugin.Deny, nil},
		{"policy may be stricter", trustAll + "forbid (principal, action, resource) when { context.labels.contains(\"untrusted\") };", send, []string{"untrusted"}, plugin.Deny, nil},
	} {
		e := open(t, policy.Options{Sources: texts(c.text)})
		q := &policy.Question{Target: c.target, Call: &plugin.Call{Principal: plugin.Principal{ID: "ann"}, Labels: c.labels}}
		d := e.Ask(q)
		if d.Verdict != c.want || c.reasons != nil && fmt.Sprint(d.Reasons) != fmt.Sprint(c.reasons) {
			t.Errorf("%s: got %s %q, want %s %q", c.name, d.Verdict, d.Reasons, c.want, c.reasons)
		}
		if x := e.Explain(q); x.Verdict != d.Verdict || fmt.Sprint(x.Reasons) != fmt.Sprint(d.Reasons) {
			t.Errorf("%s: explained as %s %q", c.name, x.Verdict, x.Reasons)
		}
		for _, action := range []policy.Action{policy.List, policy.Approve} { // to see it, or to agree to it, is no effect
			if d := e.Ask(&policy.Question{Action: action, Target: c.target, Call: q.Call}); c.text == permitAll && d.Verdict != plugin.Allow {
				t.Errorf("%s: %s is %s", c.name, action, d.Verdict)
			}
		}
	}
}

func TestARuleCanTrustArguments(t *testing.T) {
	t.Parallel()
	e, err := policy.New([]policy.Rule{{Operations: []string{"mail/send", "post/*"}, Effects: []string{"*"}, Untrusted: "allow"}, {Effects: []string{"*"}}})
	if err != nil {
		t.Fatal(err)
	}
	for plugins, want := range map[string]plugin.Verdict{"mail": plugin.Allow, "post": plugin.Allow, "disk": plugin.AllowWithApproval} {
		d := e.Decide(target(plugins, "send", plugin.Operator, "x"), &plugin.Call{Labels: []string{plugin.Untrusted}})
		if d.Verdict != want || want == plugin.Allow && d.Reasons[0] != "policy.allow, rule 1 allows it with untrusted arguments too" {
			t.Errorf("%s: %+v", plugins, d)
		}
	}
	if _, err := policy.New([]policy.Rule{{Untrusted: "yes"}}); err == nil || !strings.Contains(err.Error(), `rule 1: untrusted is "yes"; it is "allow", or not written`) {
		t.Error(err)
	}
}
