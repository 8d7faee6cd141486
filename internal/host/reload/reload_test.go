package reload_test

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/host/reload"
)

func parse(t *testing.T, text string) config.Config {
	t.Helper()
	c, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func differences(t *testing.T, a, b config.Config) []string {
	t.Helper()
	keys, err := reload.Differences(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

const model = "{name: m, provider: openai, base_url: \"http://127.0.0.1:1/v1\", model: m}"

// Each line of a changed file is either in force or named as what needs a restart.
func TestWhatChangesAndWhatNeedsARestart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was, is          string
		changed, restart []string
	}{
		"nothing":           {was: "workers: 8\n", is: "workers: 8 # the default\n"},
		"people":            {is: "policy: {groups: {people: [ann]}, roles: {admin: [ann]}, consent: {ann: [mail]}}\n", changed: []string{"policy.consent", "policy.groups", "policy.roles"}},
		"tools":             {is: "mcp: {list: search}\n", changed: []string{"mcp.list"}},
		"approvers":         {is: "approvals: {by: [ann], self: true, expire: 1h}\n", changed: []string{"approvals.by", "approvals.self"}, restart: []string{"approvals.expire"}},
		"rates":             {is: "server: {rate: 3, burst: 4}\n", changed: []string{"server.burst", "server.rate"}},
		"an address":        {is: "server: {listen: \"127.0.0.1:9\"}\n", restart: []string{"server.listen"}},
		"proxies":           {is: "server: {trusted_proxies: [10.0.0.0/8]}\n", changed: []string{"server.trusted_proxies"}},
		"a certificate":     {was: "server: {tls_cert: a, tls_key: b}\n", is: "server: {tls_cert: c, tls_key: b}\n", changed: []string{"server.tls_cert"}},
		"encryption":        {is: "server: {tls_cert: c, tls_key: b}\n", restart: []string{"server.tls_cert", "server.tls_key"}},
		"no encryption":     {was: "server: {tls_cert: c, tls_key: b}\n", restart: []string{"server.tls_cert", "server.tls_key"}},
		"limits":            {is: "limits: {input_bytes: 10, calls: 7, frame_bytes: 2048}\n", changed: []string{"limits.calls", "limits.input_bytes"}, restart: []string{"limits.frame_bytes"}},
		"quotas":            {is: "quotas: {total: {day: 5}, principals: {ann: {minute: 3}}}\npolicy: {groups: {people: [ann]}}\n", changed: []string{"policy.groups", "quotas.principals", "quotas.total"}},
		"the log":           {is: "log: {level: debug, format: json}\n", changed: []string{"log.level"}, restart: []string{"log.format"}},
		"a database":        {was: "database: postgres://a:one@h/d\n", is: "database: postgres://a:two@h/d\n", restart: []string{"database"}},
		"sandbox, bindings": {is: "sandbox: best-effort\nworkers: 9\nsettings: {p: {a: b}}\n", restart: []string{"sandbox", "settings", "workers"}},
		"a first model":     {is: "models: {light: [" + model + "], budget: {day: 3}}\n", changed: []string{"models.budget"}, restart: []string{"models.light"}},
		"another model":     {was: "models: {light: [" + model + "]}\n", is: "models: {heavy: [" + model + "]}\n", changed: []string{"models.heavy", "models.light"}},
		"another owner": {is: "principal: eve\npolicy: {groups: {people: [eve]}}\n",
			restart: []string{"approvals.by", "policy.configure", "policy.groups", "principal"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			was, read := parse(t, c.was), parse(t, c.is)
			if name == "sandbox, bindings" {
				was.Sandbox = "required" // whatever the machine
			}
			now := reload.Merge(was, read)
			if got := differences(t, was, now); !slices.Equal(got, c.changed) {
				t.Errorf("in force are %q; want %q", got, c.changed)
			}
			if got := differences(t, now, read); !slices.Equal(got, c.restart) {
				t.Errorf("a restart is needed for %q; want %q", got, c.restart)
			}
		})
	}
}
