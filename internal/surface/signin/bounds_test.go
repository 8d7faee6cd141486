package signin_test

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
)

// What changes the host from a browser takes a recent sign-in, whichever noun it is of.
func TestChangesTakeARecentSignIn(t *testing.T) {
	b := begin(t)
	owner := b.person("local:owner", "the owner's account")
	feed := owner.do("POST", "/api/v1/feeds", `{"operation":"desk/shout","input":{"text":"x"},"spec":"every 24h"}`)
	if a := owner.do("POST", "/api/v1/agents", `{"id":"clerk"}`); a.status != 200 || feed.status != 200 {
		t.Fatalf("%d %s, %d %s", a.status, a.text, feed.status, feed.text)
	}
	b.forge(func(s *accounttest.Server) { s.AuthTime = time.Now().Add(-time.Hour) })
	if a := owner.signIn("the owner's account", ""); a.status != 303 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	for _, c := range [][3]string{
		{"POST", "agents", `{"id":"other"}`}, {"POST", "agents/clerk:start", ""}, {"DELETE", "agents/clerk", ""}, {"PUT", "agents/clerk/assignments/desk", `{"enabled":true}`},
		{"POST", "agents/clerk/memories:remember", `{"key":"a","content":"b"}`}, {"POST", "agents/clerk/feeds", `{"text":"a","spec":"every 24h"}`},
		{"POST", "feeds", `{"operation":"desk/shout","input":{"text":"x"}}`}, {"POST", "feeds/" + feed.at("id") + ":pause", ""}, {"DELETE", "feeds/" + feed.at("id"), ""},
		{"PUT", "secrets/own", `{"value":"v"}`}, {"PUT", "secrets/own?system=true", `{"value":"v"}`}, {"DELETE", "secrets/own", ""},
		{"POST", "recovery:confirm", `{"reason":"looked"}`}, {"POST", "tokens", `{"name":"t"}`},
	} {
		a := owner.do(c[0], "/api/v1/"+c[1], c[2])
		if a.status != 403 || a.at("code") != "sign_in_required" {
			t.Errorf("%s %s: %d %s", c[0], c[1], a.status, a.text)
		}
	}
	for _, path := range []string{"agents", "agents/clerk", "agents/clerk/assignments", "feeds", "secrets", "recovery"} {
		if a := owner.do("GET", "/api/v1/"+path, ""); a.status != 200 {
			t.Errorf("reading %s: %d %s", path, a.status, a.text)
		}
	}
}

// The owner signs in again without a provider, by a link that the owner's socket makes: once,
// and from this machine.
func TestTheOwnersSocketMakesLinks(t *testing.T) {
	b := begin(t)
	if a := b.browser().do("POST", "/auth/link", ""); a.status != 404 {
		t.Errorf("others get a link: %d %s", a.status, a.text)
	}
	if a := b.overSocket("GET", "/auth/link", ""); a.status != 405 {
		t.Errorf("%d %s", a.status, a.text)
	}
	bob := b.person("bob", "bob's account")
	a := b.overSocket("POST", "/auth/link", "")
	link, found := strings.CutPrefix(a.at("link"), b.url+"/auth/setup#")
	if a.status != 200 || !found || a.at("expires_in") != "300" {
		t.Fatalf("%d %s", a.status, a.text)
	}
	owner := b.browser()
	if a := owner.do("POST", "/auth/setup", "secret="+link, "Sec-Fetch-Site", "cross-site"); a.status != 403 {
		t.Errorf("from another site: %d", a.status)
	}
	if a := owner.do("POST", "/auth/setup", "secret="+link); a.status != 303 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if code := owner.approve(bob.ask()); code != "" {
		t.Errorf("the owner may not approve: %s", code)
	}
	if a := b.browser().do("POST", "/auth/setup", "secret="+link); a.status != 403 {
		t.Errorf("again: %d", a.status)
	}
}

// Cookies that are of no session slow their address down, and good ones do not.
func TestGuessedCookiesAreSlowedDown(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long: it needs a machine that answers more than 100 guesses a second; TestCookiesOfOneAddressAreCounted has the same rule without HTTP")
	}
	b := begin(t)
	var slowed, guesses atomic.Int64
	var all sync.WaitGroup
	for range 8 { // together, for one after the other is slower than what may pass where the machine is busy
		one := b.browser()
		all.Go(func() {
			for start := time.Now(); slowed.Load() < 100 && time.Since(start) < time.Minute; guesses.Add(1) {
				switch status := one.whoami("Cookie", b.cookie()+"="+strings.Repeat("a", 43)); status {
				case http.StatusUnauthorized:
				case http.StatusTooManyRequests:
					slowed.Add(1)
				default:
					t.Errorf("a guess is answered %d", status)
					return
				}
			}
		})
	}
	all.Wait()
	if slowed.Load() < 100 {
		t.Errorf("of %d guesses %d were slowed down", guesses.Load(), slowed.Load())
	}
}

// Behind a proxy that is trusted, sign-ins are counted by the client that it names, and one client
// locks no other out.
func TestATrustedProxyNamesTheClient(t *testing.T) {
	b := beginWith(t, func(*bench) string { return "  trusted_proxies: [127.0.0.1]\n" })
	start := func(client string) int {
		return b.browser().do("GET", "/auth/sign-in?provider=one", "", "X-Forwarded-For", client).status
	}
	slowed := false
	for n := 0; n < 500 && !slowed; n++ {
		slowed = start("192.0.2.99, 198.51.100.7") == http.StatusTooManyRequests // what the client wrote is not believed
	}
	if !slowed {
		t.Error("the sign-ins of one client are not slowed down")
	}
	if status := start("198.51.100.8"); status != http.StatusSeeOther {
		t.Errorf("another client behind the proxy is answered %d, want 303", status)
	}
}
