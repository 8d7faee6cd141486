package mcp_test

import (
	"cmp"
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
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/cli"
	"github.com/mortise-dev/mortise/internal/surface/mcp"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// The test binary is the plugins of the host that it opens.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "program":
			os.Exit(cli.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case "desk":
			deskPlugin(os.Args[2])
		case "many":
			n, _ := strconv.Atoi(os.Args[2])
			manyPlugin(n)
		case "faces":
			facesPlugin()
		}
	}
	goleak.VerifyTestMain(m)
}

type text struct {
	Text string `json:"text"`
}

// deskPlugin has an operation for each way that a call can end. Its effects are lines in a
// file.
func deskPlugin(dir string) {
	p := mortise.New("desk", "1.0.0")
	log := filepath.Join(dir, "lines.txt")
	line := func(_ *mortise.Call, in text) (map[string]any, error) {
		f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, in.Text)
		return map[string]any{"wrote": in.Text}, err
	}
	mortise.Tool(p, "upper", "Make a text upper case.", func(_ *mortise.Call, in text) (text, error) {
		return text{strings.ToUpper(in.Text)}, nil
	})
	mortise.Tool(p, "words", "Take a text apart.", func(_ *mortise.Call, in text) ([]string, error) {
		return strings.Fields(in.Text), nil
	})
	mortise.Tool(p, "fail", "Fail.", func(_ *mortise.Call, in text) (map[string]any, error) {
		return nil, mortise.Errorf("OUT_OF_INK", "there is no ink for %s", in.Text)
	})
	mortise.Tool(p, "stay", "Say how far it is, and stay until there is a file.", func(c *mortise.Call, in text) (map[string]any, error) {
		c.Progress(mortise.Progress{Message: "one of three", Done: 1, Total: 3})
		c.Progress(mortise.Progress{Message: "two of three", Done: 2, Total: 3})
		for {
			if _, err := os.Stat(filepath.Join(dir, in.Text)); err == nil {
				return map[string]any{"left": true}, nil
			}
			select {
			case <-c.Done():
				_ = os.WriteFile(filepath.Join(dir, in.Text+".gone"), nil, 0o600)
				return nil, c.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	mortise.Operator(p, "line", "Leave a line.", line, mortise.Effects("db_write"))
	mortise.Operator(p, "gated", "Leave a line that a person agrees to.", line, mortise.Effects("db_write"))
	mortise.Operator(p, "denied", "Leave a line that no policy allows.", line, mortise.Effects("db_write"))
	mortise.Operator(p, "short", "Leave a line that is short.", line, mortise.Effects("db_write"))
	mortise.Operator(p, "secret", "Leave a line that no one is to know of.", line, mortise.Effects("db_write"))
	mortise.Operator(p, "vanish", "Leave a line, and be gone before it is said.", func(c *mortise.Call, in text) (map[string]any, error) {
		_, _ = line(c, in)
		os.Exit(1)
		return nil, nil
	}, mortise.Effects("db_write"))
	mortise.Operator(p, "slow", "Leave a line once there is a file.", func(c *mortise.Call, in text) (map[string]any, error) {
		for {
			if _, err := os.Stat(filepath.Join(dir, in.Text)); err == nil {
				return line(c, in)
			}
			select {
			case <-c.Done():
				return nil, c.Err()
			case <-time.After(5 * time.Millisecond):
			}
		}
	}, mortise.Effects("db_write"))
	mortise.Operator(p, "send", "Send a line.", line, mortise.Effects("http_write"))
	p.Run()
}

// manyPlugin has n tools.
func manyPlugin(n int) {
	p := mortise.New("many", "1.0.0")
	for i := range n {
		mortise.Tool(p, fmt.Sprintf("t%04d", i), fmt.Sprintf("Say the number %d.", i), func(*mortise.Call, struct{}) (map[string]any, error) {
			return map[string]any{"n": i}, nil
		})
	}
	p.Run()
}

const policies = `
@id("run") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"desk")
  unless { resource == Operation::"desk/gated" || resource == Operation::"desk/denied" || resource == Operation::"desk/short" || resource == Operation::"desk/secret" };
@id("seen") permit (principal, action == Action::"list", resource in Plugin::"desk") unless { resource == Operation::"desk/secret" };
@id("gate") @approval("it is gated") permit (principal, action == Action::"execute", resource == Operation::"desk/gated");
@id("short") permit (principal, action == Action::"execute", resource == Operation::"desk/short") when { context.input has text && context.input.text == "short" };
@id("bob_decides") permit (principal == User::"bob", action == Action::"approve", resource);
@id("own") @self("allow") permit (principal == User::"cas", action == Action::"approve", resource == Operation::"desk/gated");
@id("ann_approves") permit (principal == User::"ann", action == Action::"approve", resource == Operation::"desk/gated");
@id("dans") @self("allow") permit (principal == User::"dan", action == Action::"approve", resource == Operation::"desk/gated");
@id("many") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"many");
@id("faces") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"faces") unless { resource == Operation::"faces/closed" || resource == Operation::"faces/locked" };
`

// A bench is a host that answers over HTTP.
type bench struct {
	*testing.T
	app *app.App
	url string
	dir string // where the plugin leaves lines
}

func begin(t *testing.T, o mcp.Options) *bench {
	t.Helper()
	b := &bench{T: t, dir: t.TempDir()}
	home := t.TempDir()
	b.write(filepath.Join(home, "mortise.yaml"), "sandbox: \"off\" # what a plugin does shows in a file outside\n"+
		"policy: {default: none, files: [mcp.cedar], configure: [root], groups: {people: [ann, ben, cas, dan]}}\napprovals: {by: [bob]}\n")
	b.write(filepath.Join(home, "mcp.cedar"), policies)
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b.app = a
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	b.register("desk", b.dir)
	known := a.Host.Authenticator()
	o.Profiles = map[string]mcp.Profile{
		"faces": {List: mcp.List{Mode: mcp.ListAll}, Operations: []string{"faces/*"}, Short: true},
		"one":   {List: mcp.List{Mode: mcp.ListAll}, Operations: []string{"desk/upper", "desk/denied"}},
	}
	o.Wait = cmp.Or(o.Wait, testwait.Limit)
	server := httptest.NewServer(rest.New(rest.Options{
		Host: a.Host, Authenticate: known.Token, Rate: 1e6, Burst: 1e6,
		MCP:      func(api host.API, by host.Caller) http.Handler { return mcp.Handler(api, by, o) },
		Metadata: func() string { return "https://mortise.example.com/.well-known/oauth-protected-resource" },
	}))
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *bench) register(name, argument string) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	b.write(filepath.Join(dir, "manifest.yaml"), fmt.Sprintf("name: %s\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, %s, %q]}\n", name, self, name, argument))
	report, err := b.app.Registry.Register(b.Context(), dir, registry.RegisterOptions{Enable: true})
	if err != nil {
		b.Fatal(err)
	}
	if err := report.Registered[0].NotEnabled; err != nil {
		b.Fatal(err)
	}
}

func (b *bench) write(path, text string) {
	b.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// lines returns what the plugin has left.
func (b *bench) lines() string {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "lines.txt"))
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// token makes a token of the host for a principal.
func (b *bench) token(who string, scopes string, operations ...string) string {
	b.Helper()
	_, text, err := b.app.As(root).Tokens().Create(b.Context(), host.NewToken{Name: who, For: who, Scopes: strings.Split(scopes, " "), Operations: operations})
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// approve has bob agree, with a token of his own.
func (b *bench) approve(approval string) {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.url+"/api/v1/approvals/"+approval+":approve", nil)
	if err != nil {
		b.Fatal(err)
	}
	res, err := bearer(b.token("bob", "approve")).RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(res.Body)
		b.Fatalf("bob's approval: %s", said)
	}
}

// record is the last entry of the call that a result is of.
func (b *bench) record(res *sdk.CallToolResult) (r plugin.CallRecord) {
	b.Helper()
	if err := b.app.Host.As(root).Flush(b.Context(), false); err != nil {
		b.Fatal(err)
	}
	entries, err := b.app.Host.As(root).Ledger().Find(b.Context(), fmt.Sprint(res.Meta["dev.mortise/call-id"]))
	if err != nil || len(entries) == 0 {
		b.Fatalf("the call is on the record as %v, %v", entries, err)
	}
	if err := json.Unmarshal(entries[len(entries)-1].Body, &r); err != nil {
		b.Fatal(err)
	}
	return r
}

type bearer string

func (t bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(t))
	return http.DefaultTransport.RoundTrip(r)
}

// connect is the official client, with a token, in a revision of the protocol.
func (b *bench) connect(token, revision, query string, o *sdk.ClientOptions) *sdk.ClientSession {
	b.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := c.Connect(b.Context(), &sdk.StreamableClientTransport{Endpoint: b.url + "/mcp" + query, HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1},
		&sdk.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close(); http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	return session
}

// names are the tools that a client is shown, by pages.
func names(t *testing.T, s *sdk.ClientSession) (all []string) {
	t.Helper()
	for tool, err := range s.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tool.Name)
	}
	return all
}

// call calls a tool, and returns its result, what it says and what is structured of it.
func call(t *testing.T, s *sdk.ClientSession, name, arguments string) (res *sdk.CallToolResult, said string, data map[string]any) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %s: %v", name, arguments, err)
	}
	data, _ = res.StructuredContent.(map[string]any)
	return res, saidOf(res), data
}

func saidOf(res *sdk.CallToolResult) string {
	var said []string
	for _, c := range res.Content {
		if t, is := c.(*sdk.TextContent); is {
			said = append(said, t.Text)
		}
	}
	return strings.Join(said, "\n")
}
