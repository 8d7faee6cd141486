package policy_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

func TestSilenceDenies(t *testing.T) {
	t.Parallel()
	count := target("text.count", "words", plugin.Tool)
	mail := target("mail", "send", plugin.Operator, "gmail_send")
	wipe := target("disk", "wipe", plugin.Operator, "db_write", "s3_final_write")
	for _, c := range []struct {
		name   string
		rules  []policy.Rule
		target *plugin.Target
		want   plugin.Verdict
	}{
		{"no rules", nil, count, plugin.Deny},
		{"the default and a tool", policy.Default, count, plugin.Allow},
		{"the default and an operator", policy.Default, mail, plugin.Deny},
		{"an operator without its effect", []policy.Rule{{Operations: []string{"mail/send"}}}, mail, plugin.Deny},
		{"an operator with its effect", []policy.Rule{{Operations: []string{"mail/send"}, Effects: []string{"gmail_send"}}}, mail, plugin.Allow},
		{"one effect of two", []policy.Rule{{Effects: []string{"db_write"}}}, wipe, plugin.Deny},
		{"both effects by a pattern", []policy.Rule{{Effects: []string{"*_write"}}}, wipe, plugin.Allow},
		{"a plugin by its name", []policy.Rule{{Operations: []string{"text.*"}}}, count, plugin.Allow},
		{"another plugin", []policy.Rule{{Operations: []string{"text"}}}, count, plugin.Deny},
		{"another kind", []policy.Rule{{Kinds: []plugin.Kind{plugin.Agent}}}, count, plugin.Deny},
		{"this principal", []policy.Rule{{Principals: []string{"local:*"}}}, count, plugin.Allow},
		{"another principal", []policy.Rule{{Principals: []string{"ann"}}}, count, plugin.Deny},
		{"the second rule", []policy.Rule{{Principals: []string{"ann"}}, {}}, count, plugin.Allow},
	} {
		list, err := policy.New(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		d := list.Decide(c.target, &plugin.Call{Principal: plugin.Principal{ID: "local:owner"}})
		if d.Verdict != c.want || len(d.Reasons) != 1 || d.Policy == "" {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

func TestADenialSaysWhatWouldAllowIt(t *testing.T) {
	t.Parallel()
	list, err := policy.New(policy.Default)
	if err != nil {
		t.Fatal(err)
	}
	d := list.Decide(target("mail", "send", plugin.Operator, "gmail_send"), &plugin.Call{Principal: plugin.Principal{ID: "ann"}})
	want := `no rule lets ann run mail/send, an operator with the effects gmail_send; to allow it, add {operations: ["mail/send"], effects: [gmail_send]} to policy.allow in mortise.yaml`
	if d.Reasons[0] != want {
		t.Errorf("got  %s\nwant %s", d.Reasons[0], want)
	}
}

func TestBadRulesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule policy.Rule
		want string
	}{
		{policy.Rule{Operations: []string{"["}}, `rule 1: "[" is no pattern`},
		{policy.Rule{Operations: []string{""}}, `rule 1: "" is no pattern`},
		{policy.Rule{Effects: []string{" a"}}, `rule 1: " a" is no pattern`},
		{policy.Rule{Kinds: []plugin.Kind{"tol"}}, `"tol" is no kind`},
	} {
		if _, err := policy.New([]policy.Rule{c.rule}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.rule, err)
		}
	}
}

func TestTheVersionChangesWithTheRules(t *testing.T) {
	t.Parallel()
	call, count := &plugin.Call{}, target("a", "b", plugin.Tool)
	one, _ := policy.New(policy.Default)
	two, _ := policy.New(append(policy.Default, policy.Rule{}))
	if one.Decide(count, call).Policy == two.Decide(count, call).Policy {
		t.Error("two sets of rules share a version")
	}
}
