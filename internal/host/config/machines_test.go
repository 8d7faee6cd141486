package config_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/config"
)

// What cannot be meant of machines is refused when the configuration is read.
func TestMachines(t *testing.T) {
	t.Parallel()
	text := func(machine string) []byte {
		return []byte("policy: {groups: {staff: [ann]}}\nserver: {public_url: 'https://x.example', machines: [" + machine + "]}\n")
	}
	good := "{name: ci, issuer: 'https://id.example', groups_claim: g, groups: {a: [staff]}, allow: [{principal: 'service::ci', claims: {sub: x}, scopes: [run]}]}"
	if c, err := config.Parse(text(good)); err != nil || len(c.Server.Machines) != 1 || c.Server.Machines[0].Allow[0].Claims["sub"] != "x" {
		t.Fatalf("%+v, %v", c.Server.Machines, err)
	}
	change := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for machine, want := range map[string]string{
		change("service::ci", "local:owner"):                        "the administrator",
		change("service::ci", "user::local:owner"):                  "the administrator",
		change("service::ci", "agent::ci"):                          "is an agent",
		change("service::ci", "sender:x"):                           "no principal",
		change("{sub: x}", "{}"):                                    "claims has 0 entries",
		change("{sub: x}", "{email: x}"):                            "write sub",
		change("{sub: x}", "{sub: x, name: y}"):                     "write sub",
		change("{sub: x}", "{sub: ''}"):                             "text of 1 to",
		change("https://id", "http://id"):                           "https address",
		change("name: ci", "name: C"):                               "no name of its own",
		change("[staff]", "[others]"):                               "policy.groups has no",
		change("groups_claim: g, ", ""):                             "go together",
		change("groups_claim", "algorithms: [HS256], groups_claim"): "not signed by",
		change("groups_claim", "algorithms: [none], groups_claim"):  "not signed by",
		change("groups_claim", "max_life: 25h, groups_claim"):       "max_life",
		good + ", " + good:                                          "no name of its own",
		"{name: ci, issuer: 'https://id.example', allow: []}":       "allow has 0 entries",
	} {
		if _, err := config.Parse(text(machine)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", machine, err)
		}
	}
	if _, err := config.Parse([]byte(strings.Replace(string(text(good)), "public_url: 'https://x.example', ", "", 1))); err == nil || !strings.Contains(err.Error(), "public_url") {
		t.Errorf("without an audience: %v", err)
	}
}
