package machine_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
	"github.com/mortise-dev/mortise/internal/surface/machine"
	"github.com/mortise-dev/mortise/plugin"
)

const audience = "https://mortise.example.com"

func verifier(t *testing.T, provider *accounttest.Server) *machine.Verifier {
	t.Helper()
	v, err := machine.New(audience, []machine.Issuer{{
		Issuer: provider.URL, GroupsClaim: "groups", Groups: map[string][]string{"ops": {"operators", "staff"}, "dev": {"staff"}},
		Rules: []machine.Rule{
			{Principal: "service::main", Claims: map[string]string{"sub": "main"}, Scopes: []string{"run"}, Operations: []string{"desk/*"}},
			{Principal: "service::prod", Claims: map[string]string{"sub": "prod", "environment": "production"}},
			{Principal: "service::both", Claims: map[string]string{"environment": "both"}},
			{Principal: "service::too", Claims: map[string]string{"sub": "both"}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A token counts as what the configuration makes of its claims, and as no more.
func TestATokenIsWhoItsClaimsSay(t *testing.T) {
	t.Parallel()
	provider := accounttest.New(t)
	v := verifier(t, provider)
	m, err := v.Verify(t.Context(), provider.Machine(audience, "main", map[string]any{
		"groups": []any{"ops", "dev", "unknown", 7, "local:owner"}, "scope": "admin", "email": "root@example.com", "principal": "local:owner",
	}))
	if left := time.Until(m.Expires); err != nil || left < 4*time.Minute || left > 5*time.Minute {
		t.Fatalf("%+v, %v", m, err)
	}
	m.Expires = time.Time{}
	want := host.Machine{Issuer: provider.URL, Subject: "main", Principal: "service::main", Scopes: []string{"run"}, Operations: []string{"desk/*"}, Groups: []string{"operators", "staff"}}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, want %+v", m, want)
	}
	if m, err := v.Verify(t.Context(), provider.Machine(audience, "prod", map[string]any{"environment": "production", "groups": "dev"})); err != nil || m.Principal != "service::prod" || !reflect.DeepEqual(m.Groups, []string{"staff"}) {
		t.Errorf("%+v, %v", m, err)
	}
}

// What is forged, for others, too early, too late, too long or fits no rule is refused in one word.
func TestWhatIsNoTokenIsRefused(t *testing.T) {
	t.Parallel()
	provider, other := accounttest.New(t), accounttest.New(t)
	v := verifier(t, provider)
	in := func(d time.Duration) any { return time.Now().Add(d).Unix() }
	with := func(claims map[string]any) string { return provider.Machine(audience, "main", claims) }
	good := with(nil)
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	provider.Forge = true
	forged := with(nil)
	provider.Forge = false
	provider.Unsigned = true
	unsigned := with(nil)
	provider.Unsigned = false
	parts, more := strings.Split(good, "."), strings.Split(with(map[string]any{"groups": "ops"}), ".")
	for what, text := range map[string]string{
		"a key that is not published":         forged,
		"no signature":                        unsigned,
		"HMAC by the public key":              provider.Confused(audience, "main"),
		"the signature of another":            more[0] + "." + more[1] + "." + parts[2],
		"a signature that was cut off":        parts[0] + "." + parts[1] + ".",
		"two parts":                           parts[0] + "." + parts[1],
		"no parts":                            "mrt",
		"nothing":                             "",
		"more than fits":                      with(map[string]any{"x": strings.Repeat("x", machine.MaxToken)}),
		"another audience":                    provider.Machine("https://other.example.com", "main", nil),
		"an audience with a slash more":       provider.Machine(audience+"/", "main", nil),
		"an audience with another":            with(map[string]any{"aud": []any{audience, "https://other.example.com"}}),
		"no audience":                         with(map[string]any{"aud": nil}),
		"the client of the sign-in":           provider.Machine(accounttest.ClientID, "main", nil),
		"an issuer that is not configured":    other.Machine(audience, "main", nil),
		"the name of another issuer":          other.Machine(audience, "main", map[string]any{"iss": provider.URL}),
		"an issuer with a slash more":         with(map[string]any{"iss": provider.URL + "/"}),
		"no issuer":                           with(map[string]any{"iss": nil}),
		"no subject":                          with(map[string]any{"sub": nil}),
		"a subject in other letters":          with(map[string]any{"sub": "Main"}),
		"expired":                             with(map[string]any{"iat": in(-20 * time.Minute), "nbf": in(-20 * time.Minute), "exp": in(-2 * time.Minute)}),
		"no end":                              with(map[string]any{"exp": nil}),
		"no beginning":                        with(map[string]any{"iat": nil}),
		"of the future":                       with(map[string]any{"iat": in(2 * time.Minute), "nbf": nil}),
		"not in force yet":                    with(map[string]any{"nbf": in(2 * time.Minute)}),
		"a beginning in words":                with(map[string]any{"nbf": "now"}),
		"in force for too long":               with(map[string]any{"exp": in(61 * time.Minute)}),
		"an end before its beginning":         with(map[string]any{"iat": in(30 * time.Second), "exp": in(10 * time.Second)}),
		"a claim that the rule wants is away": provider.Machine(audience, "prod", nil),
		"a claim is another":                  provider.Machine(audience, "prod", map[string]any{"environment": "test"}),
		"a claim is a list of it":             provider.Machine(audience, "prod", map[string]any{"environment": []any{"production"}}),
		"two rules fit":                       provider.Machine(audience, "both", map[string]any{"environment": "both"}),
	} {
		if m, err := v.Verify(t.Context(), text); plugin.CodeOf(err) != plugin.CodeUnauthenticated || plugin.AsError(err).Message != "the token is not valid" || !reflect.DeepEqual(m, host.Machine{}) {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
	// The clocks may differ by a minute.
	for what, claims := range map[string]map[string]any{
		"just expired":  {"iat": in(-5 * time.Minute), "nbf": in(-5 * time.Minute), "exp": in(-30 * time.Second)},
		"a little soon": {"iat": in(30 * time.Second), "nbf": in(30 * time.Second)},
	} {
		if _, err := v.Verify(t.Context(), with(claims)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if asked := count(other); asked != 0 {
		t.Errorf("an issuer that is not configured was asked %d times", asked)
	}
}

func count(s *accounttest.Server) int {
	s.Lock()
	defer s.Unlock()
	return s.Asked
}

// Keys are asked for when a token names one that is not known, a few times and no more,
// whatever comes; a key that replaces another is found, and the other counts no more after that.
func TestKeysAreAskedForAtABoundedRate(t *testing.T) {
	t.Parallel()
	provider := accounttest.New(t)
	v := verifier(t, provider)
	before := provider.Machine(audience, "main", nil)
	for range 50 {
		if _, err := v.Verify(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
	if asked := count(provider); asked != 1 {
		t.Errorf("the keys were asked for %d times for good tokens of one key", asked)
	}
	provider.Rotate()
	after := provider.Machine(audience, "main", nil)
	if _, err := v.Verify(t.Context(), after); err != nil {
		t.Errorf("a key that replaces another: %v", err)
	}
	if _, err := v.Verify(t.Context(), before); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("a key that was withdrawn: %v", err)
	}
	provider.Lock()
	provider.Forge = true
	provider.Unlock()
	for n := range 500 {
		if _, err := v.Verify(t.Context(), provider.Machine(audience, "main", map[string]any{"jti": fmt.Sprint(n)})); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
			t.Fatalf("a forged token: %v", err)
		}
	}
	if asked := count(provider); asked > 4 {
		t.Errorf("500 forged tokens had the keys asked for %d times", asked)
	}
	if _, err := v.Verify(t.Context(), after); err != nil {
		t.Errorf("a good token beside them: %v", err)
	}
}

// A provider that is away is said to be that, and is found when it is back.
func TestAProviderThatIsAway(t *testing.T) {
	t.Parallel()
	provider := accounttest.New(t)
	v := verifier(t, provider)
	text := provider.Machine(audience, "main", nil)
	provider.Close()
	if _, err := v.Verify(t.Context(), text); plugin.CodeOf(err) != plugin.CodeUnavailable {
		t.Errorf("%v", err)
	}
}

// Rules have scopes and operations that a token can have.
func TestRulesHaveWhatATokenCanHave(t *testing.T) {
	t.Parallel()
	for _, rule := range []machine.Rule{{Scopes: []string{"everything"}}, {Operations: []string{"desk"}}, {Operations: []string{"*/*"}}} {
		if _, err := machine.New(audience, []machine.Issuer{{Rules: []machine.Rule{rule}}}); err == nil {
			t.Errorf("%+v", rule)
		}
	}
}
