package signin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
)

// Groups are of the session whose sign-in gave them, and only those that mortise.yaml maps.
// No claim makes someone the administrator.
func TestGroupsAreOfTheSignInThatGaveThem(t *testing.T) {
	b := begin(t)
	ann := b.person("ann", "ann's account")
	create := func(one *browser, principal string) answer {
		return one.do("POST", "/api/v1/tokens", `{"name":"t","for":"`+principal+`","scopes":["run"]}`)
	}
	says := func(claim any) {
		b.forge(func(s *accounttest.Server) { s.Claims = map[string]any{"groups": claim} })
	}
	if a := create(ann, "bob"); a.status != 403 {
		t.Errorf("without a group: %d %s", a.status, a.text)
	}
	other := b.browser()
	for _, claim := range []any{
		"unknown", []any{"operators", "admin", "local:owner", "root", 7, nil, map[string]any{"ops": true}}, map[string]any{"ops": "ops"}, true, []any{[]any{"ops"}}, nil,
	} {
		says(claim)
		if a := other.signIn("ann's account", "&prompt=login"); a.status != 303 {
			t.Fatalf("%v: %d %s", claim, a.status, a.text)
		}
		if a := create(other, "bob"); a.status != 403 {
			t.Errorf("%v gives a group: %d %s", claim, a.status, a.text)
		}
	}
	says([]any{"dev", "ops", "ops", "unknown"})
	if a := other.signIn("ann's account", "&prompt=login"); a.status != 303 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if a := create(other, "bob"); a.status != 200 {
		t.Errorf("with the group: %d %s", a.status, a.text)
	}
	if a := create(other, "local:owner"); a.status != 403 || !strings.Contains(a.at("detail"), "for the administrator") {
		t.Errorf("a group makes a token of the administrator: %d %s", a.status, a.text)
	}
	if a := other.do("GET", "/api/v1/browsers", ""); a.status != 200 || strings.Count(a.text, `"groups":["operators","staff"]`) != 1 || strings.Count(a.text, `"groups":[]`) != 1 {
		t.Errorf("the sessions are %s", a.text)
	}
	if a := other.do("GET", "/auth/", ""); !strings.Contains(a.text, "has you in operators, staff") {
		t.Errorf("the page says %s", a.text)
	}
	if status, out := b.mortise("users", "show", "ann", "--json"); status != 0 || !strings.Contains(out, `"operators"`) {
		t.Errorf("%d %s", status, out)
	}
	if status, out := b.mortise("ledger", "list", "--kind", "session.signed_in", "--json"); status != 0 || !strings.Contains(out, `"operators"`) {
		t.Errorf("the ledger does not say which groups were given: %s", out)
	}
	if a := create(ann, "bob"); a.status != 403 {
		t.Errorf("another session of the same person has the group: %d %s", a.status, a.text)
	}
	says("dev")
	if a := other.signIn("ann's account", "&prompt=login"); a.status != 303 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if a := create(other, "bob"); a.status != 403 {
		t.Errorf("a group lasts beyond the next sign-in: %d %s", a.status, a.text)
	}
}

// A provider that does not say when it asked who someone is signs them in, and proves
// nothing of now.
func TestAProviderThatSaysNoTimeProvesNothingOfNow(t *testing.T) {
	b := begin(t)
	ann, bob := b.person("ann", "ann's account"), b.person("bob", "bob's account")
	asked := bob.ask()
	b.forge(func(s *accounttest.Server) { s.Timeless = true })
	if a := ann.signIn("ann's account", ""); a.status != 303 || ann.whoami() != 200 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if code := ann.approve(asked); code != "sign_in_required" {
		t.Errorf("a sign-in of no time counts as one of now: %q", code)
	}
	if a := ann.do("GET", "/api/v1/browsers", ""); strings.Count(a.text, "signed_in_at") != 0 {
		t.Errorf("the time is %s", a.text)
	}
	if a := ann.signIn("ann's account", "&prompt=login"); a.status != 403 || !strings.Contains(a.text, "auth_time") {
		t.Errorf("a step-up of no time: %d %s", a.status, a.text)
	}
	// By an invitation one signs in, and not more.
	other := b.browser()
	if a := other.accept(b.invite("ann"), "another account"); a.status != 303 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if a := other.do("POST", "/auth/own", ""); a.status != 303 || !strings.Contains(a.header.Get("Location"), "prompt=login") {
		t.Errorf("%d %s", a.status, a.header.Get("Location"))
	}
	b.forge(func(s *accounttest.Server) { s.Timeless, s.AuthTime = false, time.Now().Add(2*time.Hour) })
	if a := ann.signIn("ann's account", "&prompt=login"); a.status != 403 {
		t.Errorf("a time of the future: %d %s", a.status, a.text)
	}
}

// What a sign-in gives is decided by the configuration in force, and not by that of its time: a
// group that is mapped otherwise is another, one that is mapped no more is none, and a provider
// that is taken out signs no one in, also those who signed in before.
func TestASessionIsOfTheConfigurationInForce(t *testing.T) {
	b := begin(t)
	ann := b.person("ann", "ann's account")
	b.forge(func(s *accounttest.Server) { s.Claims = map[string]any{"groups": "ops"} })
	if a := ann.signIn("ann's account", "&prompt=login"); a.status != 303 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	bob := b.person("bob", "bob's account")
	asked := bob.ask()
	text, err := os.ReadFile(filepath.Join(b.home, "mortise.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	config := string(text)
	reload := func(old, with string) {
		t.Helper()
		if !strings.Contains(config, old) {
			t.Fatalf("the configuration has no %q", old)
		}
		config = strings.Replace(config, old, with, 1)
		b.write(filepath.Join(b.home, "mortise.yaml"), config)
		if status, out := b.mortise("serve", "reload"); status != 0 {
			t.Fatalf("%d %s", status, out)
		}
	}
	groups := func() string {
		a := ann.do("GET", "/auth/", "")
		_, has, _ := strings.Cut(a.text, "has you in ")
		has, _, _ = strings.Cut(has, "<")
		return strings.Trim(strings.TrimSpace(has), ".")
	}
	if got := groups(); !strings.HasPrefix(got, "operators") {
		t.Fatalf("ann is in %q", got)
	}
	reload("ops: [operators]", "ops: [staff]")
	if got := groups(); !strings.HasPrefix(got, "staff") {
		t.Errorf("once the claim is mapped to another group, ann is in %q", got)
	}
	reload("ops: [staff], ", "")
	if got := groups(); got != "" {
		t.Errorf("once the claim is not mapped, ann is in %q", got)
	}
	reload("name: one", "name: other") // the same provider
	if got := ann.whoami(); got != 200 {
		t.Errorf("under another name of the provider ann is answered %d", got)
	}
	reload("issuer: \""+b.first.URL, "issuer: \""+b.first.URL+"/elsewhere")
	if got := ann.whoami(); got != 401 {
		t.Errorf("without the provider ann is answered %d", got)
	}
	if code := ann.approve(asked); code != "unauthenticated" {
		t.Errorf("without the provider ann approves: %q", code)
	}
}
