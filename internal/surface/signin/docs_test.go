package signin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
	"github.com/mortise-dev/mortise/internal/surface/exchange"
)

// What docs/identity.md has in the places of what is another here.
const (
	pageHost   = "mortise.example.com"
	pageIssuer = "https://id.example.com"
	pageLocal  = "127.0.0.1:8080"
)

// public is the configuration of a host behind a proxy, as the page has it.
func public(b *bench) string {
	b.write(filepath.Join(b.home, "company.secret"), accounttest.ClientSecret)
	return fmt.Sprintf(`sandbox: "off"
policy: {files: [gate.cedar], groups: {people: [ann, bob, "service::ci"]}}
approvals: {by: [ann]}
server:
  public_url: https://%s
  sign_in:
  - {name: company, issuer: %q, client_id: %s, client_secret_file: company.secret}
  machines:
  - name: builds
    issuer: %q
    allow:
    - {principal: "service::ci", claims: {sub: "repo:acme/app:main"}, scopes: [run], operations: [desk/*]}
`, pageHost, b.first.URL, accounttest.ClientID, b.first.URL)
}

// A replay is the hosts of the page: one on a loopback address, and one behind a proxy.
type replay struct {
	local, public *bench
	exchange.Values
}

// here returns a text of the page as it is with these hosts.
func (p *replay) here(text string) string {
	return strings.NewReplacer(
		"client_id=mortise&", "client_id="+accounttest.ClientID+"&", pageIssuer, p.public.first.URL, url.QueryEscape(pageIssuer), url.QueryEscape(p.public.first.URL),
		pageLocal, strings.TrimPrefix(p.local.url, "http://"), "mortise-8080", p.local.cookie(),
	).Replace(text)
}

// send sends the request of an exchange.
func (p *replay) send(e *exchange.Exchange) answer {
	p.local.Helper()
	path, body := p.Fill(e.Path), p.Fill(e.Body)
	if e.Note == "On the socket:" {
		return p.local.overSocket(e.Method, path, body)
	}
	headers := []string{"Sec-Fetch-Site", ""}
	to := p.local
	for i := 0; i < len(e.Headers); i += 2 {
		value := p.Fill(e.Headers[i+1])
		if e.Headers[i] == "Host" {
			to = p.public
		}
		headers = append(headers, e.Headers[i], value)
	}
	return to.browser().do(e.Method, path, body, headers...)
}

// prepare does what the page says of an exchange beforehand: a program gets its token, and
// the provider remembers Ann from an hour ago where it is not told to ask.
func (p *replay) prepare(t *testing.T, e *exchange.Exchange) {
	t.Helper()
	if _, text, has := strings.Cut(e.Note, "With a token that has "); has {
		var claims map[string]string
		if err := json.Unmarshal([]byte(strings.TrimSuffix(text, ":")), &claims); err != nil {
			t.Fatalf("docs/identity.md:%d: %v", e.Line, err)
		}
		p.Values["SIGNED"] = p.public.first.Machine(claims["aud"], claims["sub"], nil)
	}
	if strings.HasPrefix(e.Path, "/auth/sign-in") {
		p.public.forge(func(s *accounttest.Server) {
			if s.AuthTime = time.Now(); !strings.Contains(e.Path, "prompt=login") {
				s.AuthTime = time.Now().Add(-time.Hour)
			}
		})
	}
}

// answered has the provider answer where an exchange led the browser to it.
func (p *replay) answered(t *testing.T, a answer) {
	t.Helper()
	to := a.header.Get("Location")
	if !strings.HasPrefix(to, p.public.first.URL) {
		return
	}
	back, err := url.Parse(p.public.browser().asked(a))
	if err != nil {
		t.Fatal(err)
	}
	p.Values["CODE"] = back.Query().Get("code")
}

// Every exchange that docs/identity.md shows is so.
func TestTheExchangesOfThePage(t *testing.T) {
	all, err := exchange.Read("../../../docs/identity.md")
	if err != nil {
		t.Fatal(err)
	}
	p := &replay{beginWith(t, func(*bench) string { return "" }), beginAs(t, public), exchange.Values{}}
	p.public.first.Subject = "ann's account"
	p.public.joins("ann", "ann's account")
	p.Values["APPROVAL"] = p.public.browser().ask("Host", pageHost, "Authorization", "Bearer "+p.public.token("bob"))
	shown := map[string]bool{}
	for _, e := range all {
		p.prepare(t, e)
		e.Path, e.Answer = p.here(e.Path), p.here(e.Answer)
		for i := range e.Headers {
			e.Headers[i] = p.here(e.Headers[i])
		}
		for i := range e.Answered {
			e.Answered[i] = p.here(e.Answered[i])
		}
		a := p.send(e)
		if e.Note == "A second later:" && a.status != e.Status {
			testwait.Until(t, fmt.Sprintf("docs/identity.md:%d: the status is %d", e.Line, e.Status), func() bool {
				a = p.send(e)
				return a.status == e.Status
			})
		}
		if at := p.Differs(e, a.status, a.header.Values, a.text); at != "" {
			t.Errorf("docs/identity.md:%d: %s: %d %v %s", e.Line, at, a.status, a.header, a.text)
		}
		p.answered(t, a)
		shown[fmt.Sprint(e.Method, " ", strings.SplitN(e.Path, "?", 2)[0], " ", a.status)] = true
	}
	for _, what := range []string{
		"POST /api/v1/tokens 200", "POST /api/v1/tokens/current:rotate 200", "GET /api/v1/me 401", "GET /api/v1/calls 403", "POST /auth/link 200", "POST /auth/setup 303",
		"POST /auth/setup 403", "GET /auth/sign-in 303", "GET /auth/callback/company 303", "GET /auth/callback/company 403", "POST /api/v1/approvals/$APPROVAL:approve 403",
		"POST /api/v1/approvals/$APPROVAL:approve 200",
	} {
		if !shown[what] {
			t.Errorf("the page does not show %s", what)
		}
	}
	if p.Values["ROTATED"] == p.Values["TOKEN"] || p.Values["FRESH"] == p.Values["SESSION"] {
		t.Error("what is made again is the same")
	}
}

// joins makes the user of a principal, whose account of the first provider signs in at a
// host behind a proxy.
func (b *bench) joins(name, subject string) {
	b.Helper()
	if status, out := b.mortise("users", "create", name); status != 0 {
		b.Fatal(out)
	}
	b.account(subject)
	one := b.browser()
	start := one.do("POST", "/auth/invitation", url.Values{"secret": {b.invite(name)}}.Encode(), "Host", pageHost)
	flow := (&http.Response{Header: start.header}).Cookies()
	back, err := url.Parse(one.asked(start))
	if err != nil || len(flow) != 1 {
		b.Fatal(err, flow)
	}
	if a := one.do("GET", back.RequestURI(), "", "Host", pageHost, "Cookie", flow[0].Name+"="+flow[0].Value); a.status != http.StatusSeeOther {
		b.Fatalf("%d %s", a.status, a.text)
	}
}

// token is a token of a principal.
func (b *bench) token(name string) string {
	b.Helper()
	status, out := b.mortise("tokens", "create", "t", "--for", name, "--scope", "run", "--json")
	if status != 0 {
		b.Fatal(out)
	}
	return answer{text: out}.at("token")
}
