package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// Of changes that were written for one version of the policies one is made, on one host
// and on nodes that share a database.
func TestOneOfTheChangesOfAVersionIsMade(t *testing.T) {
	t.Parallel()
	for name, hosts := range map[string]func(t *testing.T) []*app.App{
		"one host": func(t *testing.T) []*app.App { return []*app.App{open(t, t.TempDir())} },
		"two nodes": func(t *testing.T) []*app.App {
			url := pgtest.Open(t)
			one := node(t, url, "")
			return []*app.App{one, node(t, url, one.Home)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nodes := hosts(t)
			first := nodes[0].As(nodes[0].Principal).Policies()
			was := first.Version()
			const writers = 8
			errs := make([]error, writers)
			var all sync.WaitGroup
			for n := range writers {
				all.Go(func() {
					a := nodes[n%len(nodes)]
					text := fmt.Sprintf(`@id("p%d") forbid (principal == User::"eve%d", action, resource);`, n, n)
					_, errs[n] = a.As(a.Principal).Policies().Put(t.Context(), fmt.Sprintf("p%d", n%2), []byte(text), was)
				})
			}
			all.Wait()
			made := 0
			for _, err := range errs {
				switch plugin.CodeOf(err) {
				case "":
					made++
				case plugin.CodeConflict:
				default:
					t.Error(err)
				}
			}
			for _, a := range nodes { // they follow within seconds; here at once
				if err := a.Policy.Reload(); err != nil {
					t.Fatal(err)
				}
			}
			rows, err := nodes[0].Store.Policies(t.Context(), "local")
			if made != 1 || err != nil || len(rows) != 1 {
				t.Fatalf("%d of %d changes were made; %d texts are stored, %v", made, writers, len(rows), err)
			}
			if _, err := first.Delete(t.Context(), rows[0].Name, was); plugin.CodeOf(err) != plugin.CodeConflict {
				t.Errorf("a deletion for the version before: %v", err)
			}
			if gone, err := first.Delete(t.Context(), rows[0].Name, first.Version()); err != nil || gone.Version != was || first.Version() != was {
				t.Errorf("a deletion for this version: %v; the version is %s, and was %s", err, first.Version(), was)
			}
		})
	}
}

// Who comes with a token asks policy about themselves, and about others with the right to
// change policies.
func TestPolicyIsAskedAboutOneself(t *testing.T) {
	t.Parallel()
	a := tokenHome(t, "")
	user := func(id string) host.Caller {
		return host.Caller{Principal: plugin.Principal{Type: "user", ID: id, Scopes: []string{"*"}}, Asker: "user:" + id, Token: "t1", Scopes: []string{"read"}}
	}
	ask := func(c host.Caller, q host.PolicyRequest) error {
		q.Operation = "upper/upper"
		_, err := a.Host.For(c).Policies().Ask(t.Context(), q)
		if _, other := a.Host.For(c).Policies().Explain(t.Context(), q); plugin.CodeOf(err) != plugin.CodeOf(other) {
			t.Errorf("asked %v, and explained %v", err, other)
		}
		return err
	}
	for name, q := range map[string]host.PolicyRequest{"oneself": {}, "oneself by name": {Principal: "user::ann"}} {
		if err := ask(user("ann"), q); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, q := range map[string]host.PolicyRequest{
		"another": {Principal: "bob"}, "the administrator": {Principal: "root"}, "another tenant": {Tenant: "other"}, "for whom another acts": {Actor: "service:ci"}, "an agent": {Agent: "desk"},
		"with another group": {Groups: []string{"staff"}}, "with a role": {Roles: []string{"sender"}}, "with consent": {Consent: []string{"mail_send"}},
	} {
		before := len(entries(t, a))
		if err := ask(user("ann"), q); plugin.CodeOf(err) != plugin.CodePolicyDenied {
			t.Errorf("%s: %v", name, err)
		}
		if after := entries(t, a); len(after) != before+2 {
			t.Errorf("%s: two refusals leave %v", name, after[before:])
		}
		if err := ask(user("root"), q); err != nil {
			t.Errorf("%s, by who may change policies: %v", name, err)
		}
	}
}

// A plan may run any operation, so that a token with a list of operations makes none and
// lets none go on.
func TestATokenWithOperationsMakesNoPlan(t *testing.T) {
	t.Parallel()
	a := tokenHome(t, "")
	ann := plugin.Principal{Type: "user", ID: "ann", Scopes: []string{"*"}}
	made := makeThings(t, a, ann, "plans")
	as := func(operations ...string) host.Plans {
		return a.Host.For(host.Caller{Principal: ann, Asker: "user:ann", Token: "t1", Scopes: []string{"run"}, Operations: operations}).Plans()
	}
	submit := func(p host.Plans) error {
		_, err := p.Submit(t.Context(), host.NewPlan{Agent: "absent/agent", Input: []byte(`{}`), Origin: plugin.OriginAPI})
		return err
	}
	before := len(entries(t, a))
	if err := submit(as("absent/agent")); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("it submits: %v", err)
	}
	if _, err := as("upper/*").Resume(t.Context(), made.plan); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("it resumes: %v", err)
	}
	if all := entries(t, a); len(all) != before+2 || all[before] != "token.refused t1" || all[before+1] != "token.refused t1" {
		t.Errorf("the refusals leave %v", all[before:])
	}
	if err := submit(as()); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("a token without a list asks for what there is not: %v", err)
	}
	if v, err := as().Resume(t.Context(), made.plan); err != nil || v.ID != made.plan {
		t.Errorf("a token without a list resumes: %v", err)
	}
	if v, err := as("upper/*").Cancel(t.Context(), made.plan, ""); plugin.CodeOf(err) == plugin.CodePolicyDenied {
		t.Errorf("a token with a list can stop plans: %v, %v", v, err)
	}
}

// A stored policy counts on every node: one that cannot use it, because a file of its own has a
// policy of the same @id, allows nothing and says that it is not ready, until it can.
func TestANodeThatCannotUseTheStoredPoliciesAllowsNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.Open(t)
	one := node(t, url, "")
	register(t, one, upper(t), false)
	home := t.TempDir()
	key, err := os.ReadFile(filepath.Join(one.Home, "ledger.key"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, "ledger.key", string(key))
	write(t, home, "mortise.yaml", "policy: {files: [own.cedar]}\n")
	write(t, home, "own.cedar", `@id("stop") permit (principal == User::"ann", action, resource);`)
	two, err := app.Open(t.Context(), app.Options{Home: home, Database: url, Standby: true, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := two.Close(); err != nil {
			t.Error(err)
		}
	})
	if res, err := call(t, two, "upper", `{"text":"before"}`); err != nil || string(res.Data) != `"BEFORE"` {
		t.Fatalf("%s, %v", res.Data, err)
	}
	if err := two.Healthy(t.Context()); err != nil {
		t.Fatal(err)
	}
	policies := one.As(one.Principal).Policies()
	if _, err := policies.Put(t.Context(), "emergency", []byte(`@id("stop") forbid (principal, action == Action::"execute", resource);`), ""); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the other node is not ready", func() bool { return two.Healthy(t.Context()) != nil })
	if _, err := call(t, two, "upper", `{"text":"after"}`); plugin.CodeOf(err) != plugin.CodePolicyDenied && plugin.CodeOf(err) != plugin.CodeNotFound { // it may not know of it either
		t.Errorf("on the node that cannot use the policies a call that they forbid is answered %v", err)
	}
	// Its administrator can take it back there too.
	if _, err := two.As(two.Principal).Policies().Delete(t.Context(), "emergency", ""); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the other node is ready again", func() bool { return two.Healthy(t.Context()) == nil })
	if res, err := call(t, two, "upper", `{"text":"again"}`); err != nil || string(res.Data) != `"AGAIN"` {
		t.Errorf("%s, %v", res.Data, err)
	}
}
