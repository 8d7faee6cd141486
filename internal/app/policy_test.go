package app_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/plugin"
)

// TestStandingIsThatOfOneTenant: who is called the same in another tenant, or
// is of another type, has no part in it.
func TestStandingIsThatOfOneTenant(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Policy.Groups = map[string][]string{"staff": {"ann", "service::bot"}}
	c.Policy.Roles = map[string][]string{"sender": {"user::ann"}}
	c.Policy.Consent = map[string][]string{"ann": {"gmail_send"}, "agent::x": {"db_write"}}
	e, err := setup.OpenPolicy(c, "mortise.yaml", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		tenant, who            string
		groups, roles, consent int
	}{
		{"local", "ann", 1, 1, 1},
		{"local", "user::ann", 1, 1, 1},
		{"local", "service::bot", 1, 0, 0},
		{"local", "bot", 0, 0, 0},
		{"local", "service::ann", 0, 0, 0},
		{"local", "agent::x", 0, 0, 1},
		{"other", "ann", 0, 0, 0},
	} {
		s := e.Standing(k.tenant, principal.Parse(k.who))
		if len(s.Groups) != k.groups || len(s.Roles) != k.roles || len(s.Consent) != k.consent {
			t.Errorf("%s of %s: %+v", k.who, k.tenant, s)
		}
	}
	if name := principal.Name(plugin.Principal{Type: "agent", ID: "x"}); name != "agent::x" || principal.Parse(name).Type != "agent" {
		t.Error(name)
	}
}

// TestTheVersionKnowsWhoIsWho: groups, roles, consent and who may approve are
// part of the policies' version, because decisions depend on them.
func TestTheVersionKnowsWhoIsWho(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, change := range map[string]func(*config.Config){
		"nothing":   func(*config.Config) {},
		"a group":   func(c *config.Config) { c.Policy.Groups = map[string][]string{"staff": {"ann"}} },
		"a member":  func(c *config.Config) { c.Policy.Groups = map[string][]string{"staff": {"ann", "bob"}} },
		"a role":    func(c *config.Config) { c.Policy.Roles = map[string][]string{"staff": {"ann"}} },
		"consent":   func(c *config.Config) { c.Policy.Consent = map[string][]string{"staff": {"ann"}} },
		"approvers": func(c *config.Config) { c.Approvals.By = []string{"ann"} },
		"configure": func(c *config.Config) { c.Policy.Configure = []string{"ann"} },
		"a tenant":  func(c *config.Config) { c.Tenant = "acme" },
	} {
		for range 3 { // whatever the order of maps
			c := config.Default()
			change(&c)
			e, err := setup.OpenPolicy(c, "mortise.yaml", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if other, found := seen[e.Version()]; found && other != name {
				t.Errorf("%s has the version of %s", name, other)
			}
			seen[e.Version()] = name
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d versions of 8 configurations", len(seen))
	}
}

// TestTheExampleOfTheContractWithConsentOfTheConfiguration: who is enabled and
// who has agreed is said by the configuration.
func TestTheExampleOfTheContractWithConsentOfTheConfiguration(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Policy.Allow, c.Policy.Files = nil, []string{"kernel-contract.cedar"}
	c.Policy.Roles = map[string][]string{"gmail_enabled": {"ann", "bob"}}
	c.Policy.Consent = map[string][]string{"ann": {"gmail_send"}, "carl": {"gmail_send"}}
	e, err := setup.OpenPolicy(c, "../../docs/examples/policies/mortise.yaml", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	of := func(name string, effects ...string) *plugin.Target {
		return &plugin.Target{Manifest: &plugin.Manifest{Name: name, Version: "1.0.0"}, Operation: &plugin.Operation{Name: name, Kind: plugin.Operator, Effects: effects}}
	}
	send, apply := of("Gmail.SendEmail", "gmail_send"), of("Email.ApplyDraft", "db_write")
	for _, k := range []struct {
		who    string
		target *plugin.Target
		labels []string
		want   plugin.Verdict
	}{
		{"ann", send, nil, plugin.Allow},
		{"ann", send, []string{plugin.Untrusted}, plugin.AllowWithApproval},
		{"bob", send, nil, plugin.Deny},
		{"carl", send, nil, plugin.Deny},
		{"carl", apply, nil, plugin.AllowWithApproval},
	} {
		call := &plugin.Call{Tenant: "local", Principal: plugin.Principal{Type: "user", ID: k.who}, Labels: k.labels}
		if d := e.Decide(k.target, call); d.Verdict != k.want {
			t.Errorf("%s by %s: %+v", k.target.Name(), k.who, d)
		}
	}
	for who, want := range map[string]plugin.Verdict{"local:owner": plugin.Allow, "ann": plugin.Deny} { // some principal may approve at the gate of the contract
		if d := e.May(policy.Approve, apply, &plugin.Call{Tenant: "local", Principal: plugin.Principal{Type: "user", ID: who}}); d.Verdict != want {
			t.Errorf("%s: %+v", who, d)
		}
	}
}
