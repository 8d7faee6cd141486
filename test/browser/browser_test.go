// Package browser_test signs a person in with a real browser: Chromium, driven over its own
// protocol. What it proves is what a client of HTTP in a test can only assert: which cookies
// and headers a browser sends, and which pages it lets read and frame what is answered.
package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
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
		p.Run()
	}
	os.Exit(m.Run())
}

// A desk is a host with a provider, and a browser.
type desk struct {
	*testing.T
	app      *app.App
	url      string
	provider *accounttest.Server
	browser  context.Context
}

func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func begin(t *testing.T) *desk {
	path := chromium()
	if path == "" {
		t.Skip("there is no Chromium here; install it with 'apt-get install chromium'")
	}
	home, err := os.MkdirTemp("/tmp", "browser") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	d := &desk{T: t, provider: accounttest.New(t)}
	t.Setenv("BROWSER_TEST_SECRET", accounttest.ClientSecret)
	d.write(filepath.Join(home, "mortise.yaml"), fmt.Sprintf(`sandbox: "off"
policy: {files: [gate.cedar], groups: {people: [ann, bob]}}
approvals: {by: [ann]}
server:
  sign_in: [{name: company, issuer: %q, client_id: %s, client_secret_env: BROWSER_TEST_SECRET}]
`, d.provider.URL, accounttest.ClientID))
	d.write(filepath.Join(home, "gate.cedar"), `@id("gate") @approval("it is gated") permit (principal, action == Action::"execute", resource);
@id("see") permit (principal, action == Action::"list", resource);
@id("owner") permit (principal == User::"local:owner", action == Action::"configure", resource);
`)
	if d.app, err = app.Open(t.Context(), app.Options{Home: home}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(home, "source")
	d.write(filepath.Join(source, "manifest.yaml"), fmt.Sprintf("name: desk\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, desk]}\n", self))
	if _, err := d.app.Registry.Register(t.Context(), source, registry.RegisterOptions{Enable: true}); err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen(t.Context(), "127.0.0.1:0", false, false)
	if err != nil {
		t.Fatal(err)
	}
	d.url = "http://" + l.Addr().String()
	first, _, err := server.FirstRun(t.Context(), d.app, l)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, d.app, l, first, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := d.app.Close(); err != nil {
			t.Error(err)
		}
	})
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(filepath.Join(home, "profile")))
	allocated, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	bounded, late := context.WithTimeout(allocated, testwait.Limit)
	t.Cleanup(late)
	tab, closing := chromedp.NewContext(bounded)
	t.Cleanup(closing)
	d.browser = tab
	return d
}

func (d *desk) write(path, text string) {
	d.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) mortise(args ...string) string {
	d.Helper()
	var stdout, stderr bytes.Buffer
	if status := cli.Main(append(args, "--home", d.app.Home), strings.NewReader(""), &stdout, &stderr); status != 0 && status != 10 {
		d.Fatalf("mortise %v: %d %s", args, status, stderr.String())
	}
	return stdout.String()
}

// ask makes a call as bob that waits for an approval, and returns the id of that.
func (d *desk) ask() string {
	d.Helper()
	var said struct {
		Approval struct{ ID string }
	}
	out := d.mortise("run", "desk/line", "--set", "text=x", "--no-wait", "--json")
	if err := json.Unmarshal([]byte(out), &said); err != nil || said.Approval.ID == "" {
		d.Fatalf("%s, %v", out, err)
	}
	return said.Approval.ID
}

func (d *desk) do(actions ...chromedp.Action) {
	d.Helper()
	if err := chromedp.Run(d.browser, actions...); err != nil {
		d.Fatal(err)
	}
}

// text returns what the page says, once it has a part.
func (d *desk) text(part string) (text string) {
	d.Helper()
	d.do(chromedp.WaitVisible(part, chromedp.ByQuery), chromedp.Text("body", &text, chromedp.ByQuery))
	return text
}

// script runs a script in the page, waits for what it promises, and returns that.
func (d *desk) script(text string) (answer string) {
	d.Helper()
	d.do(chromedp.Evaluate(text, &answer, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return answer
}

// fetch asks for a path of the host from the page that is open, and returns the status, or
// why the page may not know it.
func (d *desk) fetch(method, path, options string) string {
	d.Helper()
	return d.script(fmt.Sprintf(`fetch(%q, {method: %q, %s}).then(r => String(r.status), e => "blocked")`, d.url+path, method, options))
}

const asPage = `credentials: "include", headers: {"Content-Type": "application/json"}, body: "{}"`

var linkForm = regexp.MustCompile(`/auth/invitation#[0-9A-Za-z]{43}`)

// Ann takes an invitation, approves a call from a page of the host and signs out; a page of
// another port of the same machine, to which the browser sends the same cookies, can do
// nothing in her name.
func TestAPersonSignsInWithABrowser(t *testing.T) {
	d := begin(t)
	d.mortise("users", "create", "ann")
	link := linkForm.FindString(d.mortise("users", "invite", "ann"))
	d.do(chromedp.Navigate(d.url + link))
	var code, address string
	d.do(chromedp.Value("#secret", &code, chromedp.ByQuery), chromedp.Location(&address))
	if !strings.HasSuffix(link, "#"+code) || strings.Contains(address, "#") {
		t.Fatalf("the page has %q, and its address is %s", code, address)
	}
	d.do(chromedp.Click("button", chromedp.ByQuery))
	if text := d.text(`form[action="/auth/own"]`); !strings.Contains(text, "You are ann.") {
		t.Fatalf("after the sign-in the page says %q", text)
	}
	d.do(chromedp.Click(`form[action="/auth/own"] button`, chromedp.ByQuery), chromedp.WaitNotPresent(`form[action="/auth/own"]`, chromedp.ByQuery))
	if seen := d.script(`Promise.resolve(document.cookie)`); seen != "" {
		t.Errorf("a script reads the cookies %q", seen)
	}
	open := d.ask()
	d.elsewhere(open)
	d.do(chromedp.Navigate(d.url + "/healthz"))
	if status := d.fetch("GET", "/api/v1/browsers", `credentials: "include"`); status != "200" {
		t.Fatalf("after what the other page tried she is answered %s", status)
	}
	if status := d.fetch("POST", "/api/v1/approvals/"+open+":approve", asPage); status != "200" {
		t.Errorf("an approval from a page of the host is answered %s", status)
	}
	d.do(chromedp.Navigate(d.url+"/auth/"), chromedp.Click(`form[action="/auth/sign-out"] button`, chromedp.ByQuery), chromedp.WaitNotPresent(`form[action="/auth/sign-out"]`, chromedp.ByQuery))
	d.do(chromedp.Navigate(d.url + "/healthz"))
	if status := d.fetch("GET", "/api/v1/browsers", `credentials: "include"`); status != "401" {
		t.Errorf("after the sign-out she is answered %s", status)
	}
}

// elsewhere tries from a page of another port what only a page of the host may.
func (d *desk) elsewhere(open string) {
	d.Helper()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>other</title><form id="out" method="post" action="%s/auth/sign-out"></form><form id="setup" method="post" action="%s/auth/setup"><input name="secret" value="x"></form>`, d.url, d.url)
	}))
	defer other.Close()
	approve := "/api/v1/approvals/" + open + ":approve"
	d.do(chromedp.Navigate(other.URL))
	for what, try := range map[string][3]string{
		"reads":                            {"GET", "/api/v1/browsers", `credentials: "include"`},
		"approves":                         {"POST", approve, asPage},
		"approves as a form would be sent": {"POST", approve, `credentials: "include", headers: {"Content-Type": "text/plain"}, body: "{}"`},
		"approves without an answer":       {"POST", approve, `mode: "no-cors", credentials: "include", body: "{}"`},
		"signs her out":                    {"POST", "/auth/sign-out", `mode: "no-cors", credentials: "include", headers: {"Content-Type": "application/x-www-form-urlencoded"}, body: "x=y"`},
	} {
		if status := d.fetch(try[0], try[1], try[2]); status != "blocked" && status != "0" {
			d.Errorf("a page of another port %s: %s", what, status)
		}
	}
	for _, form := range []string{"out", "setup"} { // a form is a navigation, which every page may begin
		d.do(chromedp.Navigate(other.URL), chromedp.Evaluate(`document.getElementById("`+form+`").submit()`, nil))
		if text := d.text("h1"); !strings.Contains(text, "not sent by a page of this host") {
			d.Errorf("the form %s of a page of another port is answered %q", form, text)
		}
	}
	d.do(chromedp.Navigate(other.URL))
	if framed := d.script(fmt.Sprintf(`new Promise(done => { const f = document.createElement("iframe"); f.src = %q;
		f.onload = () => { try { done(f.contentDocument ? "empty" : "refused") } catch { done("refused") } }; document.body.append(f) })`, d.url+"/auth/")); framed != "refused" {
		d.Errorf("a page of the host is framed: %s", framed)
	}
	// A cookie of the same name that the other page sets beside hers is no way in: two are refused.
	port := d.url[strings.LastIndexByte(d.url, ':')+1:]
	d.script(`Promise.resolve(document.cookie = "mortise-` + port + `=` + strings.Repeat("a", 43) + `; path=/api")`)
	d.do(chromedp.Navigate(d.url + "/healthz"))
	if status := d.fetch("GET", "/api/v1/browsers", `credentials: "include"`); status != "403" {
		d.Errorf("of two cookies one is taken: %s", status)
	}
	d.do(chromedp.Navigate(other.URL))
	d.script(`Promise.resolve(document.cookie = "mortise-` + port + `=; path=/api; max-age=0")`)
	if out := d.mortise("approvals", "show", open, "--json"); !strings.Contains(out, `"open"`) {
		d.Errorf("the approval is %s", out)
	}
}
