package check_test

import (
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/check"
)

// TestAPluginWithASecretCanPass: a check has none of the secrets that are set, so what cannot do
// without one is not run, which is no failure; with the secret it runs, in whatever place and scope.
func TestAPluginWithASecretCanPass(t *testing.T) {
	t.Parallel()
	for _, place := range []string{`header: X-Key`, `header: Authorization, format: "Bearer {}"`, `query: key`} {
		for _, scope := range []string{"user", "system", "system_or_user"} {
			for _, given := range []bool{false, true} {
				t.Run(fmt.Sprint(place, " ", scope, " ", given), func(t *testing.T) {
					t.Parallel()
					server := httptest.NewServer(nethttp.HandlerFunc(func(w nethttp.ResponseWriter, r *nethttp.Request) {
						if r.Header.Get("X-Key") != "the-value-of-key" && r.Header.Get("Authorization") != "Bearer the-value-of-key" && r.URL.Query().Get("key") != "the-value-of-key" {
							w.WriteHeader(nethttp.StatusUnauthorized)
						}
					}))
					t.Cleanup(server.Close)
					at, dir, home := server.Listener.Addr().String(), t.TempDir(), t.TempDir()
					write(t, dir, with(onTrial("poster", "kind: operator, effects: [http_write], permissions: ['do:it']",
						fmt.Sprintf("capabilities: [http]\nhttp: {hosts: ['%s'], inject: [{host: '%s', %s, secret: SITE_KEY, allowed_scope: %s}]}", at, at, place, scope)),
						"examples/do.one.input.json", fmt.Sprintf(`{"url":%q}`, server.URL)))
					write(t, home, map[string]string{"mortise.yaml": "policy: {allow: [{}, {effects: [http_write]}]}\negress: {loopback: [on.trial]}\n"})
					o := check.Options{Effects: true, Config: filepath.Join(home, "mortise.yaml")}
					want := "not run on.trial/do: runs its example: examples/do.one.input.json: it needs the secret SITE_KEY, "
					if given {
						o.Secrets, want = map[string]string{"SITE_KEY": "the-value-of-key"}, "pass on.trial/do: runs its example"
					}
					got := strings.Join(outcomes(t, dir, o), "\n")
					if strings.Contains(got, "fail ") || !strings.Contains(got, want) || strings.Contains(got, "the-value-of-key") {
						t.Errorf("there is a failure, or no %q in\n%s", want, got)
					}
				})
			}
		}
	}
}
