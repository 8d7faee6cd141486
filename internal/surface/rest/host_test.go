package rest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// The test binary is the plugins of the host that it opens.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "desk":
			deskPlugin(os.Args[2])
		case "shared":
			sharedPlugin(os.Args[2])
		case "planner":
			plannerPlugin()
		case "teller":
			tellerPlugin()
		case "needy":
			p := mortise.New("needy", "1.0.0")
			mortise.Tool(p, "say", "Say it again.", func(_ *mortise.Call, in struct {
				Text string `json:"text"`
			}) (string, error) {
				return in.Text, nil
			})
			p.Run()
		case "solo":
			p := mortise.New("solo", "1.0.0")
			mortise.Tool(p, "say", "Say it again.", func(_ *mortise.Call, in struct {
				Text string `json:"text"`
			}) (string, error) {
				return in.Text, nil
			}, mortise.Permissions("basic"))
			p.Run()
		}
	}
	goleak.VerifyTestMain(m)
}

// deskPlugin has an operation for each way that a call can end. Its effects are lines in a
// file, so that nothing that ran twice can be overlooked.
func deskPlugin(log string) {
	p := mortise.New("desk", "1.0.0")
	type text struct {
		Text string `json:"text"`
	}
	line := func(_ *mortise.Call, in text) (map[string]any, error) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, in.Text)
		return map[string]any{"wrote": in.Text, "n": int64(9007199254740993)}, err
	}
	mortise.Tool(p, "upper", "Make a text upper case.", func(_ *mortise.Call, in text) (map[string]any, error) {
		return map[string]any{"text": strings.ToUpper(in.Text)}, nil
	})
	mortise.Tool(p, "traced", "Say below which span it runs.", func(c *mortise.Call, _ struct{}) (map[string]any, error) {
		return map[string]any{"traceparent": c.About().Trace.Parent}, nil
	})
	mortise.Tool(p, "fail", "Fail.", func(_ *mortise.Call, in text) (map[string]any, error) {
		return nil, mortise.Errorf("OUT_OF_INK", "there is no ink for %s", in.Text)
	})
	mortise.Operator(p, "line", "Leave a line.", line, mortise.Effects("db_write"))
	mortise.Operator(p, "jam", "Fail, and have had no effect.", func(_ *mortise.Call, in text) (map[string]any, error) {
		return nil, mortise.Errorf("PAPER_JAM", "there is no way through for %s", in.Text)
	}, mortise.Effects("db_write"))
	mortise.Operator(p, "vanish", "Leave a line, and be gone before it is said.", func(c *mortise.Call, in text) (map[string]any, error) {
		_, _ = line(c, in)
		os.Exit(1)
		return nil, nil
	}, mortise.Effects("db_write"))
	mortise.Operator(p, "slow", "Leave a line once the test allows it.", func(c *mortise.Call, in text) (map[string]any, error) {
		for {
			if _, err := os.Stat(log + "." + in.Text); err == nil {
				return line(c, in)
			}
			select {
			case <-c.Done():
				return nil, c.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	}, mortise.Effects("db_write"))
	mortise.Operator(p, "gated", "Leave a line that a person agrees to.", line, mortise.Effects("db_write"))
	mortise.Operator(p, "denied", "Leave a line that no policy allows.", line, mortise.Effects("db_write"))
	p.Run()
}

// plannerPlugin proposes one line.
func plannerPlugin() {
	p := mortise.New("planner", "1.0.0")
	mortise.Agent(p, "plan", "Propose an operation.", func(*mortise.Call, mortise.AgentInput) (mortise.Proposal, error) {
		return mortise.Proposal{
			AgentName: "planner", AgentVersion: "1.0.0", Kind: "plan_proposal", Confidence: 1,
			Rationale:       mortise.Rationale{Short: "It was asked for.", Signals: []string{"intent_type:Line.Leave"}},
			RequiredActions: []mortise.RequiredAction{{Operator: "desk/gated", Payload: map[string]any{"text": "planned"}}},
			ProposedPlan:    &mortise.ProposedPlan{Steps: []mortise.ProposedStep{{ID: "s1", Action: "desk/gated", Gate: "none"}}},
		}, nil
	}, mortise.AllowedActions("desk/gated"))
	p.Run()
}

func person(id string) plugin.Principal {
	return plugin.Principal{Type: "user", ID: id, Scopes: []string{"*"}}
}

// grouped is a person whose sign-in has them in groups.
func grouped(id string, groups ...string) plugin.Principal {
	who := person(id)
	who.Groups = groups
	return who
}

// callers are who the tokens of the tests stand for. With scopes behind it, as in
// mrt_ann:read+run, a token has those.
var callers = map[string]host.Caller{
	"mrt_ann":     {Principal: person("ann"), Asker: "api:ann", Scopes: []string{"admin"}},
	"mrt_ben":     {Principal: person("ben"), Asker: "api:ben", Scopes: []string{"admin"}},
	"mrt_root":    {Principal: person("root"), Asker: "api:root", Scopes: []string{"admin"}},
	"mrt_site":    {Principal: person("local:owner"), Asker: "api:local:owner", Scopes: []string{"admin"}},
	"mrt_bob":     {Principal: person("bob"), Asker: "api:bob", Scopes: []string{"approve"}},
	"mrt_bobs":    {Principal: person("bob"), Asker: "api:bob", Scopes: []string{"admin"}},
	"mrt_narrow":  {Principal: person("bob"), Asker: "api:bob", Scopes: []string{"approve"}, Operations: []string{"desk/upper"}},
	"mrt_none":    {Principal: person("ann"), Asker: "api:ann"},
	"mrt_reader":  {Principal: person("ann"), Asker: "api:ann", Scopes: []string{"read"}},
	"mrt_runner":  {Principal: person("ann"), Asker: "api:ann", Scopes: []string{"run"}},
	"mrt_upper":   {Principal: person("ann"), Asker: "api:ann", Scopes: []string{"read", "run"}, Operations: []string{"desk/upper"}},
	"mrt_desk":    {Principal: person("ann"), Asker: "api:ann", Scopes: []string{"read", "run"}, Operations: []string{"desk/*"}},
	"mrt_few":     {Principal: person("root"), Asker: "api:root", Token: "few", Scopes: []string{"admin"}, Operations: []string{"desk/upper"}},
	"mrt_eve":     {Principal: person("eve"), Asker: "api:eve", Scopes: []string{"admin"}},
	"mrt_in":      {Principal: grouped("eve", "people"), Asker: "api:eve", Scopes: []string{"admin"}}, // as a sign-in has her in a group
	"mrt_program": {Principal: plugin.Principal{Type: "service", ID: "ci", Scopes: []string{"*"}}, Asker: "api:service::ci", Scopes: []string{"admin"}},
	"mrt_other":   {Principal: person("ann"), Asker: "api:ann", Scopes: []string{"read", "run"}, Operations: []string{"mail/*"}},
}

func authenticate(_ context.Context, token, remote string) (host.Caller, error) {
	if remote != "127.0.0.1" {
		return host.Caller{}, fmt.Errorf("it came from %q", remote)
	}
	if token == "mrt_often" {
		return host.Caller{}, &plugin.Error{Code: plugin.CodeRateLimited, Message: "too many tokens that are none", RetryAfter: 1500 * time.Millisecond}
	}
	name, scopes, narrowed := strings.Cut(token, ":")
	caller, found := callers[name]
	if narrowed {
		caller.Scopes = strings.Split(scopes, "+")
	}
	if !found {
		return caller, plugin.Errorf(plugin.CodeUnauthenticated, "there is no token %s", token)
	}
	return caller, nil
}

const policies = `
@id("run") @untrusted("allow") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"desk")
  unless { resource == Operation::"desk/gated" || resource == Operation::"desk/denied" };
@id("solo") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"solo");
@id("find") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"finder");
@id("plan") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"planner");
@id("seen") permit (principal, action == Action::"list", resource in Plugin::"desk");
@id("gate") @approval("it is gated") permit (principal, action == Action::"execute", resource == Operation::"desk/gated");
@id("tell") @untrusted("allow") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"teller");
@id("hook") permit (principal, action == Action::"execute", resource in Plugin::"reported.hook");
@id("turn") permit (principal == User::"root", action == Action::"execute", resource in Plugin::"agent.chat");
`

// A bench is a host that answers over HTTP.
type bench struct {
	*testing.T
	app *app.App
	url string
	log string // what the plugin has left

	authenticated atomic.Int64           // requests whose token was checked
	expired       atomic.Pointer[string] // a token that is not valid any more
	given         sync.Map               // callers by their token, in place of those of the table
}

// allow lets desk/slow with this text go on.
func (b *bench) allow(text string) {
	b.Helper()
	b.write(b.log+"."+text, "")
}

// realToken is how long the tokens are that the host makes.
const realToken = len("mrt_uAAAAAAAAAA_") + 32 + len("_AAAAAA")

// begin opens a host with the plugins of these tests.
func begin(t *testing.T, o rest.Options) *bench {
	t.Helper()
	return beginWith(t, o, "", app.Options{})
}

// beginWith is begin with more in mortise.yaml.
func beginWith(t *testing.T, o rest.Options, config string, with app.Options) *bench {
	t.Helper()
	home := t.TempDir()
	b := &bench{T: t, log: filepath.Join(home, "lines.txt")}
	b.write(filepath.Join(home, "key"), "key")
	b.write(filepath.Join(home, "mortise.yaml"), "sandbox: \"off\" # what a plugin does shows in a file outside\n"+
		"models: {light: [{name: small, provider: openai, model: m-1, base_url: \""+parrot(t)+"/v1\", api_key_file: key}]}\n"+
		"policy: {files: [rest.cedar], configure: [root], groups: {people: [ann, ben, \"service::ci\"]}}\napprovals: {by: [bob]}\n"+config)
	b.write(filepath.Join(home, "rest.cedar"), policies)
	quiet := slog.New(slog.DiscardHandler)
	with.Home, with.Log = home, cmp.Or(with.Log, quiet)
	a, err := app.Open(t.Context(), with)
	if err != nil {
		t.Fatal(err)
	}
	b.app = a
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, extra := range map[string]string{
		"desk":    "",
		"solo":    "",
		"planner": "operations:\n  plan: {kind: agent, description: Propose., allowed_actions: [desk/gated]}\n",
	} {
		if err := b.register(name, "1.0.0", fmt.Sprintf("runner: {kind: process, command: [%q, %s, %q]}\n%s", self, name, b.log, extra)); err != nil {
			t.Fatal(err)
		}
	}
	real := a.Host.Authenticator()
	o.Telemetry = a.Telemetry
	o.Rate, o.Burst = cmp.Or(o.Rate, 1e6), cmp.Or(o.Burst, 1e6)
	// A request waits for its call as long as the call takes on a busy machine.
	o.Wait, o.MaxWait, o.WorkTime = cmp.Or(o.Wait, testwait.Limit), cmp.Or(o.MaxWait, testwait.Limit), cmp.Or(o.WorkTime, testwait.Limit)
	o.BodyTime, o.WriteTime = cmp.Or(o.BodyTime, testwait.Limit), cmp.Or(o.WriteTime, testwait.Limit)
	o.Host, o.Authenticate = a.Host, func(ctx context.Context, token, remote string) (host.Caller, error) {
		defer b.authenticated.Add(1)
		if expired := b.expired.Load(); expired != nil && *expired == token {
			return host.Caller{}, host.ErrToken
		}
		if c, is := b.given.Load(token); is {
			return c.(host.Caller), nil
		}
		if len(token) == realToken {
			return real.Token(ctx, token, remote)
		}
		return authenticate(ctx, token, remote)
	}
	server := httptest.NewServer(rest.New(o))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

// register installs a version of a plugin, and returns why it may not be called.
func (b *bench) register(name, version, rest string) error {
	b.Helper()
	dir := b.TempDir()
	b.write(filepath.Join(dir, "manifest.yaml"), fmt.Sprintf("name: %s\nversion: %s\nowner: test\ndescription: A test.\n%s", name, version, rest))
	report, err := b.app.Registry.Register(b.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil {
		b.Fatal(err)
	}
	return report.Registered[0].NotEnabled
}

// parrot is a model that says good day, whatever it is told. Told wait:PATH it says so once
// there is such a file; it leaves PATH.asked, and PATH.gone where it is not waited for.
func parrot(t *testing.T) string {
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		if said := strings.Split(string(asked), "wait:"); len(said) > 1 { // the last one: the rest is what was said before
			gate, _, _ := strings.Cut(said[len(said)-1], `"`)
			_ = os.WriteFile(gate+".asked", nil, 0o600)
			for _, err := os.Stat(gate); err != nil; _, err = os.Stat(gate) {
				if host.Pause(r.Context(), 5*time.Millisecond); r.Context().Err() != nil {
					_ = os.WriteFile(gate+".gone", nil, 0o600)
					return
				}
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		const chunk = `{"id":"1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[%s]%s}`
		fmt.Fprintf(w, "data: "+chunk+"\n\n", `{"index":0,"delta":{"role":"assistant","content":"Good day."},"finish_reason":"stop"}`, "")
		fmt.Fprintf(w, "data: "+chunk+"\n\ndata: [DONE]\n\n", "", `,"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}`)
	}))
	t.Cleanup(model.Close)
	return model.URL
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

// lines returns what the plugin has left.
func (b *bench) lines() []string {
	b.Helper()
	text, err := os.ReadFile(b.log)
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	return strings.Fields(string(text))
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any // nil where it is no object
}

func (a answer) String() string { return strconv.Itoa(a.status) + " " + a.text }

// at returns a member of members, "" where there is none.
func (a answer) at(names ...string) any {
	var v any = a.body
	for _, name := range names {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	return v
}

// ask sends a request with a token. headers are names and values in turn.
func (b *bench) ask(token, method, path, body string, headers ...string) answer {
	b.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(b.Context(), method, b.url+path, in)
	if err != nil {
		b.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		b.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	var text []byte
	if resp.Header.Get("Content-Type") == "text/event-stream" && method == "GET" { // it may have no end
		text = make([]byte, 512)
		n, _ := resp.Body.Read(text)
		text = text[:n]
	} else if text, err = io.ReadAll(resp.Body); err != nil {
		b.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, text: string(text)}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	_ = d.Decode(&a.body)
	if h := a.header; h.Get("Cache-Control") != "no-store" || h.Get("X-Request-Id") == "" || h.Get("X-Content-Type-Options") != "nosniff" {
		b.Errorf("%s %s is answered with %v", method, path, h)
	}
	if a.status >= 400 {
		b.isProblem(a)
	}
	return a
}

// isProblem checks the form that every refusal has but those of Shu's contract.
func (b *bench) isProblem(a answer) {
	b.Helper()
	if _, shu := a.body["error"]; shu {
		return
	}
	code, _ := a.body["code"].(string)
	if a.header.Get("Content-Type") != "application/problem+json" || fmt.Sprint(a.body["status"]) != strconv.Itoa(a.status) || !plugin.Code(code).Known() ||
		a.body["title"] != plugin.Code(code).Meaning() || a.body["detail"] == "" || !strings.HasSuffix(fmt.Sprint(a.body["type"]), "/docs/codes.md#"+code) {
		b.Errorf("it is no problem: %s %v", a, a.header)
	}
	for name := range a.body {
		switch name {
		case "type", "title", "status", "detail", "code", "call_id", "errors", "trace_id", "hint", "retryable", "details", "result":
		default:
			b.Errorf("a problem has no member %s: %s", name, a)
		}
	}
}

// is checks a status, and the code of a problem or the status of a call.
func (b *bench) is(a answer, status int, word string) answer {
	b.Helper()
	got := a.at("code")
	if a.status < 300 {
		got = a.at("status")
	}
	if a.status != status || word != "" && got != word {
		b.Errorf("it is answered %s, want %d %s", a, status, word)
	}
	return a
}

func (b *bench) execute(token, op, text string, headers ...string) answer {
	b.Helper()
	return b.ask(token, "POST", "/api/v1/operations/desk/"+op+":execute", fmt.Sprintf(`{"input":{"text":%q}}`, text), headers...)
}

// planned is a plan of ann's, which waits for approval.
func (b *bench) planned() string {
	b.Helper()
	v, err := b.app.As(person("ann")).Plans().Submit(b.Context(), host.NewPlan{
		Agent: "planner", Origin: plugin.OriginAPI, Input: json.RawMessage(`{"intent":{"type":"Line.Leave","payload":{}}}`),
	})
	if err != nil {
		b.Fatal(err)
	}
	return v.ID
}

// decide has a person decide about an approval.
func (b *bench) decide(id string, approve bool) {
	b.Helper()
	_, err := b.app.Approvals.Decide(b.Context(), host.Decision{Tenant: "local", ID: id, By: person("bob"), Asker: "api:bob", Approve: approve, Reason: "it was agreed"})
	if err != nil {
		b.Fatal(err)
	}
}
