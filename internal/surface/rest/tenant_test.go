package rest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// tenant makes a tenant on the host of a bench, and returns it with a token of its owner that
// may do all that the owner may.
func (b *bench) tenant(name string) (*app.App, string) {
	b.Helper()
	_, err := b.app.As(b.app.Principal).Tenants().Create(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	of, err := b.app.Tenant(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	_, secret, err := of.As(of.Principal).Tokens().Create(b.Context(), host.NewToken{Name: "all", Scopes: host.Scopes})
	if err != nil {
		b.Fatal(err)
	}
	return of, secret
}

// varies is what differs between two hosts that answer the same.
var varies = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|sess_[0-9a-f]{12}|art_[0-9a-f]+|mrt_[us][0-9A-Za-z_]+|` +
	`\d{4}-\d\d-\d\dT[0-9:.]+Z|"(id|subject|token)":"[0-9A-Za-z]{10}"|/invite#[0-9A-Za-z]+|"secret":"[^"]*"|"version":"sha256:[0-9a-f]+"|(sha256:)?[0-9a-f]{64}|"seq":\d+|(?m)^id: .*$|http://127.0.0.1:\d+|"duration_ms":\d+|"(took|seconds|latency_ms|elapsed)":[0-9.]+`)

// To the token of another tenant every route answers as if what there is were not there: as
// on a host on which none of it was ever made.
func TestRoutesOfAnotherTenant(t *testing.T) {
	t.Parallel()
	full, bare := begin(t, rest.Options{}), begin(t, rest.Options{})
	things := full.things()
	acme, theirs := full.tenant("acme")
	other, likewise := bare.tenant("acme")
	full.recovers("the reason of one site")
	bare.recovers("what happened to another")
	var doc document
	if err := json.Unmarshal(rest.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			name := strings.ToUpper(method) + " " + path
			row, known := rows[name]
			if !known {
				t.Errorf("%s has no row here", name)
				continue
			}
			if name == "POST /api/v1/tokens/current:rotate" {
				tried++
				continue // it ends the token that asks
			}
			if row.path == "" {
				row.path = path
			}
			where, body := fill(row.path, things), fill(row.body, things)
			for _, of := range []*app.App{acme, other} { // each tenant has a ledger, which writes the entries of refusals a moment later
				if err := of.As(of.Principal).Flush(t.Context(), false); err != nil {
					t.Fatal(err)
				}
			}
			there := full.ask(theirs, strings.ToUpper(method), where, body)
			none := bare.ask(likewise, strings.ToUpper(method), where, body)
			if got, want := varies.ReplaceAllString(there.text, "~"), varies.ReplaceAllString(none.text, "~"); there.status != none.status || got != want {
				for i := range min(len(got), len(want)) {
					if got[i] != want[i] {
						got, want = "..."+got[max(0, i-60):], "..."+want[max(0, i-60):]
						break
					}
				}
				t.Errorf("%s: it is answered %d %s, and where there is nothing %d %s", name, there.status, got, none.status, want)
			}
			for _, of := range []string{full.app.Config.Tenant, full.app.Config.Principal} {
				if there.text != string(rest.Document()) && strings.Contains(there.text, `"`+of+`"`) {
					t.Errorf("%s: the answer has the site's %s: %s", name, of, there)
				}
			}
			for what, id := range things {
				if len(id) > 12 && strings.Contains(there.text, id) && !strings.Contains(where+body, id) {
					t.Errorf("%s: the answer has the %s of another tenant: %s", name, what, there)
				}
			}
			tried++
		}
	}
	if tried != len(rows) {
		t.Errorf("%d of %d routes were tried", tried, len(rows))
	}
}

// The tenants of the site are for its owner: others of the site are refused, and to the owner
// of a tenant there is nothing at these paths, whatever they name.
func TestTheTenantsAreTheSitesOwners(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	_, theirs := b.tenant("acme")
	if a := b.is(b.ask("mrt_site", "GET", "/api/v1/tenants", ""), 200, ""); !strings.Contains(a.text, `"acme"`) || strings.Contains(a.text, `"directory"`) {
		t.Errorf("the owner with a token is answered %s", a)
	}
	nothing := b.is(b.ask(theirs, "GET", "/api/v1/no-such-path", ""), 404, "not_found")
	for path, body := range map[string]string{"": `{"name":"mine"}`, "/acme": "", "/acme:disable": "", "/none:disable": "", "/local:enable": ""} {
		method := "POST"
		if path == "/acme" {
			method = "GET"
		}
		b.is(b.ask("mrt_root", method, "/api/v1/tenants"+path, body), 403, "policy_denied")
		b.is(b.ask("mrt_site:configure", method, "/api/v1/tenants"+path, body), 403, "scope_denied")
		if a := b.is(b.ask(theirs, method, "/api/v1/tenants"+path, body), 404, "not_found"); a.at("detail") != nothing.at("detail") {
			t.Errorf("the owner of a tenant learns of %s: %s", path, a)
		}
	}
	b.is(b.ask(theirs, "GET", "/api/v1/tenants", ""), 404, "not_found")
	if rows, err := b.app.As(b.app.Principal).Tenants().List(t.Context()); err != nil || len(rows) != 2 || !rows[1].DisabledAt.IsZero() {
		t.Errorf("the tenants are %+v, %v", rows, err)
	}
	becomes := func(status int) {
		t.Helper()
		testwait.Until(t, fmt.Sprintf("a token of the tenant is answered %d", status), func() bool {
			return b.ask(theirs, "GET", "/api/v1/calls", "").status == status
		})
	}
	b.is(b.ask("mrt_site", "POST", "/api/v1/tenants/acme:disable", ""), 200, "")
	becomes(401)
	b.is(b.ask("mrt_site", "POST", "/api/v1/tenants/acme:enable", ""), 200, "")
	becomes(200)
	b.is(b.ask("mrt_site", "POST", "/api/v1/tenants", `{"name":"No Name"}`), 422, "invalid_input")

}
