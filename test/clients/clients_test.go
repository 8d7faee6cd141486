// Package clients_test generates clients from the document of the API, and calls a host
// with them.
package clients_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/oapi-codegen/runtime" // the client that is generated imports it

	"github.com/mortise-dev/mortise/internal/base/testinput"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

const document = "../../docs/openapi.json"

// The test binary is the plugin of the host that it starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "desk" {
		p := mortise.New("desk", "1.0.0")
		mortise.Tool(p, "upper", "Make a text upper case.", func(_ *mortise.Call, in struct {
			Text string `json:"text"`
		}) (map[string]any, error) {
			return map[string]any{"text": strings.ToUpper(in.Text)}, nil
		})
		mortise.Tool(p, "stay", "Say that it has begun, and stay until the call is cancelled.", func(c *mortise.Call, _ struct{}) (map[string]any, error) {
			c.Progress(mortise.Progress{Message: "it has begun", Done: 1, Total: 2})
			<-c.Done()
			return nil, c.Err()
		})
		mortise.Operator(p, "gated", "Write a text that a person agrees to.", func(_ *mortise.Call, in struct {
			Text string `json:"text"`
		}) (map[string]any, error) {
			return map[string]any{"wrote": in.Text}, nil
		}, mortise.Effects("db_write"))
		p.Run()
		return
	}
	os.Exit(m.Run())
}

// A client that oapi-codegen writes compiles, and executes an operation.
func TestTheClientInGo(t *testing.T) {
	t.Parallel()
	api := filepath.Join("testdata", "go", "api")
	if err := os.MkdirAll(api, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, ".", "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", filepath.Join(api, "client.go"), document)
	program := filepath.Join(t.TempDir(), "call")
	run(t, ".", "go", "build", "-o", program, "./testdata/go/call")
	server, token := serve(t)
	if said := run(t, ".", program, server, token); said != "succeeded map[text:FROM GO] not_found" {
		t.Errorf("it says %q", said)
	}
}

// A client with the types that openapi-typescript writes compiles, and executes an
// operation.
func TestTheClientInTypeScript(t *testing.T) {
	t.Parallel()
	for _, needed := range []string{"node", "npm"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed", needed)
		}
	}
	dir := filepath.Join("testdata", "typescript")
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil {
		if out, err := exec.CommandContext(t.Context(), "npm", "ci", "--prefix", dir, "--no-audit", "--no-fund", "--loglevel=error").CombinedOutput(); err != nil {
			t.Skipf("its tools could not be installed with npm: %v, %s", err, out)
		}
	}
	run(t, dir, "npm", "run", "--silent", "build")
	server, token := serve(t)
	if said := run(t, dir, "node", filepath.Join("build", "call.js"), server, token); said != `succeeded {"text":"FROM TYPESCRIPT"} not_found` {
		t.Errorf("it says %q", said)
	}
}

// The official client of the Model Context Protocol for TypeScript lists and calls a tool, over
// HTTP and over standard streams.
func TestTheClientOfMCPInTypeScript(t *testing.T) {
	t.Parallel()
	dir := clientsOfMCP(t)
	binary := testinput.Host(t)
	server, token := serveWith(t, binary)
	for _, args := range [][]string{{"http", server, token}, {"stdio", binary, server, token}} {
		if said := run(t, dir, "node", append([]string{"call.mjs"}, args...)...); said != `true {"text":"FROM TYPESCRIPT"} true -32602` {
			t.Errorf("over %s it says %q", args[0], said)
		}
	}
}

// clientsOfMCP returns the folder with the official clients of the Model Context Protocol.
func clientsOfMCP(t *testing.T) string {
	t.Helper()
	for _, needed := range []string{"node", "npm"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("%s is not installed", needed)
		}
	}
	if err := installed(); err != nil {
		t.Skipf("the clients could not be installed with npm: %v", err)
	}
	return mcpDir
}

var mcpDir = filepath.Join("testdata", "mcp")

// installed installs the clients once for all tests, unless each of them is there.
var installed = sync.OnceValue(func() error {
	for _, name := range []string{"sdk", "client"} {
		if _, err := os.Stat(filepath.Join(mcpDir, "node_modules", "@modelcontextprotocol", name)); err == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, "npm", "ci", "--prefix", mcpDir, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w, %s", err, out)
		}
		return nil
	}
	return nil
})

// run returns the last line that a program writes.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// serve starts a host that has the plugin, and returns where it listens with a token.
func serve(t *testing.T) (server, token string) {
	t.Helper()
	return serveWith(t, testinput.Host(t))
}

func serveWith(t *testing.T, binary string) (server, token string) {
	t.Helper()
	h := begin(t, binary, map[string]string{"mortise.yaml": "sandbox: best-effort\npolicy: {default: tools}\n"})
	token = run(t, ".", binary, "--home", h.home, "tokens", "create", "test", "--scope", "run")
	h.serve(t)
	return h.server, token
}

// A host is a data directory with the plugin, and what serves it.
type host struct {
	binary, home string
	server       string // where it listens
}

// begin registers the plugin in a data directory that has these files.
func begin(t *testing.T, binary string, files map[string]string) *host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	plugin := filepath.Join(home, "source")
	for name, text := range files {
		write(t, filepath.Join(home, name), text)
	}
	write(t, filepath.Join(plugin, "manifest.yaml"), "name: desk\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [./desk, desk]}\n")
	if err := os.WriteFile(filepath.Join(plugin, "desk"), code, 0o700); err != nil {
		t.Fatal(err)
	}
	run(t, ".", binary, "--home", home, "plugins", "register", plugin)
	return &host{binary: binary, home: home}
}

// serve starts the host, which the end of the test stops.
func (h *host) serve(t *testing.T) {
	t.Helper()
	cmd := exec.Command(h.binary, "--home", h.home, "serve", "--listen", "127.0.0.1:0")
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		_ = cmd.Wait() // a signal is no failure of the client
	})
	lines := bufio.NewScanner(errs)
	for lines.Scan() {
		if _, address, found := strings.Cut(lines.Text(), "listening on "); found {
			go func() { // until the host closes it
				for lines.Scan() {
				}
			}()
			h.server = address
			return
		}
	}
	t.Fatalf("the host ended before it listened: %v", lines.Err())
}

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
