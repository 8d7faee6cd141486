package signin_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
)

// Who asks does not approve: not on behalf of another, not with a second token, not in a
// browser, however they signed in there. A second person who signed in does.
func TestAPersonIsOnePersonHoweverTheyCome(t *testing.T) {
	b := begin(t)
	owner := b.browser()
	secret := strings.TrimPrefix(b.link, b.url+"/auth/setup#")
	if a := owner.do("POST", "/auth/setup", "secret="+secret); a.status != http.StatusSeeOther {
		t.Fatalf("the owner is not signed in: %d %s", a.status, a.text)
	}
	linked, bob := b.person("local:owner", "the owner's account"), b.person("bob", "bob's account")
	token := func(name, principal string) []string {
		t.Helper()
		status, out := b.mortise("tokens", "create", name, "--for", principal, "--scope", "run", "--scope", "read", "--scope", "approve", "--json")
		if status != 0 {
			t.Fatalf("%d %s", status, out)
		}
		return []string{"Authorization", "Bearer " + answer{text: out}.at("token")}
	}
	asSelf, other := token("first", "local:owner"), token("second", "ann")
	socket := func() string {
		a := b.overSocket("POST", "/api/v1/operations/desk/line:execute", `{"input":{"text":"x"}}`)
		if a.status != http.StatusAccepted {
			t.Fatalf("over the socket it is answered %d %s", a.status, a.text)
		}
		return a.at("approval", "id")
	}
	asAnn := func() string { // what the owner asks for on behalf of ann
		status, out := b.mortise("run", "desk/line", "--set", "text=x", "--as", "ann", "--no-wait", "--json")
		id := answer{text: out}.at("approval", "id")
		if len(id) != 36 {
			t.Fatalf("on behalf of ann it is answered %d %s", status, out)
		}
		return id
	}
	for name, c := range map[string]struct {
		asked string
		code  string
	}{
		"asked over the socket, approved in a browser":                               {owner.approve(socket()), "approval_self"},
		"asked over the socket, approved with their account":                         {linked.approve(socket()), "approval_self"},
		"asked with --as, approved in a browser":                                     {owner.approve(asAnn()), "approval_self"},
		"asked with --as, approved with their account":                               {linked.approve(asAnn()), "approval_self"},
		"asked with their account, approved with a token that they made for another": {b.browser().approve(linked.ask(), other...), "approval_self"},
		"asked with a token, approved with their account":                            {linked.approve(b.browser().ask(asSelf...)), "approval_self"},
		"asked with a token for another, approved with their account":                {linked.approve(b.browser().ask(other...)), "approval_self"},
		"asked with their account, approved by another":                              {bob.approve(linked.ask()), ""},
		"asked over the socket, approved by another":                                 {bob.approve(socket()), ""},
		"asked with --as, approved by another":                                       {bob.approve(asAnn()), ""},
		"asked by another, approved with their account":                              {linked.approve(bob.ask()), ""},
	} {
		if c.asked != c.code {
			t.Errorf("%s: %q, want %q", name, c.asked, c.code)
		}
	}
	asked := linked.ask()
	if status, out := b.mortise("approvals", "approve", asked, "--as", "ann"); status != 5 || !strings.Contains(out, "one person under two names") {
		t.Errorf("who asked with their account approves with --as: %d %s", status, out)
	}
	// What was unlinked is no second person.
	if status, out := b.mortise("users", "show", "local:owner", "--json"); status != 0 {
		t.Fatal(out)
	} else if status, out := b.mortise("users", "unlink", "local:owner", "oidc:"+url.PathEscape(b.first.URL)+"/"+url.PathEscape("the owner's account")); status != 0 {
		t.Fatal(out)
	}
	if code := func() string {
		a := b.overSocket("POST", "/api/v1/approvals/"+asked+":approve", `{}`)
		return a.at("code")
	}(); code != "approval_self" {
		t.Errorf("after the account was unlinked the owner may approve: %q", code)
	}
	if status := linked.whoami(); status != http.StatusUnauthorized {
		t.Errorf("the session of an account that was unlinked is answered %d", status)
	}
}

// An answer of a provider that is forged, used before, of another browser or of another
// provider signs no one in, each for itself.
func TestForgedAnswersSignNoOneIn(t *testing.T) {
	b := begin(t)
	b.person("ann", "ann's account")
	refused := func(what string, a answer, one *browser, status int, word string) {
		t.Helper()
		if a.status != status || !strings.Contains(a.text, word) || one.whoami() != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", what, a.status, a.text)
		}
		if h := a.header; !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: it is answered with %v", what, h)
		}
	}
	for what, change := range map[string]func(*accounttest.Server){
		"a key that is not published": func(s *accounttest.Server) { s.Forge = true },
		"no signature":                func(s *accounttest.Server) { s.Unsigned = true },
		"another audience":            func(s *accounttest.Server) { s.Audience = "another client" },
		"another issuer":              func(s *accounttest.Server) { s.Issuer = "https://accounts.example.com" },
		"another nonce":               func(s *accounttest.Server) { s.Nonce = "another" },
		"a token that has expired":    func(s *accounttest.Server) { s.Lapsed = true },
	} {
		b.forge(change)
		one := b.browser()
		refused(what, one.signIn("ann's account", ""), one, 403, "answer was not taken")
		b.forge(func(s *accounttest.Server) {
			s.Forge, s.Unsigned, s.Lapsed, s.Audience, s.Issuer, s.Nonce = false, false, false, "", "", ""
		})
	}
	start := func(one *browser) string { return one.asked(one.do("GET", "/auth/sign-in?provider=one", "")) }
	with := func(address string, change func(url.Values)) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		change(q)
		u.RawQuery = q.Encode()
		return u.String()
	}
	one, other := b.browser(), b.browser()
	back := start(one)
	refused("the answer in another browser", other.do("GET", back, ""), other, 403, "no sign-in of this browser")
	start(other)
	refused("the answer in another browser that signs in too", other.do("GET", back, ""), other, 403, "no sign-in of this browser")
	refused("another issuer in the answer", one.do("GET", with(back, func(q url.Values) { q.Set("iss", b.second.URL) }), ""), one, 403, "another issuer")
	refused("no issuer in the answer", one.do("GET", with(start(one), func(q url.Values) { q.Del("iss") }), ""), one, 403, "another issuer")
	refused("the callback of another provider", one.do("GET", strings.Replace(start(one), "/callback/one", "/callback/two", 1), ""), one, 403, "no sign-in of this browser")
	refused("no state", one.do("GET", with(start(one), func(q url.Values) { q.Del("state") }), ""), one, 403, "no sign-in of this browser")
	refused("no code", one.do("GET", with(start(one), func(q url.Values) { q.Del("code") }), ""), one, 403, "signed no one in")
	// A code and a state count once.
	first := start(one)
	code := ""
	with(first, func(q url.Values) { code = q.Get("code") })
	if a := one.do("GET", first, ""); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if one.whoami() != http.StatusOK {
		t.Fatal("who signed in is not known")
	}
	if a := one.do("POST", "/auth/sign-out", ""); a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.text)
	}
	refused("an answer again", one.do("GET", first, ""), one, 403, "no sign-in of this browser")
	refused("a code again", one.do("GET", with(start(one), func(q url.Values) { q.Set("code", code) }), ""), one, 403, "used before")
}

// An account that is no user's is told whom to ask; an email address makes it none.
func TestAStrangerIsNoUser(t *testing.T) {
	b := begin(t)
	b.person("ann", "ann's account")
	one := b.browser()
	a := one.signIn("another account", "") // its email address is ann's
	if a.status != 403 || !strings.Contains(a.text, "Ask its owner") || !strings.Contains(a.text, b.first.URL+" another account") || one.whoami() != 401 {
		t.Errorf("%d %s", a.status, a.text)
	}
	if status, out := b.mortise("ledger", "list", "--kind", "user.refused", "--json"); status != 0 || !strings.Contains(out, "another%20account") {
		t.Errorf("%d %s", status, out)
	}
	if a := one.signIn("ann's account", ""); a.status != 303 || one.whoami() != 200 {
		t.Errorf("ann: %d %s", a.status, a.text)
	}
	// An invitation counts once, ends with the next, and gives no one the account of another.
	earlier, secret := b.invite("ann"), b.invite("ann")
	if a := b.browser().accept(earlier, "a third account"); a.status != 403 || !strings.Contains(a.text, "not open any more") {
		t.Errorf("an invitation that was replaced: %d %s", a.status, a.text)
	}
	if a := b.browser().accept(secret, "a third account"); a.status != 303 {
		t.Errorf("an invitation: %d %s", a.status, a.text)
	}
	if a := b.browser().accept(secret, "a fourth account"); a.status != 403 || !strings.Contains(a.text, "not open any more") {
		t.Errorf("an invitation again: %d %s", a.status, a.text)
	}
	b.mortise("users", "create", "bob")
	if a := b.browser().accept(b.invite("bob"), "ann's account"); a.status != 403 || !strings.Contains(a.text, "of another user") {
		t.Errorf("the account of another: %d %s", a.status, a.text)
	}
}

// The link of the first run counts once, from a page of this host.
func TestTheFirstRunSignsTheOwnerInOnce(t *testing.T) {
	b := begin(t)
	secret := strings.TrimPrefix(b.link, b.url+"/auth/setup#")
	for what, headers := range map[string][]string{
		"a page of another site": {"Sec-Fetch-Site", "cross-site"}, "a page of another port": {"Sec-Fetch-Site", "same-site"},
		"a request that does not say": {"Sec-Fetch-Site", ""}, "another origin": {"Sec-Fetch-Site", "", "Origin", "http://127.0.0.1:1"},
		"a proxy": {"X-Forwarded-For", "192.0.2.1"}, "another name": {"Host", "evil.example"},
	} {
		if a := b.browser().do("POST", "/auth/setup", "secret="+secret, headers...); a.status != 403 && a.status != 421 {
			t.Errorf("%s: %d %s", what, a.status, a.text)
		}
	}
	if a := b.browser().do("POST", "/auth/setup", "secret=guess"); a.status != 403 {
		t.Errorf("a guess: %d %s", a.status, a.text)
	}
	one := b.browser()
	if a := one.do("POST", "/auth/setup", "secret="+secret, "Sec-Fetch-Site", "", "Origin", b.url); a.status != 303 || one.whoami() != 200 {
		t.Errorf("the owner: %d %s", a.status, a.text)
	}
	if a := b.browser().do("POST", "/auth/setup", "secret="+secret); a.status != 403 || !strings.Contains(a.text, "was used") {
		t.Errorf("again: %d %s", a.status, a.text)
	}
}

// A cookie counts for requests of this host's own pages alone, and less than a token.
func TestACookieAloneChangesNothing(t *testing.T) {
	b := begin(t)
	ann := b.person("ann", "ann's account")
	for what, headers := range map[string][]string{
		"a page of another site": {"Sec-Fetch-Site", "cross-site"}, "a page of another port": {"Sec-Fetch-Site", "same-site"},
		"a request that does not say": {"Sec-Fetch-Site", ""}, "another origin": {"Sec-Fetch-Site", "", "Origin", "http://127.0.0.1:1"},
		"another name": {"Host", "evil.example"}, "another origin that says same": {"Origin", "https://evil.example"},
	} {
		if a := ann.do("POST", "/api/v1/operations/desk/line:execute", `{"input":{"text":"x"}}`, headers...); a.status != 403 {
			t.Errorf("%s: %d %s", what, a.status, a.text)
		}
	}
	if a := ann.do("GET", "/api/v1/browsers", "", "Sec-Fetch-Site", "same-site"); a.status != 403 {
		t.Errorf("a page of another port reads: %d", a.status)
	}
	if status := ann.whoami("Authorization", "Bearer mrt_wrong"); status != 401 {
		t.Errorf("with a wrong token the cookie counts: %d", status)
	}
	u, _ := url.Parse(b.url)
	cookie := ann.jar.Cookies(u)[0]
	if status := b.browser().whoami("Cookie", b.cookie()+"=tossed; "+b.cookie()+"="+cookie.Value); status != 403 {
		t.Errorf("of two cookies one is taken: %d", status)
	}
	// A cookie that was there before a sign-in is worth nothing after it, and the earlier
	// session of the browser ends.
	if a := ann.signIn("ann's account", ""); a.status != 303 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if set := ann.jar.Cookies(u)[0]; set.Value == cookie.Value || b.browser().whoami("Cookie", b.cookie()+"="+cookie.Value) != 401 {
		t.Error("a sign-in keeps the session that there was")
	}
	fixed := b.browser()
	fixed.jar.SetCookies(u, []*http.Cookie{{Name: b.cookie(), Value: "known-to-another", Path: "/"}})
	if a := fixed.signIn("ann's account", ""); a.status != 303 || fixed.jar.Cookies(u)[0].Value == "known-to-another" || b.browser().whoami("Cookie", b.cookie()+"=known-to-another") != 401 {
		t.Error("a cookie from before the sign-in counts after it")
	}
	// Sessions are listed and ended, also by who disables the user.
	var listed struct {
		Browsers []struct {
			ID      string `json:"id"`
			Current bool   `json:"current"`
		} `json:"browsers"`
	}
	a := fixed.do("GET", "/api/v1/browsers", "")
	if err := json.Unmarshal([]byte(a.text), &listed); err != nil || len(listed.Browsers) != 2 || !listed.Browsers[0].Current || listed.Browsers[1].Current {
		t.Fatalf("%d %s, %v", a.status, a.text, err)
	}
	id := listed.Browsers[1].ID
	if a := fixed.do("POST", "/api/v1/browsers/"+id+":end", ""); a.status != 200 || ann.whoami() != 401 || fixed.whoami() != 200 {
		t.Errorf("ending %q: %d %s", id, a.status, a.text)
	}
	if status, out := b.mortise("users", "disable", "ann"); status != 0 {
		t.Fatal(out)
	}
	testwait.Until(t, "the session of a user who was disabled is answered 401", func() bool { return fixed.whoami() == 401 })
	if a := fixed.signIn("ann's account", ""); a.status != 403 {
		t.Errorf("a user who was disabled signs in: %d", a.status)
	}
}

// What decides about rights takes a sign-in of the last minutes, and says so; a provider
// that was told to ask has to say that it did.
func TestRightsTakeARecentSignIn(t *testing.T) {
	b := begin(t)
	ann, bob := b.person("ann", "ann's account"), b.person("bob", "bob's account")
	b.forge(func(s *accounttest.Server) { s.AuthTime = time.Now().Add(-time.Hour) })
	if a := ann.signIn("ann's account", ""); a.status != 303 || ann.whoami() != 200 {
		t.Fatalf("%d %s", a.status, a.text)
	}
	asked := bob.ask()
	for what, path := range map[string][2]string{
		"an approval": {"/api/v1/approvals/" + asked + ":approve", `{}`}, "a denial": {"/api/v1/approvals/" + asked + ":deny", `{}`},
		"a user": {"/api/v1/users/bob:disable", ""},
	} {
		a := ann.do("POST", path[0], path[1])
		if a.status != 403 || a.at("code") != "sign_in_required" || !strings.Contains(a.at("detail"), "/auth/sign-in?prompt=login") {
			t.Errorf("%s: %d %s", what, a.status, a.text)
		}
	}
	if a := ann.signIn("ann's account", "&prompt=login"); a.status != 403 || !strings.Contains(a.text, "did not ask who you are") {
		t.Errorf("a provider that did not ask: %d %s", a.status, a.text)
	}
	b.forge(func(s *accounttest.Server) { s.AuthTime = time.Now() })
	if a := ann.signIn("ann's account", "&prompt=login&next="+url.QueryEscape("/auth/?x=1")); a.status != 303 || a.header.Get("Location") != "/auth/?x=1" {
		t.Fatalf("%d %s", a.status, a.text)
	}
	if code := ann.approve(asked); code != "" {
		t.Errorf("after signing in again: %s", code)
	}
}

// A sign-in leads on to this host alone.
func TestASignInLeadsToThisHost(t *testing.T) {
	b := begin(t)
	for _, next := range []string{
		"//evil.example", `/\evil.example`, `\evil.example`, "https://evil.example", "http:evil", "javascript:alert(1)", "/\t/evil.example", "/%5cevil.example", "/%2fevil.example", "evil", " /x", "/x\r\nSet-Cookie: a=b",
		"///evil.example", "/" + strings.Repeat("x", 2000),
	} {
		if a := b.browser().do("GET", "/auth/sign-in?provider=one&next="+url.QueryEscape(next), ""); a.status != 400 {
			t.Errorf("%q: %d %s", next, a.status, a.header.Get("Location"))
		}
	}
	a := b.browser().do("GET", "/auth/sign-in?provider=one&next=/console/x", "")
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != 303 || to.Query().Get("redirect_uri") != b.url+"/auth/callback/one" || to.Query().Get("code_challenge_method") != "S256" || to.Query().Get("nonce") == "" {
		t.Errorf("%d %v, %v", a.status, to, err)
	}
	if a := b.browser().do("GET", "/auth/sign-in", ""); a.status != 200 || strings.Count(a.text, "<li>") != 2 {
		t.Errorf("where there are two providers: %d %s", a.status, a.text)
	}
	for path, method := range map[string]string{"/auth/setup": "GET", "/auth/invitation": "GET", "/auth/": "GET"} {
		if a := b.browser().do(method, path, ""); a.status != 200 || strings.Contains(a.text, "http://") && !strings.Contains(a.text, b.url) || !strings.Contains(a.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s: %d %s", path, a.status, a.text)
		}
	}
}
