package app_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

const linkers = `
policy:
  configure: [ann]
  groups: {staff: [bob, "service::bot", "agent::planner", "user::carl"]}
`

// TestLinksAreMadeForPrincipalsOfThisHost by who may, with exactly the scopes that were
// given, and on the record in one transaction.
func TestLinksAreMadeForPrincipalsOfThisHost(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", linkers)
	a := open(t, home)
	links := a.As(principal.Parse("ann")).Identities()

	first, err := links.Link(t.Context(), "slack", "T1/U 1", "bob", "b", "a", "b")
	if err != nil || first.Principal != "bob" || !slices.Equal(first.Scopes, []string{"a", "b"}) || first.By != "ann" {
		t.Fatalf("%+v, %v", first, err)
	}
	for principal, want := range map[string]string{"service::bot": "service::bot", "user::carl": "carl", "carl": "carl", "ann": "ann"} {
		if i, err := links.Link(t.Context(), "portal", principal, principal); err != nil || i.Principal != want || len(i.Scopes) != 0 {
			t.Errorf("%s: %+v, %v", principal, i, err)
		}
	}
	if i, err := links.Link(t.Context(), "portal", "local:owner", "local:owner"); plugin.CodeOf(err) != plugin.CodePolicyDenied {
		t.Errorf("who may link users links one to the administrator: %+v, %v", i, err)
	}
	for name, c := range map[string]struct {
		provider, id, principal string
		scopes                  []string
		code                    plugin.Code
	}{
		"an agent":             {"slack", "U", "agent::planner", nil, plugin.CodeInvalidInput},
		"an unknown agent":     {"slack", "U", "agent::other", nil, plugin.CodeInvalidInput},
		"no principal":         {"slack", "U", "eve", nil, plugin.CodeNotFound},
		"another type":         {"slack", "U", "service::bob", nil, plugin.CodeNotFound},
		"no name":              {"slack", "U", "", nil, plugin.CodeNotFound},
		"no provider":          {"", "U", "bob", nil, plugin.CodeInvalidInput},
		"no id":                {"slack", "", "bob", nil, plugin.CodeInvalidInput},
		"a hidden character":   {"slack", "U\u200b", "bob", nil, plugin.CodeInvalidInput},
		"no text":              {"slack", "U\xff", "bob", nil, plugin.CodeInvalidInput},
		"an overlong id":       {"slack", strings.Repeat("ü", 201), "bob", nil, plugin.CodeInvalidInput},
		"an empty scope":       {"slack", "U", "bob", []string{""}, plugin.CodeInvalidInput},
		"two scopes in one":    {"slack", "U", "bob", []string{"a b"}, plugin.CodeInvalidInput},
		"more scopes than fit": {"slack", "U", "bob", strings.Split(strings.Repeat("x", 65), ""), ""},
	} {
		if name == "more scopes than fit" {
			for i := range c.scopes {
				c.scopes[i] += string(rune('!' + i))
			}
			c.code = plugin.CodeLimitExceeded
		}
		if i, err := links.Link(t.Context(), c.provider, c.id, c.principal, c.scopes...); plugin.CodeOf(err) != c.code {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
	if long, err := links.Link(t.Context(), strings.Repeat("ü", 200), "U", "bob", "*"); err != nil || !slices.Equal(long.Scopes, []string{"*"}) {
		t.Errorf("%+v, %v", long, err)
	}

	again, err := links.Link(t.Context(), "slack", "T1/U 1", "carl")
	if err != nil || again.Principal != "carl" || len(again.Scopes) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	all, err := links.List(t.Context())
	if err != nil || len(all) != 6 || all[4].ExternalID != "T1/U 1" || all[4].Principal != "carl" {
		t.Errorf("%+v, %v", all, err)
	}
	if gone, err := links.Unlink(t.Context(), "slack", "T1/U 1"); err != nil || gone.Principal != "carl" {
		t.Errorf("%+v, %v", gone, err)
	}
	if _, err := links.Unlink(t.Context(), "slack", "T1/U 1"); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("%v", err)
	}

	recorded, err := a.Ledger.List(t.Context(), ledger.Filter{Kind: "identity.", Subject: "slack:T1/U 1"})
	if err != nil || len(recorded) != 3 {
		t.Fatalf("%+v, %v", recorded, err)
	}
	var second struct {
		Principal string        `json:"principal"`
		Was       host.Identity `json:"was"`
	}
	if err := json.Unmarshal(recorded[1].Body, &second); err != nil || recorded[1].Kind != plugin.EntryIdentityLinked || recorded[1].Principal != "ann" ||
		second.Principal != "carl" || second.Was.Principal != "bob" || len(second.Was.Scopes) != 2 {
		t.Errorf("%+v, %v", second, err)
	}
	if recorded[0].Kind != plugin.EntryIdentityGone {
		t.Errorf("%s", recorded[0].Kind)
	}
}

// TestLinkingNeedsTheRightToConfigure, also for who would link themselves.
func TestLinkingNeedsTheRightToConfigure(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", linkers)
	a := open(t, home)
	if _, err := a.As(principal.Parse("ann")).Identities().Link(t.Context(), "slack", "U1", "carl"); err != nil {
		t.Fatal(err)
	}
	for _, who := range []string{"bob", "local:owner", "service::bot", "agent::planner"} {
		links := a.As(principal.Parse(who)).Identities()
		_, link := links.Link(t.Context(), "slack", "U1", who, "*")
		_, unlink := links.Unlink(t.Context(), "slack", "U1")
		_, list := links.List(t.Context())
		for what, err := range map[string]error{"link": link, "unlink": unlink, "list": list} {
			if plugin.CodeOf(err) != plugin.CodePolicyDenied {
				t.Errorf("%s may %s: %v", who, what, err)
			}
		}
	}
	if row, err := a.Store.Identity(t.Context(), "local", "slack", "U1"); err != nil || row == nil || row.PrincipalID != "carl" {
		t.Errorf("%+v, %v", row, err)
	}
	if refused, err := a.Ledger.List(t.Context(), ledger.Filter{Kind: string(plugin.EntryIdentityRefused)}); err != nil || len(refused) != 12 {
		t.Errorf("%d refusals are on record, %v", len(refused), err)
	}
}
