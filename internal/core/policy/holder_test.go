package policy_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// TestWhoMayApproveAndConfigure: the lists of the configuration, and what files
// make of them.
func TestWhoMayApproveAndConfigure(t *testing.T) {
	t.Parallel()
	owner, robot := plugin.Principal{Type: "user", ID: "local:owner"}, plugin.Principal{Type: "service", ID: "robot"}
	of := target("mail", "send", plugin.Operator, "gmail_send")
	for _, c := range []struct {
		name, text, tenant string
		who                plugin.Principal
		action             policy.Action
		want               plugin.Verdict
		says               string
	}{
		{"in the list", "", "local", owner, policy.Approve, plugin.Allow, "approvals.by"},
		{"a service in the list", "", "local", robot, policy.Approve, plugin.Allow, "approvals.by"},
		{"not in the list", "", "local", plugin.Principal{ID: "ann"}, policy.Approve, plugin.Deny, "no policy lets ann approve mail/send; approvals.by in mortise.yaml, or a policy, names those who may"},
		{"of the same name, of another type", "", "local", plugin.Principal{Type: "user", ID: "robot"}, policy.Approve, plugin.Deny, ""},
		{"of the same name, elsewhere", "", "other", owner, policy.Approve, plugin.Deny, ""},
		{"to approve is not to run", "", "local", owner, policy.Execute, plugin.Deny, ""},
		{"a file forbids", `@id("not_mail") forbid (principal, action == Action::"approve", resource in Plugin::"mail");`, "local", owner, policy.Approve, plugin.Deny, "a.cedar:1 not_mail forbids it"},
		{"a file that is about all actions does not speak of it", permitAll, "local", owner, policy.Approve, plugin.Allow, "a.cedar:1 all"},
		{"where a file says who may, it is they", `permit (principal == User::"ann", action == Action::"approve", resource);`, "local", owner, policy.Approve, plugin.Deny, "no policy lets local:owner approve"},
		{"and no others", `permit (principal == User::"ann", action in [Action::"approve", Action::"list"], resource);`, "local", robot, policy.Approve, plugin.Deny, ""},
		{"who may configure", "", "local", owner, policy.Configure, plugin.Allow, "policy.configure"},
		{"who may not configure", "", "local", robot, policy.Configure, plugin.Deny, "no policy lets service::robot configure mail; policy.configure in mortise.yaml, or a policy, names those who may"},
		{"one more may configure", `permit (principal == Service::"robot", action == Action::"configure", resource);`, "local", robot, policy.Configure, plugin.Allow, ""},
		{"and the list holds beside it", `permit (principal == Service::"robot", action == Action::"configure", resource);`, "local", owner, policy.Configure, plugin.Allow, "policy.configure"},
		{"a file forbids configuring", `forbid (principal, action == Action::"configure", resource == Plugin::"mail");`, "local", owner, policy.Configure, plugin.Deny, "a.cedar:1 forbids it"},
	} {
		e := open(t, policy.Options{Sources: append(texts(c.text), policy.Approvers("local", []plugin.Principal{owner, robot}), policy.Configurers("local", []plugin.Principal{owner}))})
		if d := e.May(c.action, of, &plugin.Call{Tenant: c.tenant, Principal: c.who}); d.Verdict != c.want || !strings.HasPrefix(d.Reasons[0], c.says) {
			t.Errorf("%s: got %s %q, want %s %q", c.name, d.Verdict, d.Reasons, c.want, c.says)
		}
	}
	if _, err := policy.Open(policy.Options{Sources: []policy.Source{policy.Approvers("t", []plugin.Principal{{Type: "robot", ID: "x"}})}}); err == nil {
		t.Error("a type that is not known was taken")
	}
}

// TestNamesAreNotCode: what stands in a list cannot become a policy of its own.
func TestNamesAreNotCode(t *testing.T) {
	t.Parallel()
	odd := plugin.Principal{Type: "user", ID: "x\", action, resource);\npermit (principal, action, resource); //"}
	e := open(t, policy.Options{Sources: []policy.Source{policy.Configurers("t\"", []plugin.Principal{odd})}})
	of := target("mail", "send", plugin.Operator)
	if d := e.May(policy.Configure, of, &plugin.Call{Tenant: "t\"", Principal: odd}); d.Verdict != plugin.Allow || e.Len() != 1 {
		t.Errorf("%+v of %d", d, e.Len())
	}
	if d := e.May(policy.Configure, of, &plugin.Call{Tenant: "t", Principal: plugin.Principal{ID: "x"}}); d.Verdict != plugin.Deny {
		t.Errorf("%+v", d)
	}
}

// TestVisible: a principal may see the operations that it may list or run, and all
// operations of a plugin that it may configure.
func TestVisible(t *testing.T) {
	t.Parallel()
	e := open(t, policy.Options{Sources: append(texts(`
permit (principal == User::"ann", action == Action::"list", resource == Operation::"mail/read");
@approval permit (principal == User::"ann", action == Action::"execute", resource == Operation::"mail/send");
permit (principal == User::"bob", action == Action::"execute", resource == Operation::"mail/send") when { context.input has to && context.input.to == "bob" };
`), policy.Configurers("t", []plugin.Principal{{ID: "owner"}}))})
	m := &plugin.Manifest{Name: "mail", Version: "1.0.0", Operations: []*plugin.Operation{{Name: "read"}, {Name: "send"}, {Name: "wipe"}}}
	for who, want := range map[string]string{"ann": "read send false", "bob": "false", "carl": "false", "owner": "read send wipe true"} {
		operations, whole := e.Visible(m, &plugin.Call{Tenant: "t", Principal: plugin.Principal{ID: who}, Input: []byte(`{"to": "bob"}`)})
		var words []string
		for _, op := range operations {
			words = append(words, op.Name)
		}
		got := strings.Join(append(words, map[bool]string{true: "true", false: "false"}[whole]), " ")
		if got != want {
			t.Errorf("%s: got %s, want %s", who, got, want)
		}
	}
}
