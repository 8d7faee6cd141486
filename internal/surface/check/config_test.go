package check_test

import (
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/check"
)

// TestEffectsAreForTheConfigurationToAllow: with --effects, what happens is what
// the policy and the egress of a configuration let happen, and what they do not
// is no fault of the plugin.
func TestEffectsAreForTheConfigurationToAllow(t *testing.T) {
	t.Parallel()
	const loopback = "egress: {loopback: [on.trial]}\n"
	cedar := func(policy string) map[string]string {
		return map[string]string{
			"mortise.yaml":       "principal: ann\npolicy: {files: [rules/policy.cedar], roles: {senders: [ann]}, consent: {ann: [http_write]}}\n" + loopback,
			"rules/policy.cedar": policy,
		}
	}
	yaml := func(text string) map[string]string { return map[string]string{"mortise.yaml": text} }
	for _, c := range []struct {
		name    string
		config  map[string]string // no file is no configuration
		effects bool
		posts   bool
		failed  int
		want    string
	}{
		{"allowed", yaml("policy: {allow: [{}, {effects: [http_write]}]}\n" + loopback), true, true, 0,
			"pass on.trial/do: a repeated key gives the first result and runs nothing"},
		{"allowed to who has the role", cedar(`permit (principal in Role::"senders", action, resource) when { context.consent.contains("http_write") };`), true, true, 0,
			"pass on.trial/do: refuses who lacks its permissions itself"},
		{"no configuration", nil, true, false, 2, "fail on.trial/do: runs its example: "},
		{"no egress", yaml("policy: {allow: [{}, {effects: [http_write]}]}\n"), true, false, 2, "fail on.trial/do: runs its example: "},
		{"not allowed", yaml(loopback), true, false, 0, "not run on.trial/do: runs its example: examples/do.one.input.json: the configuration does not allow it: "},
		{"a person is asked", cedar(`@approval("mind it") permit (principal, action, resource);`), true, false, 0,
			"not run on.trial/do: runs its example: examples/do.one.input.json: the configuration has a person asked first, and here is none: "},
		{"no effects", yaml("policy: {allow: [{}, {effects: [http_write]}]}\n" + loopback), false, false, 0, "not run on.trial/do: runs its example: it has effects (http_write): they happen with --effects"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var posts atomic.Int64
			server := httptest.NewServer(nethttp.HandlerFunc(func(nethttp.ResponseWriter, *nethttp.Request) { posts.Add(1) }))
			t.Cleanup(server.Close)
			dir, home := t.TempDir(), t.TempDir()
			files := onTrial("poster", "kind: operator, effects: [http_write], permissions: ['do:it']", "capabilities: [http]\nhttp: {hosts: ['"+server.Listener.Addr().String()+"']}")
			write(t, dir, with(files, "examples/do.one.input.json", fmt.Sprintf(`{"url":%q}`, server.URL)))
			o := check.Options{Effects: c.effects}
			if c.config != nil {
				write(t, home, c.config)
				o.Config = filepath.Join(home, "mortise.yaml")
			}
			lines := outcomes(t, dir, o)
			all, failures := strings.Join(lines, "\n"), 0
			for _, line := range lines {
				if strings.HasPrefix(line, "fail ") {
					failures++
				}
			}
			if failures != c.failed || !strings.Contains(all, c.want) || (posts.Load() > 0) != c.posts {
				t.Errorf("%d posts, %d failures and no %q in\n%s", posts.Load(), failures, c.want, all)
			}
		})
	}
}

// TestAConfigurationThatCannotBeUsedEndsTheCheck rather than being left out.
func TestAConfigurationThatCannotBeUsedEndsTheCheck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, onTrial("echo", "kind: tool", ""))
	write(t, dir, map[string]string{"wrong.yaml": "polcy: {}\n"})
	for _, path := range []string{filepath.Join(dir, "wrong.yaml"), filepath.Join(dir, "absent.yaml")} {
		if _, err := check.Run(t.Context(), dir, check.Options{Effects: true, Config: path}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
