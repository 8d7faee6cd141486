package app_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/plugin"
)

// TestStandingIsThatOfOneTenant: who is called the same in another tenant, or
// is of another type, has no part in it.
func TestStandingIsThatOfOneTenant(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Policy.Groups = map[string][]string{"staff": {"ann", "service::bot"}}
	c.Policy.Roles = map[string][]string{"sender": {"ann"}}
	e, err := app.OpenPolicy(c, "mortise.yaml", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		tenant, who   string
		groups, roles int
	}{
		{"local", "ann", 1, 1},
		{"local", "user::ann", 1, 1},
		{"local", "service::bot", 1, 0},
		{"local", "bot", 0, 0},
		{"local", "service::ann", 0, 0},
		{"other", "ann", 0, 0},
	} {
		s := e.Standing(k.tenant, app.ParseMember(k.who))
		if len(s.Groups) != k.groups || len(s.Roles) != k.roles {
			t.Errorf("%s of %s: %+v", k.who, k.tenant, s)
		}
	}
	if name := app.MemberName(plugin.Principal{Type: "agent", ID: "x"}); name != "agent::x" || app.ParseMember(name).Type != "agent" {
		t.Error(name)
	}
}
