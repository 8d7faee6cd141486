package signin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/plugin"
)

// A cast is the people of a host, each with the ways in which they come.
type cast struct {
	*bench
	owner, bob *browser // the owner with an account of theirs, and a second person
	asOwner    []string // a token of the owner's
	forAnn     []string // a token that the owner made for ann
	rotated    []string // one that the owner made for ann, and its holder rotated
}

func newCast(t *testing.T) *cast {
	b := beginWith(t, withMachines)
	c := &cast{bench: b, owner: b.person("local:owner", "the owner's account"), bob: b.person("bob", "one of two")}
	token := func(name, principal string) []string {
		t.Helper()
		status, out := b.mortise("tokens", "create", name, "--for", principal, "--scope", "run", "--scope", "read", "--scope", "approve", "--json")
		if status != 0 {
			t.Fatalf("%d %s", status, out)
		}
		return []string{"Authorization", "Bearer " + answer{text: out}.at("token")}
	}
	c.asOwner, c.forAnn = token("first", "local:owner"), token("second", "ann")
	a := b.browser().do("POST", "/api/v1/tokens/current:rotate", "", token("third", "ann")...)
	if a.status != http.StatusOK {
		t.Fatalf("a token is not rotated: %d %s", a.status, a.text)
	}
	c.rotated = []string{"Authorization", "Bearer " + a.at("token")}
	return c
}

// socket asks over the owner's socket.
func (c *cast) socket() string {
	c.Helper()
	a := c.overSocket("POST", "/api/v1/operations/desk/line:execute", `{"input":{"text":"x"}}`)
	if a.status != http.StatusAccepted {
		c.Fatalf("over the socket it is answered %d %s", a.status, a.text)
	}
	return a.at("approval", "id")
}

// approveOverSocket is [browser.approve] over the owner's socket.
func (c *cast) approveOverSocket(id string) string {
	c.Helper()
	a := c.overSocket("POST", "/api/v1/approvals/"+id+":approve", `{}`)
	if a.status == http.StatusOK {
		return ""
	}
	return a.at("code")
}

// onBehalf asks on behalf of another at the command line.
func (c *cast) onBehalf(name string) string {
	c.Helper()
	status, out := c.mortise("run", "desk/line", "--set", "text=x", "--as", name, "--no-wait", "--json")
	id := answer{text: out}.at("approval", "id")
	if len(id) != 36 {
		c.Fatalf("on behalf of %s it is answered %d %s", name, status, out)
	}
	return id
}

// channel asks as the sender of a channel who is linked by a command line, with --as where
// as is not "".
func (c *cast) channel(to, as string) string {
	c.Helper()
	args := []string{"identities", "link", "slack", "U1", to, "--scope", "*"}
	if as != "" {
		args = append(args, "--as", as)
	}
	if status, out := c.mortise(args...); status != 0 {
		c.Fatalf("%d %s", status, out)
	}
	link, err := c.app.Store.Identity(c.Context(), "local", "slack", "U1")
	if err != nil {
		c.Fatal(err)
	}
	who, _, asker := host.Sender(link, "slack", "U1")
	res, err := c.app.Kernel.Call(c.Context(), plugin.Call{
		Tenant: "local", Principal: who, Asker: asker, Origin: plugin.OriginAgent, Operation: "desk/line", Input: json.RawMessage(`{"text":"x"}`), NoWait: true,
	})
	if err != nil || res.Approval == nil {
		c.Fatalf("%+v, %v", res, err)
	}
	return res.Approval.ID
}

// taken uses an invitation of ann's with an account, as the owner could who made it.
func (c *cast) taken(account string) *browser {
	c.Helper()
	c.mortise("users", "create", "ann")
	one := c.browser()
	if a := one.accept(c.invite("ann"), account); a.status != http.StatusSeeOther {
		c.Fatalf("%d %s", a.status, a.text)
	}
	return one
}

// Who asked does not approve, in whichever way they come. A second person does.
func TestWhoAskedIsNoSecondPerson(t *testing.T) {
	const self = "approval_self"
	c := newCast(t)
	one := c.browser() // for programs
	asCI, asBob := c.machine("one of two", map[string]any{"for": "ci"}), c.machine("one of two", map[string]any{"for": "bob"})
	ownersProgram, builds := c.machine("the owner's account", nil), c.machine("builds", nil)
	for _, way := range []struct {
		name string
		do   func() string // asks and approves, and returns the code of the refusal
		want string
	}{
		{"asked with --as, approved over the socket", func() string { return c.approveOverSocket(c.onBehalf("ann")) }, self},
		{"asked with --as, approved with their account", func() string { return c.owner.approve(c.onBehalf("ann")) }, self},
		{"asked over the socket, approved with --as", func() string {
			if status, out := c.mortise("approvals", "approve", c.socket(), "--as", "ann"); status != 5 || !strings.Contains(out, "one person under two names") {
				return out
			}
			return self
		}, self},
		{"asked with a token, approved with another of theirs", func() string { return one.approve(one.ask(c.asOwner...), c.asOwner...) }, self},
		{"asked over the socket, approved with a token that they made for another", func() string { return one.approve(c.socket(), c.forAnn...) }, self},
		{"asked with a token that they made for another, approved with their account", func() string { return c.owner.approve(one.ask(c.forAnn...)) }, self},
		{"asked over the socket, approved with their account", func() string { return c.owner.approve(c.socket()) }, self},
		{"asked with their account, approved over the socket", func() string { return c.approveOverSocket(c.owner.ask()) }, self},
		{"asked over the socket, approved by a program with their account", func() string { return one.approve(c.socket(), ownersProgram...) }, self},
		{"asked by a program with their account, approved over the socket", func() string { return c.approveOverSocket(one.ask(ownersProgram...)) }, self},
		{"asked by a program, approved by it as another principal", func() string { return one.approve(one.ask(asCI...), asBob...) }, self},
		{"asked by a program with their account, approved in a browser", func() string { return c.bob.approve(one.ask(asCI...)) }, self},
		{"asked in a browser, approved by a program with their account", func() string { return one.approve(c.bob.ask(), asCI...) }, self},
		{"asked over the socket, approved with an account that took their invitation", func() string { return c.taken("a second account").approve(c.socket()) }, self},
		{"asked with an account that took their invitation, approved over the socket", func() string { return c.approveOverSocket(c.taken("a second account").ask()) }, self},
		{"asked by an account of a channel that they linked, approved over the socket", func() string { return c.approveOverSocket(c.channel("bob", "")) }, self},
		{"asked by an account of a channel that they linked with --as, approved with their account", func() string { return c.owner.approve(c.channel("bob", "local:owner")) }, self},
		{"asked by their account of a channel, approved by a program of theirs", func() string { return one.approve(c.channel("bob", ""), asCI...) }, self},
		{"asked by a program, approved in a browser after they were disabled and enabled", func() string {
			asked := one.ask(asCI...)
			if status, out := c.mortise("users", "disable", "bob"); status != 0 {
				return out
			}
			testwait.Until(t, "bob, who was disabled, is answered 401", func() bool { return c.bob.whoami() == 401 && one.whoami(asCI...) == 401 })
			if status, out := c.mortise("users", "enable", "bob"); status != 0 {
				return out
			}
			if a := c.bob.signIn("one of two", "&prompt=login"); a.status != http.StatusSeeOther {
				return a.text
			}
			return c.bob.approve(asked)
		}, self},
		{"asked over the socket, approved by another", func() string { return c.bob.approve(c.socket()) }, ""},
		{"asked with --as, approved by another", func() string { return c.bob.approve(c.onBehalf("ann")) }, ""},
		{"asked with their account, approved with a token that its holder rotated", func() string { return one.approve(c.owner.ask(), c.rotated...) }, ""},
		{"asked by another, approved with their account", func() string { return c.owner.approve(c.bob.ask()) }, ""},
		{"asked over the socket, approved by a program of another", func() string { return one.approve(c.socket(), builds...) }, ""},
		{"asked by an account of a channel that they linked, approved by a third", func() string { return one.approve(c.channel("bob", ""), builds...) }, ""},
		{"asked over the socket, approved with an account whose holder says that it is theirs alone", func() string {
			ann := c.taken("ann's account")
			if a := ann.do("POST", "/auth/own", ""); a.status != http.StatusSeeOther {
				return a.text
			}
			return ann.approve(c.socket())
		}, ""},
		{"asked with an account that was unlinked, approved over the socket", func() string {
			asked := c.owner.ask()
			if status, out := c.mortise("users", "unlink", "local:owner", "oidc:"+url.PathEscape(c.first.URL)+"/"+url.PathEscape("the owner's account")); status != 0 {
				return out
			}
			if c.owner.whoami() != http.StatusUnauthorized {
				return "it is signed in"
			}
			return c.approveOverSocket(asked)
		}, self},
	} {
		t.Run(way.name, func(t *testing.T) {
			if got := way.do(); got != way.want {
				t.Errorf("it is answered %q, want %q", got, way.want)
			}
		})
	}
}

// An invitation says who made it, and its holder says once, with a recent sign-in and on the
// record, that the account is theirs alone.
func TestWhoWasInvitedSaysThatTheAccountIsTheirs(t *testing.T) {
	c := newCast(t)
	ann := c.taken("ann's account")
	if status, out := c.mortise("users", "show", "ann", "--json"); status != 0 || !strings.Contains(out, `"invited_by"`) {
		t.Errorf("%d %s", status, out)
	}
	if a := ann.do("GET", "/auth/", ""); a.status != 200 || !strings.Contains(a.text, "I alone have this account") {
		t.Errorf("%d %s", a.status, a.text)
	}
	for what, headers := range map[string][]string{"a page of another site": {"Sec-Fetch-Site", "cross-site"}, "a request that does not say": {"Sec-Fetch-Site", ""}} {
		if a := ann.do("POST", "/auth/own", "", headers...); a.status != 403 {
			t.Errorf("%s: %d %s", what, a.status, a.text)
		}
	}
	if a := c.browser().do("POST", "/auth/own", ""); a.status != 403 {
		t.Errorf("who is not signed in: %d %s", a.status, a.text)
	}
	// A sign-in of which it is not known when it was asks for another first.
	if a := ann.signIn("ann's account", ""); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if a := ann.do("POST", "/auth/own", ""); a.status != 303 || !strings.Contains(a.header.Get("Location"), "prompt=login") {
		t.Errorf("an old sign-in: %d %s", a.status, a.header.Get("Location"))
	}
	if a := ann.signIn("ann's account", "&prompt=login"); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text)
	}
	for range 2 {
		if a := ann.do("POST", "/auth/own", ""); a.status != 303 || a.header.Get("Location") != "/auth/" {
			t.Errorf("%d %s", a.status, a.header.Get("Location"))
		}
	}
	if a := ann.do("GET", "/auth/", ""); strings.Contains(a.text, "I alone") {
		t.Error("it is asked again")
	}
	if status, out := c.mortise("ledger", "list", "--kind", "user.linked", "--json"); status != 0 || strings.Count(out, `"own"`) != 3 {
		t.Errorf("the ledger has %d entries of it: %s", strings.Count(out, `"own"`), out)
	}
}
