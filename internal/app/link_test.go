package app_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/plugin"
)

// linkAdapter links a user that an adapter reports to a principal.
func linkAdapter(t *testing.T, a *app.App, adapter, provider, external, principal string, scopes ...string) {
	t.Helper()
	if _, err := a.As(plugin.Principal{Type: "user", ID: "root"}).Identities().For(adapter).Link(t.Context(), provider, external, principal, scopes...); err != nil {
		t.Fatal(err)
	}
}
