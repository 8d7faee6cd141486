package serve

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
)

// A sink keeps the bytes of the spans that are sent to it.
type sink struct {
	*httptest.Server
	mu   sync.Mutex
	text bytes.Buffer
}

func collect(t *testing.T) *sink {
	s := &sink{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.text.Write(raw)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// browse asks as a browser does that follows no redirect, with the cookies that it was given.
func (n *node) browse(cookies map[string]string, method, to string, form url.Values) *http.Response {
	n.Helper()
	if strings.HasPrefix(to, "/") {
		to = n.url + to
	}
	r, err := http.NewRequest(method, to, strings.NewReader(form.Encode()))
	if err != nil {
		n.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for name, value := range cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	resp, err := (&http.Client{Transport: client.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		n.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	for _, c := range resp.Cookies() {
		cookies[c.Name] = c.Value
	}
	return resp
}

// link asks the owner's socket for a link, and returns its secret.
func (n *node) link() string {
	n.Helper()
	over := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(n.home, "run", "owner.sock"))
	}}
	defer over.CloseIdleConnections()
	resp, err := (&http.Client{Transport: over}).Post("http://localhost/auth/link", "", nil)
	if err != nil {
		n.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	_, secret, found := strings.Cut(answer{text: string(raw)}.member("link"), "#")
	if err != nil || !found {
		n.Fatalf("%s, %v", raw, err)
	}
	return secret
}

// Nothing by which a program or a person is authenticated is in the log, the ledger, the
// traces, a file of the data directory or what a host says that is killed in the middle of a
// request: tokens that are right, wrong, rotated, in an address by mistake, cookies, the
// secrets of links and invitations, and what a provider sends.
func TestNothingThatAuthenticatesIsWrittenDown(t *testing.T) {
	t.Setenv("SERVE_TEST_SECRET", accounttest.ClientSecret)
	t.Setenv("GOTRACEBACK", "all")
	traces, provider := collect(t), accounttest.New(t)
	n := prepare(t, "")
	n.write("mortise.yaml", strings.Replace(config, "server: {", "telemetry: {traces: '"+traces.URL+"'}\nlog: {level: debug}\nserver: {sign_in: [{name: one, issuer: '"+provider.URL+
		"', client_id: "+accounttest.ClientID+", client_secret_env: SERVE_TEST_SECRET}], ", 1))
	n.must("plugins", "register", filepath.Join(n.desk, "source"))
	n.token = strings.TrimSpace(n.must("tokens", "create", "test", "--for", "ann", "--scope", "admin"))
	n.must("users", "create", "local:owner")
	n.must("users", "create", "bob")
	n.serve()

	secrets := map[string]string{"the secret of the client": accounttest.ClientSecret}
	status := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s is answered %d, want %d", what, got, want)
		}
	}
	// Tokens of the host.
	first := n.token
	secret := strings.Split(first, "_")[2]
	wrong := strings.Replace(first, secret, strings.Repeat("Canary00", 4), 1)
	status("a call", n.execute("upper", "x").status, 200)
	status("a wrong token", ask(n.url, wrong, "GET", "/api/v1/me", "").status, 401)
	status("a token in the address", ask(n.url, "none", "GET", "/api/v1/calls?access_token="+first, "").status, 401)
	status("a token in the path", ask(n.url, first, "GET", "/api/v1/calls/"+first, "").status, 404)
	status("a token to revoke", ask(n.url, first, "POST", "/api/v1/tokens/"+first+":revoke", "").status, 404)
	rotated := ask(n.url, first, "POST", "/api/v1/tokens/current:rotate", "")
	status("a rotation", rotated.status, 200)
	n.token = rotated.member("token")
	secrets["a token"], secrets["a wrong token"], secrets["a rotated token"] = secret, strings.Repeat("Canary00", 4), strings.Split(n.token, "_")[2]
	// A token of a provider.
	signed := provider.Machine("https://mortise.example.com", "program", nil)
	status("a signed token", ask(n.url, signed, "GET", "/api/v1/me", "").status, 401)
	secrets["a signed token"] = signed[strings.LastIndexByte(signed, '.')+1:]
	// The owner's link.
	owner := map[string]string{}
	secrets["a link"] = n.link()
	status("a link", n.browse(owner, "POST", "/auth/setup", url.Values{"secret": {secrets["a link"]}}).StatusCode, 303)
	status("a link again", n.browse(map[string]string{}, "POST", "/auth/setup", url.Values{"secret": {secrets["a link"]}}).StatusCode, 403)
	status("with a cookie", n.browse(owner, "GET", "/api/v1/me", nil).StatusCode, 200)
	// An invitation, and a sign-in with a provider.
	_, invitation, _ := strings.Cut(n.must("users", "invite", "bob"), "#")
	secrets["an invitation"] = strings.Fields(invitation)[0]
	bob := map[string]string{}
	asked := n.browse(bob, "POST", "/auth/invitation", url.Values{"secret": {secrets["an invitation"]}})
	status("an invitation", asked.StatusCode, 303)
	back := n.browse(map[string]string{}, "GET", asked.Header.Get("Location"), nil).Header.Get("Location")
	in, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	secrets["a state"], secrets["a code"], secrets["a nonce"] = in.Query().Get("state"), in.Query().Get("code"), query(t, asked.Header.Get("Location"), "nonce")
	for name, value := range bob {
		secrets["the cookie "+name] = value
	}
	status("an answer of the provider", n.browse(bob, "GET", back, nil).StatusCode, 303)
	status("the answer again", n.browse(bob, "GET", back, nil).StatusCode, 403)
	for _, cookies := range []map[string]string{owner, bob} {
		for name, value := range cookies {
			if value != "" {
				secrets["the cookie "+name+" of "+value[:4]] = value
			}
		}
	}
	for _, given := range provider.Given() {
		secrets["what the provider gave: "+given[:8]] = given
	}
	// It is killed while it is at work, and says where it was.
	go n.execute("hold", "held")
	testwait.Until(t, "the call is at work", func() bool { return n.left()["held"] == 1 })
	testwait.Until(t, "spans are sent", func() bool { return strings.Contains(traces.String(), "desk/upper") })
	if err := n.process.Process.Signal(syscall.SIGABRT); err != nil {
		t.Fatal(err)
	}
	<-n.said.done
	_ = n.process.Wait()
	n.write("desk/go", "")

	places := map[string]string{"the log": n.said.String(), "the traces": traces.String(), "the ledger": n.must("ledger", "list", "--last", "1000", "--json")}
	if log := places["the log"]; !strings.Contains(log, "SIGABRT") || !strings.Contains(log, "goroutine ") || !strings.Contains(log, strings.Split(first, "_")[1][1:]) || !strings.Contains(log, "/auth/callback/one") {
		t.Errorf("the log is not what is searched: %.2000s", log)
	}
	if !strings.Contains(places["the ledger"], "token.rotated") || !strings.Contains(places["the ledger"], "session.signed_in") {
		t.Errorf("the ledger is not what is searched: %.2000s", places["the ledger"])
	}
	files := 0
	err = filepath.WalkDir(n.home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			raw, unread := os.ReadFile(path)
			places[strings.TrimPrefix(path, n.home)], err = string(raw), unread
			files++
		}
		return err
	})
	if err != nil || files < 5 {
		t.Fatalf("%d files, %v", files, err)
	}
	for what, secret := range secrets {
		if len(secret) < 16 {
			t.Fatalf("%s is %q", what, secret)
		}
		for where, text := range places {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s is in %s: %.200q", what, where, text[max(0, at-100):])
			}
		}
	}
	t.Logf("%d secrets are in none of %d places", len(secrets), len(places))
}

// query returns a parameter of an address.
func query(t *testing.T, address, name string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get(name)
}
