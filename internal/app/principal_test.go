package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

func TestOnlyThoseActWhomTheConfigurationNames(t *testing.T) {
	t.Parallel()
	const text = `
principal: ann
approvals: {by: [bob, ann]}
policy:
  groups: {desk: [carl, bob], bots: ["agent::bot"]}
  roles: {sender: ["service::mailer"]}
  consent: {dot: [mail_send]}
  configure: [eve]
`
	c, err := config.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := host.Names(c), []string{"ann", "agent::bot", "bob", "carl", "dot", "eve", "service::mailer"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, config.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		as    string
		who   plugin.Principal
		owner bool
		code  plugin.Code
	}{
		{"", plugin.Principal{Type: "user", ID: "ann"}, true, ""},
		{"ann", plugin.Principal{Type: "user", ID: "ann"}, true, ""},
		{"bob", plugin.Principal{Type: "user", ID: "bob"}, false, ""},
		{"service::mailer", plugin.Principal{Type: "service", ID: "mailer"}, false, ""},
		{"agent::bot", plugin.Principal{Type: "agent", ID: "bot"}, false, ""},
		{"mailer", plugin.Principal{}, false, plugin.CodeUnauthenticated},
		{"zoe", plugin.Principal{}, false, plugin.CodeUnauthenticated},
	} {
		a, err := app.Open(t.Context(), app.Options{Home: home, As: c.as})
		if plugin.CodeOf(err) != c.code {
			t.Errorf("%q: %v", c.as, err)
			continue
		}
		if err != nil {
			continue
		}
		if a.Principal.Type != c.who.Type || a.Principal.ID != c.who.ID || a.Owner() != c.owner {
			t.Errorf("%q: got %+v, owner %v", c.as, a.Principal, a.Owner())
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The user of the operating system who runs a host is its owner, and cannot be made another
// principal: the command line would have no owner any more.
func TestTheOwnerOfAHostBecomesNoOther(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, config.FileName), []byte("principal: ann\napprovals: {by: [bob]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	users, self := a.As(a.Principal).Users(), strconv.Itoa(os.Getuid())
	if _, err := users.Create(t.Context(), "bob", self); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("the owner becomes bob: %v", err)
	}
	if _, err := users.Create(t.Context(), "bob", ""); err != nil {
		t.Error(err)
	}
	if _, err := users.Create(t.Context(), "ann", self); err != nil {
		t.Error(err)
	}
}
