package rest_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/rest"
)

// What the user of the operating system alone may say, no token says: on whose behalf they
// act, and which file of the machine is meant.
func TestATokenSaysNothingOfTheOwners(t *testing.T) {
	t.Parallel()
	b := begin(t, rest.Options{})
	things := b.things()
	for _, token := range []string{"mrt_ann", "mrt_root"} {
		b.is(b.ask(token, "GET", "/api/v1/me", "", rest.AsHeader, "ben"), 403, "policy_denied")
	}
	b.is(b.ask("mrt_root", "POST", "/api/v1/plugins:link", `{"path":"/tmp"}`), 403, "policy_denied")
	b.is(b.ask("mrt_ann", "POST", "/api/v1/calls", `{"operation":"desk/upper","input":{"text":"x"},"paths":["/etc/hostname"]}`), 403, "policy_denied")
	b.is(b.ask("mrt_ann", "POST", "/api/v1/sessions/"+things["session"]+"/artifacts", `{"path":"/etc/hostname"}`), 403, "policy_denied")
	b.is(b.ask("mrt_ann", "GET", "/api/v1/sessions/"+things["session"]+"?directory=true", ""), 403, "policy_denied")
	me := b.ask("mrt_ann", "GET", "/api/v1/me", "")
	if me.status != 200 || me.at("principal") != "ann" || fmt.Sprint(me.at("owner")) != "false" {
		t.Error(me)
	}
}
