package signin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
	"github.com/mortise-dev/mortise/internal/surface/cli"
	"github.com/mortise-dev/mortise/internal/surface/server"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// The test binary is the plugin of the host that it opens.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "desk" {
		p := mortise.New("desk", "1.0.0")
		mortise.Operator(p, "line", "Leave a line.", func(_ *mortise.Call, in struct {
			Text string `json:"text"`
		}) (string, error) {
			return in.Text, nil
		}, mortise.Effects("db_write"))
		mortise.Tool(p, "shout", "Say it louder.", func(_ *mortise.Call, in struct {
			Text string `json:"text"`
		}) (string, error) {
			return strings.ToUpper(in.Text), nil
		})
		p.Run()
	}
	goleak.VerifyTestMain(m)
}

const policies = `
@id("gate") @approval("it is gated") permit (principal, action == Action::"execute", resource) unless { resource == Operation::"desk/shout" };
@id("shout") permit (principal, action == Action::"execute", resource == Operation::"desk/shout");
@id("see") permit (principal, action == Action::"list", resource);
@id("users") permit (principal == User::"ann", action == Action::"configure", resource == Plugin::"mortise.users");
@id("owner") permit (principal == User::"local:owner", action == Action::"configure", resource);
@id("operators") permit (principal in Group::"operators", action == Action::"configure", resource == Plugin::"mortise.tokens");
`

// A bench is a host that is reached over HTTP, with two providers of accounts.
type bench struct {
	*testing.T
	app    *app.App
	home   string // the data directory
	url    string
	link   string // of the first run
	first  *accounttest.Server
	second *accounttest.Server
}

func begin(t *testing.T) *bench {
	t.Helper()
	return beginWith(t, func(*bench) string { return "" })
}

// beginWith begins with more lines of configuration under server.
func beginWith(t *testing.T, more func(*bench) string) *bench {
	t.Helper()
	return beginAs(t, func(b *bench) string {
		return fmt.Sprintf(`sandbox: "off"
policy: {files: [gate.cedar], groups: {people: [ann, bob], operators: [], staff: []}}
approvals: {by: ["local:owner", ann, bob, "service::ci"]}
server:
  sign_in:
  - {name: one, issuer: %q, client_id: %s, client_secret_env: SIGNIN_TEST_SECRET, groups_claim: groups, groups: {ops: [operators], dev: [staff]}}
  - {name: two, issuer: %q, client_id: %s, client_secret_env: SIGNIN_TEST_SECRET}
`, b.first.URL, accounttest.ClientID, b.second.URL, accounttest.ClientID) + more(b)
	})
}

// beginAs begins with a configuration.
func beginAs(t *testing.T, config func(*bench) string) *bench {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "signin") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	b := &bench{T: t, home: home, first: accounttest.New(t), second: accounttest.New(t)}
	t.Setenv("SIGNIN_TEST_SECRET", accounttest.ClientSecret)
	l, err := server.Listen(t.Context(), "127.0.0.1:0", false, false)
	if err != nil {
		t.Fatal(err)
	}
	b.url = "http://" + l.Addr().String()
	b.write(filepath.Join(home, "mortise.yaml"), config(b))
	b.write(filepath.Join(home, "gate.cedar"), policies)
	a, err := app.Open(t.Context(), app.Options{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	b.app = a
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "source")
	b.write(filepath.Join(dir, "manifest.yaml"), fmt.Sprintf("name: desk\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, desk]}\n", self))
	if _, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Enable: true}); err != nil {
		t.Fatal(err)
	}
	first, link, err := server.FirstRun(t.Context(), a, l)
	if err != nil {
		t.Fatal(err)
	}
	b.link = link
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, a, l, first, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return b
}

func (b *bench) write(path, text string) {
	b.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// mortise runs a command line on the data directory, and returns its exit status and what
// it wrote.
func (b *bench) mortise(args ...string) (status int, out string) {
	b.Helper()
	var stdout, stderr bytes.Buffer
	status = cli.Main(append(args, "--home", b.app.Home), strings.NewReader(""), &stdout, &stderr)
	return status, stdout.String() + stderr.String()
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
}

// at returns a member of a JSON answer.
func (a answer) at(names ...string) string {
	var v any
	_ = json.Unmarshal([]byte(a.text), &v)
	for _, name := range names {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return fmt.Sprint(v)
}

// A browser follows no redirect by itself, and says of each request where it comes from.
type browser struct {
	*bench
	jar http.CookieJar
}

func (b *bench) browser() *browser {
	b.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	return &browser{b, jar}
}

// do sends a request. headers are names and values in turn; one that is empty is left out.
func (b *browser) do(method, address, body string, headers ...string) answer {
	b.Helper()
	if strings.HasPrefix(address, "/") {
		address = b.url + address
	}
	r, err := http.NewRequestWithContext(b.Context(), method, address, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	switch {
	case strings.HasPrefix(body, "{"):
		r.Header.Set("Content-Type", "application/json")
	case body != "":
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			r.Host = headers[i+1]
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	client := &http.Client{Jar: b.jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(raw)}
}

// asked begins a sign-in at an address, has the provider answer, and returns where it sends
// the browser.
func (b *browser) asked(start answer) string {
	b.Helper()
	if start.status != http.StatusSeeOther {
		b.Fatalf("the sign-in does not begin: %d %s", start.status, start.text)
	}
	back := b.do("GET", start.header.Get("Location"), "")
	if back.status != http.StatusFound {
		b.Fatalf("the provider answers %d %s", back.status, back.text)
	}
	return back.header.Get("Location")
}

// signIn signs in with an account of the first provider.
func (b *browser) signIn(subject, query string) answer {
	b.Helper()
	b.account(subject)
	return b.do("GET", b.asked(b.do("GET", "/auth/sign-in?provider=one"+query, "")), "")
}

// account says which account the first provider has.
func (b *bench) account(subject string) {
	b.first.Lock()
	defer b.first.Unlock()
	b.first.Subject = subject
}

// forge changes what the first provider says.
func (b *bench) forge(change func(*accounttest.Server)) {
	b.first.Lock()
	defer b.first.Unlock()
	change(b.first)
}

// person makes the user of a principal, and signs them in by an invitation in a browser.
func (b *bench) person(name, subject string) *browser {
	b.Helper()
	if status, out := b.mortise("users", "create", name); status != 0 && !strings.Contains(out, "has a user") {
		b.Fatalf("%d %s", status, out)
	}
	one := b.browser()
	if a := one.accept(b.invite(name), subject); a.status != http.StatusSeeOther {
		b.Fatalf("%s is not signed in: %d %s", name, a.status, a.text)
	}
	if a := one.do("POST", "/auth/own", ""); a.status != http.StatusSeeOther || a.header.Get("Location") != "/auth/" {
		b.Fatalf("%s does not own the account: %d %s", name, a.status, a.text)
	}
	return one
}

// cookie is the name of the cookie of a session, which has the port.
func (b *bench) cookie() string { return "mortise-" + b.url[strings.LastIndexByte(b.url, ':')+1:] }

var linkForm = regexp.MustCompile(`/auth/invitation#([0-9A-Za-z]{43})`)

// invite returns the secret of an invitation.
func (b *bench) invite(name string) string {
	b.Helper()
	status, out := b.mortise("users", "invite", name)
	found := linkForm.FindStringSubmatch(out)
	if status != 0 || found == nil {
		b.Fatalf("%d %s", status, out)
	}
	return found[1]
}

// accept uses an invitation with an account of the first provider.
func (b *browser) accept(secret, subject string) answer {
	b.Helper()
	b.account(subject)
	return b.do("GET", b.asked(b.do("POST", "/auth/invitation", url.Values{"secret": {secret}, "provider": {"one"}}.Encode())), "")
}

// whoami returns the status of a question that takes a caller.
func (b *browser) whoami(headers ...string) int {
	b.Helper()
	return b.do("GET", "/api/v1/browsers", "", headers...).status
}

// ask makes a call that takes an approval, and returns the id of that.
func (b *browser) ask(headers ...string) string {
	b.Helper()
	a := b.do("POST", "/api/v1/operations/desk/line:execute", `{"input":{"text":"x"}}`, headers...)
	if a.status != http.StatusAccepted {
		b.Fatalf("the call is answered %d %s", a.status, a.text)
	}
	return a.at("approval", "id")
}

// approve answers an approval, and returns the code of the refusal, "" for none.
func (b *browser) approve(id string, headers ...string) string {
	b.Helper()
	a := b.do("POST", "/api/v1/approvals/"+id+":approve", `{}`, headers...)
	if a.status == http.StatusOK {
		return ""
	}
	return a.at("code")
}

// overSocket makes a request of the owner's, on the socket of the data directory. headers
// are names and values in turn.
func (b *bench) overSocket(method, path, body string, headers ...string) answer {
	b.Helper()
	socket, err := server.OwnerSocket(b.app.Home)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(b.Context(), method, "http://localhost"+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := (&http.Client{Transport: transport, Timeout: time.Minute}).Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(raw)}
}
