package app_test

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/plugin"
)

// What a client keeps for the host is of use to the tenant, principal and call that it was
// sealed for, and until it expires.
func TestAClientStateIsOfOneTenantAndExpires(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	made := tenants(t, a, "", "acme", "blue")
	acme, blue := made[0].As(made[0].Principal), made[1].As(made[1].Principal)
	state, err := acme.Seal([]byte("asked"), time.Hour, "tools/call", "mail.send")
	if err != nil {
		t.Fatal(err)
	}
	if value, err := acme.Unseal(state, "tools/call", "mail.send"); err != nil || string(value) != "asked" {
		t.Errorf("as it was sealed: %q, %v", value, err)
	}
	for what, try := range map[string]func() ([]byte, error){
		"another tenant, the owner too": func() ([]byte, error) { return blue.Unseal(state, "tools/call", "mail.send") },
		"another call":                  func() ([]byte, error) { return acme.Unseal(state, "tools/call", "mail.list") },
		"another principal": func() ([]byte, error) {
			return made[0].As(plugin.Principal{Type: "user", ID: "eve"}).Unseal(state, "tools/call", "mail.send")
		},
	} {
		if value, err := try(); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%s: %q, %v", what, value, err)
		}
	}
	if state, err = acme.Seal([]byte("asked"), 20*time.Millisecond, "x"); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the state expires", func() bool {
		_, err := acme.Unseal(state, "x")
		return plugin.CodeOf(err) == plugin.CodeInvalidInput
	})
}
