package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// What names something of the machine of the host is refused from a token of any scope, and
// nothing is done.
func TestWhatIsOfTheMachineIsTheOwnersAlone(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	for path, body := range map[string]string{
		"/api/v1/users":                   `{"principal":"ben","os_user":"0"}`,
		"/api/v1/plugins:register":        `{"path":"` + t.TempDir() + `"}`,
		"/api/v1/accounts/google:connect": `{}`,
		"/api/v1/secrets:rotate":          "",
		"/api/v1/secrets:delete-all":      "",
	} {
		b.is(b.ask("mrt_root", "POST", path, body), 403, "policy_denied")
	}
	users, err := b.app.As(person("root")).Users().List(t.Context())
	if err != nil || len(users) > 0 {
		t.Errorf("there are %d users (%v)", len(users), err)
	}
	for _, path := range []string{"/api/v1/plugins", "/api/v1/plugins/desk", "/api/v1/models"} {
		if a := b.is(b.ask("mrt_root", "GET", path, ""), 200, ""); strings.Contains(a.text, `"path"`) || strings.Contains(a.text, `"key"`) {
			t.Errorf("%s tells a token where something lies: %s", path, a)
		}
	}
}

// Files of policies are tried by who may change policies, in the place of those configured.
func TestTryingPolicies(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	body := `{"documents":[{"name":"a.cedar","text":"forbid (principal, action, resource);"}],"requests":[{"principal":"ann","operation":"desk/line"}]}`
	b.is(b.ask("mrt_ben", "POST", "/api/v1/policies:simulate", body), 403, "policy_denied")
	a := b.is(b.ask("mrt_root", "POST", "/api/v1/policies:simulate", body), 200, "")
	if fmt.Sprint(a.at("requests")) != "1" || len(a.body["differences"].([]any)) != 1 {
		t.Errorf("it is answered %s", a)
	}
	broken := strings.Replace(body, "forbid (", "forbid ((", 1)
	b.is(b.ask("mrt_root", "POST", "/api/v1/policies:simulate", broken), 422, "invalid_input")
}
