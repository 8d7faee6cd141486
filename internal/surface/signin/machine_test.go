package signin_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// withMachines lets programs of the first provider be ann, and a service.
func withMachines(b *bench) string {
	return fmt.Sprintf(`  public_url: %q
  machines:
  - name: builds
    issuer: %q
    groups_claim: groups
    groups: {ops: [operators], dev: [staff]}
    allow:
    - {principal: "service::ci", claims: {sub: builds}, scopes: [read, run, approve, admin]}
    - {principal: ann, claims: {sub: "ann's program"}, scopes: [read, run, approve, admin]}
    - {principal: bob, claims: {sub: "one of two", for: bob}, scopes: [read, run, approve]}
    - {principal: "service::ci", claims: {sub: "one of two", for: ci}, scopes: [read, run, approve]}
    - {principal: "service::ci", claims: {sub: "the owner's account"}, scopes: [read, run, approve]}
    - {principal: "service::ci", claims: {sub: narrow}, scopes: [run], operations: [other/*]}
`, b.url, b.first.URL)
}

// machine is the header of a program of the first provider.
func (b *bench) machine(subject string, claims map[string]any) []string {
	return []string{"Authorization", "Bearer " + b.first.Machine(b.url, subject, claims)}
}

// A program with a token of a provider uses the API as who it is, within what it is for.
func TestAProgramPresentsATokenOfItsProvider(t *testing.T) {
	b := beginWith(t, withMachines)
	one := b.browser()
	builds := b.machine("builds", nil)
	if status := one.whoami(builds...); status != http.StatusOK {
		t.Errorf("it is answered %d", status)
	}
	for what, headers := range map[string][]string{
		"for another host":    {"Authorization", "Bearer " + b.first.Machine("https://other.example.com", "builds", nil)},
		"of another issuer":   {"Authorization", "Bearer " + b.second.Machine(b.url, "builds", nil)},
		"of no one":           b.machine("someone", nil),
		"that is too long":    b.machine("builds", map[string]any{"x": strings.Repeat("x", 9000)}),
		"as a cookie":         {"Cookie", b.cookie() + "=" + b.first.Machine(b.url, "builds", nil)},
		"with another beside": {"Authorization", "Bearer " + b.first.Machine(b.url, "builds", nil) + ", Bearer x"},
	} {
		a := one.do("GET", "/api/v1/browsers", "", headers...)
		if a.status != 401 || a.at("code") != "unauthenticated" || a.at("detail") != one.do("GET", "/api/v1/browsers", "").at("detail") {
			t.Errorf("a token %s: %d %s", what, a.status, a.text)
		}
	}
	// What mortise.yaml has of it bounds it.
	if a := one.do("POST", "/api/v1/operations/desk/line:execute", `{"input":{"text":"x"}}`, b.machine("narrow", nil)...); a.status != 403 || !strings.Contains(a.at("detail"), "server.machines") {
		t.Errorf("an operation that it is not for: %d %s", a.status, a.text)
	}
	if a := one.do("GET", "/api/v1/browsers", "", b.machine("narrow", nil)...); a.status != 403 || a.at("code") != "scope_denied" {
		t.Errorf("a scope that it has not: %d %s", a.status, a.text)
	}
	// Groups are of the token that has them, and no token makes one that outlasts it.
	create := `{"name":"t","for":"service::ci","scopes":["run"]}`
	if a := one.do("POST", "/api/v1/tokens", create, builds...); a.status != 403 {
		t.Errorf("without the group it makes a token: %d %s", a.status, a.text)
	}
	ops := b.machine("builds", map[string]any{"groups": []string{"ops", "local:owner", "admin"}})
	made := one.do("POST", "/api/v1/tokens", create, ops...)
	if end, err := time.Parse(time.RFC3339, made.at("expires_at")); made.status != 200 || err != nil || time.Until(end) > 5*time.Minute {
		t.Errorf("with the group: %d %s, %v", made.status, made.text, err)
	}
	for what, body := range map[string]string{
		"that outlasts it":      `{"name":"t","for":"service::ci","scopes":["run"],"expires_in":86400}`,
		"for the administrator": `{"name":"t","for":"local:owner","scopes":["run"]}`,
	} {
		if a := one.do("POST", "/api/v1/tokens", body, ops...); a.status != 403 {
			t.Errorf("it makes a token %s: %d %s", what, a.status, a.text)
		}
	}
	// An identity that is a user's goes with the user.
	if status := one.whoami(b.machine("ann's program", nil)...); status != http.StatusOK {
		t.Fatalf("ann's program is answered %d", status)
	}
	b.person("ann", "ann's program")
	identity := "oidc:" + url.PathEscape(b.first.URL) + "/" + url.PathEscape("ann's program")
	if status, out := b.mortise("users", "unlink", "ann", identity); status != 0 {
		t.Fatal(out)
	}
	testwait.Until(t, "a program whose identity was unlinked is answered 401", func() bool {
		return one.whoami(b.machine("ann's program", nil)...) == 401
	})
}
