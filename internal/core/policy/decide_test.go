package policy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/plugin"
)

const (
	permitAll  = "@id(\"all\") permit (principal, action, resource);\n"
	forbidSend = "@id(\"no_send\") @reason(\"not today\") forbid (principal, action == Action::\"execute\", resource) when { resource.effects.contains(\"send\") };\n"
	approveAll = "@id(\"gate\") @approval(\"look twice\") permit (principal, action, resource);\n"
	failing    = "@id(\"limit\") forbid (principal, action, resource) when { context.input has amount && context.input.amount > 100 };\n"
)

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text, input string
		effects           []string
		want              plugin.Verdict
		reasons           []string
	}{
		{"silence denies", "", "", nil, plugin.Deny, []string{`no rule lets ann run mail/send, an operator; to allow it, add {operations: ["mail/send"]} to policy.allow in mortise.yaml`}},
		{"a permit allows", permitAll, "", nil, plugin.Allow, []string{"a.cedar:1 all"}},
		{"without a name, file and line", "\npermit (principal, action, resource);", "", nil, plugin.Allow, []string{"a.cedar:2"}},
		{"every permit is named", permitAll + "permit (principal, action, resource);", "", nil, plugin.Allow, []string{"a.cedar:1 all", "a.cedar:2"}},
		{"a forbid wins", permitAll + forbidSend, "", []string{"send"}, plugin.Deny, []string{"a.cedar:2 no_send forbids it: not today"}},
		{"a forbid that does not match", permitAll + forbidSend, "", []string{"read"}, plugin.Allow, []string{"a.cedar:1 all"}},
		{"a forbid wins over approval", approveAll + forbidSend, "", []string{"send"}, plugin.Deny, []string{"a.cedar:2 no_send forbids it: not today"}},
		{"approval", approveAll, "", nil, plugin.AllowWithApproval, []string{"a.cedar:1 gate asks for approval: look twice"}},
		{"approval wins over a plain permit", permitAll + approveAll, "", nil, plugin.AllowWithApproval, []string{"a.cedar:2 gate asks for approval: look twice"}},
		{"a forbid that would fail and is not reached", permitAll + failing, `{}`, nil, plugin.Allow, []string{"a.cedar:1 all"}},
		{"an argument within the limit", permitAll + failing, `{"amount": 100}`, nil, plugin.Allow, []string{"a.cedar:1 all"}},
		{"an argument beyond the limit", permitAll + failing, `{"amount": 1e3}`, nil, plugin.Deny, []string{"a.cedar:2 limit forbids it"}},
		{"a forbid that fails denies", permitAll + failing, `{"amount": "lots"}`, nil, plugin.Deny, []string{"a.cedar:2 limit could not be evaluated, which denies: type error: expected comparable value, got string"}},
		{"a permit that fails denies", permitAll + strings.Replace(failing, "forbid", "permit", 1), `{"amount": []}`, nil, plugin.Deny, []string{"a.cedar:2 limit could not be evaluated, which denies: type error: expected comparable value, got set"}},
		{"what is too large for Cedar is not hidden from it", permitAll + failing, `{"amount": 1e300}`, nil, plugin.Deny, nil},
		{"nor what has too many places", permitAll + failing, `{"amount": 0.123456}`, nil, plugin.Deny, nil},
		{"null is no argument", permitAll + failing, `{"amount": null}`, nil, plugin.Allow, nil},
		{"a huge argument", permitAll + failing, `{"amount": [` + strings.Repeat("1,", 5000) + `1]}`, nil, plugin.Deny, []string{"the arguments are nested too deep, or hold too much, for the policies that look at them"}},
		{"a huge argument that no policy reads", permitAll + failing, `{"text": [` + strings.Repeat("1,", 5000) + `1]}`, nil, plugin.Allow, nil},
		{"a deep argument", permitAll + failing, `{"amount": ` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`, nil, plugin.Deny, nil},
	} {
		e := open(t, policy.Options{Sources: texts(c.text)})
		d := e.Decide(target("mail", "send", plugin.Operator, c.effects...), &plugin.Call{Principal: plugin.Principal{Type: "user", ID: "ann"}, Input: json.RawMessage(c.input)})
		if d.Verdict != c.want || c.reasons != nil && fmt.Sprint(d.Reasons) != fmt.Sprint(c.reasons) || d.Policy != e.Version() {
			t.Errorf("%s: got %s %q, want %s %q", c.name, d.Verdict, d.Reasons, c.want, c.reasons)
		}
	}
}

// TestAnAuthorsWishForAPerson: what a plugin's author does not want done unasked
// waits where policy allows it, and no policy opens that; a deny is still one.
func TestAnAuthorsWishForAPerson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		want   plugin.Verdict
		reason string
	}{
		{permitAll, plugin.AllowWithApproval, "a.cedar:1 all allows it; but its author wants a person to agree each time, so one is asked"},
		{`@untrusted("allow") permit (principal, action, resource);`, plugin.AllowWithApproval, "a.cedar:1 allows it; but its author wants a person to agree each time, so one is asked"},
		{approveAll, plugin.AllowWithApproval, "a.cedar:1 gate asks for approval: look twice"},
		{permitAll + forbidSend, plugin.Deny, "a.cedar:2 no_send forbids it: not today"},
		{"", plugin.Deny, ""},
	} {
		e := open(t, policy.Options{Sources: texts(c.text)})
		of := target("mail", "send", plugin.Operator, "send")
		of.Operation.PolicyTags = []string{"action", plugin.TagRequiresApproval}
		call := &plugin.Call{Principal: plugin.Principal{Type: "user", ID: "ann"}}
		d := e.Decide(of, call)
		if d.Verdict != c.want || c.reason != "" && d.Reasons[0] != c.reason {
			t.Errorf("%s: got %s %q", c.text, d.Verdict, d.Reasons)
		}
		if listed := e.May(policy.List, of, call).Verdict; c.text == permitAll && listed != plugin.Allow {
			t.Errorf("%s: it takes a person to see it", c.text)
		}
	}
}

// TestWhatPoliciesCanSee reads every attribute of the schema once.
func TestWhatPoliciesCanSee(t *testing.T) {
	t.Parallel()
	of := target("mail", "send", plugin.Operator, "gmail_send", "db_read")
	of.Operation.PolicyTags, of.Operation.Permissions = []string{"external_send"}, []string{"mail.send"}
	of.Operation.Input = json.RawMessage(`{"properties": {"price": {"type": "number"}, "to": {"properties": {"ratio": {"type": ["number", "null"]}}}, "parts": {"items": {"type": "number"}}}}`)
	call := &plugin.Call{
		Tenant: "acme", Principal: plugin.Principal{Type: "service", ID: "robot", Scopes: []string{"s1"}}, Actor: "plugin:x", Agent: "agent-7",
		Origin: plugin.OriginCall, Depth: 2, Labels: []string{"pii"},
		Input: json.RawMessage(`{"n": 3, "text": "h\u00e9", "yes": true, "price": 3, "frac": 2.50, "to": {"ratio": 1e0, "name": "x"}, "parts": [1, 2.5], "list": ["a", null, "b", "a"], "odd name": "o"}`),
	}
	standing := func(tenant string, who plugin.Principal) policy.Standing {
		if tenant != "acme" || who.ID != "robot" {
			t.Errorf("asked for %s of %s", who.ID, tenant)
		}
		return policy.Standing{Groups: []string{"staff"}, Roles: []string{"sender"}, Consent: []string{"gmail_send"}}
	}
	for _, condition := range []string{
		`principal is Service && principal == Service::"robot" && principal.id == "robot"`,
		`principal in Group::"staff" && principal in Role::"sender" && principal in Tenant::"acme" && !(principal in Group::"guests")`,
		`resource == Operation::"mail/send" && resource in Plugin::"mail" && resource is Operation`,
		`resource.plugin == "mail" && resource.operation == "send" && resource.name == "mail/send" && resource.version == "1.0.0"`,
		`resource.dialect == "native" && resource.kind == "operator" && resource.isolation == "partial"`,
		`resource.effects == ["db_read", "gmail_send"] && resource.tags == ["external_send"] && resource.permissions == ["mail.send"]`,
		`resource in Effects::"db_*, gmail_send" && !(resource in Effects::"db_*")`,
		`context.scopes == ["s1"] && context.origin == "call" && context.tenant == "acme" && context.consent == ["gmail_send"]`,
		`context.actor == "plugin:x" && context.agent == "agent-7" && context.depth == 2 && context.labels == ["pii"]`,
		`context.input has n && context.input.n == 3 && context.input has text && context.input.text == "hé" && context.input has yes && context.input.yes`,
		`context.input has price && context.input.price == decimal("3.0") && context.input has frac && context.input.frac == decimal("2.5")`,
		`context.input has to.ratio && context.input.to.ratio.lessThan(decimal("1.5")) && context.input.to has name && context.input.to.name == "x"`,
		`context.input has list && context.input.list == ["a", "b"] && context.input has "odd name" && context.input["odd name"] == "o"`,
		`!(context.input has absent) && (context.input has parts)`,
	} {
		e := open(t, policy.Options{Sources: texts(`permit (principal, action == Action::"execute", resource) when { ` + condition + ` };`), Standing: standing, Isolation: "partial"})
		if d := e.Decide(of, call); d.Verdict != plugin.Allow {
			t.Errorf("%s: %s %q", condition, d.Verdict, d.Reasons)
		}
	}
}

func TestActionsAndPrincipals(t *testing.T) {
	t.Parallel()
	e := open(t, policy.Options{Sources: texts(`
		permit (principal == User::"ann", action == Action::"execute", resource);
		permit (principal in Role::"admin", action == Action::"configure", resource == Plugin::"mail") when { resource.version like "1.*" };
		permit (principal, action == Action::"list", resource in Plugin::"mail");
		permit (principal is Agent, action == Action::"approve", resource) unless { context.origin == "call" };
	`)})
	mail, text := target("mail", "send", plugin.Operator), target("text", "count", plugin.Tool)
	admin := &policy.Standing{Roles: []string{"admin"}}
	call := func(kind, id string) *plugin.Call {
		return &plugin.Call{Tenant: "t", Principal: plugin.Principal{Type: kind, ID: id}}
	}
	for _, c := range []struct {
		q    policy.Question
		want plugin.Verdict
		says string
	}{
		{policy.Question{Target: mail, Call: call("user", "ann")}, plugin.Allow, ""},
		{policy.Question{Target: mail, Call: call("", "ann")}, plugin.Allow, ""},
		{policy.Question{Target: mail, Call: call("service", "ann")}, plugin.Deny, "no rule lets service::ann run"},
		{policy.Question{Target: mail, Call: call("robot", "ann")}, plugin.Deny, "a principal of the type robot is not known"},
		{policy.Question{Action: "exec", Target: mail, Call: call("user", "ann")}, plugin.Deny, "there is no action exec"},
		{policy.Question{Call: call("user", "ann")}, plugin.Deny, "nothing is asked for"},
		{policy.Question{Action: policy.List, Target: mail, Call: call("user", "bob")}, plugin.Allow, ""},
		{policy.Question{Action: policy.List, Target: text, Call: call("user", "bob")}, plugin.Deny, "no policy lets bob list text/count"},
		{policy.Question{Action: policy.Configure, Target: mail, Call: call("user", "bob"), Standing: admin}, plugin.Allow, ""},
		{policy.Question{Action: policy.Configure, Target: text, Call: call("user", "bob"), Standing: admin}, plugin.Deny, "no policy lets bob configure text"},
		{policy.Question{Action: policy.Configure, Target: mail, Call: call("user", "bob")}, plugin.Deny, ""},
		{policy.Question{Action: policy.Configure, Target: &plugin.Target{Manifest: mail.Manifest}, Call: call("user", "bob"), Standing: admin}, plugin.Allow, ""},
		{policy.Question{Target: &plugin.Target{Manifest: mail.Manifest}, Call: call("user", "ann")}, plugin.Deny, "no operation is asked for"},
		{policy.Question{Action: policy.Approve, Target: mail, Call: call("agent", "bob")}, plugin.Allow, ""},
	} {
		if d := e.Ask(&c.q); d.Verdict != c.want || !strings.Contains(d.Reasons[0], c.says) {
			t.Errorf("%+v: %s %q", c.q, d.Verdict, d.Reasons)
		}
	}
}

// TestNothingIsRemembered: what is kept of a principal and an operation from
// one question to the next is not what a later, changed one is judged by.
func TestNothingIsRemembered(t *testing.T) {
	t.Parallel()
	e := open(t, policy.Options{Sources: texts(`
		permit (principal in Role::"a", action, resource is Operation) when { resource.effects.isEmpty() && context.scopes.contains("s") && context.depth < 2 };
	`)})
	of := target("p", "o", plugin.Tool)
	call := &plugin.Call{Tenant: "t", Principal: plugin.Principal{ID: "ann", Scopes: []string{"s"}}}
	standing := &policy.Standing{Roles: []string{"a"}}
	ask := func() plugin.Verdict {
		return e.Ask(&policy.Question{Target: of, Call: call, Standing: standing}).Verdict
	}
	for range 2 {
		if ask() != plugin.Allow {
			t.Fatal("not allowed to begin with")
		}
		for name, change := range map[string]func() (undo func()){
			"the effects": func() func() { of.Operation.Effects = []string{"x"}; return func() { of.Operation.Effects = nil } },
			"a scope":     func() func() { call.Principal.Scopes[0] = "z"; return func() { call.Principal.Scopes[0] = "s" } },
			"the depth":   func() func() { call.Depth = 3; return func() { call.Depth = 0 } },
			"a role":      func() func() { standing.Roles[0] = "b"; return func() { standing.Roles[0] = "a" } },
		} {
			undo := change()
			if ask() != plugin.Deny {
				t.Errorf("%s changed and the verdict did not", name)
			}
			undo()
		}
	}
}

func TestABadReloadLeavesTheOldPolicies(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	text, fault := permitAll, error(nil)
	e := open(t, policy.Options{Sources: []policy.Source{func() ([]policy.Document, error) {
		mu.Lock()
		defer mu.Unlock()
		return []policy.Document{{Name: "a.cedar", Text: []byte(text)}}, fault
	}}})
	of, call := target("p", "o", plugin.Tool), &plugin.Call{Principal: plugin.Principal{ID: "ann"}}
	before := e.Version()
	for _, change := range []func(){
		func() { text = "permit (principal, action, resourc);" },
		func() { text = permitAll + permitAll },
		func() { text, fault = permitAll, fmt.Errorf("the disk is gone") },
	} {
		change()
		if err := e.Reload(); err == nil {
			t.Error("a bad set was taken")
		}
		if e.Version() != before || e.Decide(of, call).Verdict != plugin.Allow {
			t.Error("the old set is not in force")
		}
	}
	text, fault = forbidSend, nil
	if err := e.Reload(); err != nil || e.Version() == before || e.Decide(of, call).Verdict != plugin.Deny {
		t.Errorf("the new set is not in force: %v", err)
	}
}

// TestADecisionIsByOneSet swaps sets under the feet of those who ask: each
// answer is wholly of one set.
func TestADecisionIsByOneSet(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	n := 0
	e := open(t, policy.Options{Sources: []policy.Source{func() ([]policy.Document, error) {
		mu.Lock()
		defer mu.Unlock()
		n++
		return texts([]string{permitAll, permitAll + approveAll}[n%2])[0]()
	}}})
	versions := map[string]plugin.Verdict{e.Version(): e.Decide(target("p", "o", plugin.Tool), &plugin.Call{}).Verdict}
	if err := e.Reload(); err != nil {
		t.Fatal(err)
	}
	versions[e.Version()] = e.Decide(target("p", "o", plugin.Tool), &plugin.Call{}).Verdict
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			of, call := target("p", "o", plugin.Tool), &plugin.Call{Principal: plugin.Principal{ID: fmt.Sprint(i % 2)}}
			for j := range 300 {
				if i == 0 && j%10 == 0 {
					if err := e.Reload(); err != nil {
						t.Error(err)
					}
				}
				if d := e.Decide(of, call); versions[d.Policy] != d.Verdict {
					t.Errorf("%s by %s", d.Verdict, d.Policy)
				}
			}
		})
	}
	wg.Wait()
}

func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	d := open(t, policy.Options{Sources: texts(strings.Repeat("permit (principal, action, resource);\n", 100))}).Decide(target("p", "o", plugin.Tool), &plugin.Call{})
	if len(d.Reasons) != 17 || d.Reasons[0] != "a.cedar:1" || d.Reasons[16] != "and 84 more" {
		t.Errorf("%q", d.Reasons)
	}
}
