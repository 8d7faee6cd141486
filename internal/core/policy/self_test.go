package policy_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

// TestSelfIsWrittenOnThePermitToApprove: only a permit that names approve, with the annotation and
// that matches, lets a requester confirm their own call.
func TestSelfIsWrittenOnThePermitToApprove(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`@self("allow") permit (principal, action == Action::"execute", resource);`:   "names Action",
		`@self("allow") permit (principal, action, resource);`:                        "names Action",
		`@self("allow") forbid (principal, action == Action::"approve", resource);`:   "names Action",
		`@self("yes") permit (principal, action == Action::"approve", resource);`:     "one value",
		`@self("allow") permit (principal, action == Action::"approve", resource);`:   "",
		`@myself("allow") permit (principal, action == Action::"approve", resource);`: "@self",
	} {
		_, err := policy.Check([]policy.Document{{Name: "p.cedar", Text: []byte(text)}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	const rules = `
@self("allow") permit (principal == User::"ann", action == Action::"approve", resource == Operation::"mail/send");
permit (principal == User::"ann", action, resource);
permit (principal == User::"bob", action, resource);
@self("allow") permit (principal == User::"eve", action == Action::"approve", resource == Operation::"mail/send");
forbid (principal == User::"eve", action == Action::"approve", resource);
`
	e, err := policy.Open(policy.Options{Sources: []policy.Source{func() ([]policy.Document, error) {
		return []policy.Document{{Name: "p.cedar", Text: []byte(rules)}}, nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		who, operation string
		action         policy.Action
		want           bool
	}{
		{"ann", "send", policy.Approve, true}, {"ann", "draft", policy.Approve, false}, {"ann", "send", policy.Execute, false},
		{"bob", "send", policy.Approve, false}, {"eve", "send", policy.Approve, false}, {"dan", "send", policy.Approve, false},
	} {
		m := &plugin.Manifest{Name: "mail", Version: "1.0.0"}
		m.Operations = []*plugin.Operation{{Name: c.operation, Kind: plugin.Operator, Effects: []string{"mail_send"}}}
		q := &policy.Question{Action: c.action, Target: &plugin.Target{Manifest: m, Operation: m.Operations[0]}, Call: &plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: "user", ID: c.who}}}
		if got := e.ConfirmsSelf(q); got != c.want {
			t.Errorf("%s %s %s: %t", c.who, c.action, c.operation, got)
		}
	}
}
