package app_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/host"
)

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
