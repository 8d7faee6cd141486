package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/store"
)

// TestALinkEndsWithItsPrincipal: a sender who is linked to a principal that the configuration does
// not name any more, to a user who is disabled, or to an agent, is a guest as one without a link.
func TestALinkEndsWithItsPrincipal(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", `policy: {groups: {people: [ann, ben, "service::ci", "agent::bot"]}}`)
	a := open(t, home)
	ctx := t.Context()
	guests := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, id := range []string{"ann", "ben", "service::ci", "agent::bot"} {
			who, err := a.Sender(ctx, "desk", id)
			if err != nil {
				t.Fatal(err)
			}
			if principal.Name(who) != id {
				got = append(got, id)
				if len(who.Scopes) != 0 {
					t.Errorf("%s: the sender of %s has rights: %+v", when, id, who)
				}
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s, guests are the senders of %q, want %q", when, got, want)
		}
	}
	if err := a.Store.Write(ctx, func(tx store.Tx) error {
		for _, id := range []string{"ann", "ben", "service::ci", "agent::bot"} {
			p := principal.Parse(id)
			if err := tx.PutIdentity(store.IdentityRow{Tenant: "local", Provider: "desk", ExternalID: id, PrincipalType: p.Type, PrincipalID: p.ID, Scopes: []string{"*"}, By: "local:owner"}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	guests("with all named", "agent::bot")
	users := a.As(a.Principal).Users()
	if _, err := users.Create(ctx, "ann", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := users.Disable(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	guests("with a user disabled", "ann", "agent::bot")
	if _, err := users.Enable(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	guests("with the user enabled", "agent::bot")
	if err := os.WriteFile(filepath.Join(home, config.FileName), []byte("policy: {groups: {people: [ann]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Reload(func(config.Config) (func(), error) { return func() {}, nil }); err != nil {
		t.Fatal(err)
	}
	guests("with principals that are named no more", "ben", "service::ci", "agent::bot")
}

// TestNoSenderIsAPrincipalByWhatTheyAreCalled: neither a sender nor an administrator
// who names a channel makes a sender without a link one of the host's principals,
// whatever colons are in their names.
func TestNoSenderIsAPrincipalByWhatTheyAreCalled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "mortise.yaml", `policy:
  configure: ["local:owner", ann, "os:0", "desk:U1", "service::books", "agent::desk"]
`)
	a := open(t, home)
	known := append(host.Names(a.Config), "local:owner", "os:0", "ann", "user::ann", "service::books", "agent::desk", "desk:U1", "sender:desk:U1")
	seen := map[string]string{}
	for _, name := range known {
		for i := range len(name) + 1 {
			channel, id := name[:i], strings.TrimPrefix(name[i:], ":")
			for _, sender := range []string{id, name[i:], ":" + id} {
				who, err := a.Sender(t.Context(), channel, sender)
				if err != nil {
					t.Fatal(err)
				}
				is := principal.Name(who)
				for _, other := range known {
					if o := principal.Parse(other); !strings.HasPrefix(other, "sender:") && (o.ID == who.ID || principal.Name(o) == is) {
						t.Errorf("%q of the channel %q is %s", sender, channel, other)
					}
				}
				if len(who.Scopes) != 0 || who.Type != "user" {
					t.Errorf("%q of the channel %q has rights: %+v", sender, channel, who)
				}
				if strings.Contains(channel, ":") { // no channel has such a name
					continue
				}
				place := channel + "\x00" + sender
				if was := seen[who.ID]; was != "" && was != place {
					t.Errorf("%q and %q are one principal", was, place)
				}
				seen[who.ID] = place
			}
		}
	}
}
