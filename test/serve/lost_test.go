package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evanw/esbuild/pkg/api"
)

// repository is where the sources are.
const repository = "../.."

// A driver has one of our clients ask for something that happens once, over an address where the first
// answer is lost. It returns how often it happened.
type driver func(t *testing.T, n *node, url string) int

// drivers has each client of ours that asks a host for effects, by the file that sends its requests.
var drivers = map[string][]driver{
	"internal/surface/client/remote.go":     {runsACommand, asksADecision},
	"internal/surface/client/mcp.go":        {callsOverStreams},
	"sdk/python/mortise_client/_client.py":  {callsFromPython},
	"sdk/typescript/client/src/client.ts":   {callsFromTypeScript},
	"internal/host/doctor/server.go":        nil, // it reads
	"internal/surface/client/background.go": nil, // it tells a host to end, which a host does once
	"internal/surface/client/console.go":    nil, // it asks for a link to sign in, which is used once
}

// Sources that send requests, and those that know a path of the API.
var (
	sends = regexp.MustCompile(`http\.NewRequest|urllib\.request\.Request\(|\bfetch\(`)
	paths = regexp.MustCompile(`api/v1|rest\.(Prefix|MCPPath|EndPath)|"/auth/`)
)

// Each client of ours repeats a request whose answer was lost under one idempotency key, so that it
// has one effect. The clients are those that the tree has: a new one is found here.
func TestALostAnswerIsOneEffectWithEachClientOfOurs(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if slices.Contains([]string{".git", "node_modules", "testdata", "test", "tests", "client_tests", "console", "bench", "docs", "dist", "build"}, name) {
				return fs.SkipDir
			}
			return nil
		case strings.HasSuffix(name, "_test.go") || !slices.Contains([]string{".go", ".py", ".ts", ".js", ".mjs", ".sh"}, filepath.Ext(name)):
			return nil
		}
		source, err := os.ReadFile(path)
		if err == nil && sends.Match(source) && paths.Match(source) {
			relative, _ := filepath.Rel(repository, path)
			found[filepath.ToSlash(relative)] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range found {
		if _, known := drivers[file]; !known {
			t.Errorf("%s sends requests to a host: add it here, with what shows that a lost answer is one effect", file)
		}
	}
	for file, all := range drivers {
		if !found[file] {
			t.Errorf("%s sends no requests to a host any more", file)
		}
		for i, drive := range all {
			t.Run(fmt.Sprint(file, " ", i), func(t *testing.T) {
				t.Parallel()
				n := prepare(t, "")
				n.write("serve.cedar", rules+`@id("tools") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"reported.claude-code");`)
				n.must("plugins", "register", filepath.Join(n.desk, "source"))
				n.token = strings.TrimSpace(n.must("tokens", "create", "test", "--for", "ann", "--scope", "run", "--scope", "read", "--scope", "decide"))
				n.serve()
				l := &lossy{to: n.url, lost: map[string]int{}, keys: map[string]bool{}}
				server := httptest.NewServer(l)
				t.Cleanup(server.Close)
				times := drive(t, n, server.URL)
				l.mu.Lock()
				defer l.mu.Unlock()
				if len(l.lost) != 1 || l.sent < 2 || len(l.keys) != 1 || l.keys[""] {
					t.Errorf("%d requests were sent, of %v one answer was lost, and the keys are %v; want two or more requests under one key", l.sent, l.lost, slices.Collect(maps.Keys(l.keys)))
				}
				if times != 1 {
					t.Errorf("it happened %d times, want 1", times)
				}
			})
		}
	}
}

// lossy passes requests on. It loses the first answer to a request that may have an effect: the host
// has answered, and the connection ends.
type lossy struct {
	to string

	mu   sync.Mutex
	lost map[string]int  // answers by path
	sent int             // requests that may have an effect
	keys map[string]bool // of these
}

// ServeHTTP implements [http.Handler].
func (l *lossy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, l.to+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return
	}
	out.Header = r.Header.Clone()
	res, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return
	}
	if l.loses(r, body) {
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.Close()
		}
		return
	}
	maps.Copy(w.Header(), res.Header)
	w.WriteHeader(res.StatusCode)
	_, _ = w.Write(answer)
}

func (l *lossy) loses(r *http.Request, body []byte) bool {
	path := r.URL.Path
	effect := r.Method == http.MethodPost && (path == "/api/v1/calls" || path == "/api/v1/decisions" || strings.HasSuffix(path, ":execute") || path == "/mcp" && bytes.Contains(body, []byte("tools/call")))
	if !effect {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	l.keys[r.Header.Get("Idempotency-Key")] = true
	l.lost[path]++
	if l.lost[path] > 1 {
		l.lost[path] = 1
		return false
	}
	return true
}

// runs returns what a program prints.
func runs(t *testing.T, n *node, url, stdin string, env []string, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(append(os.Environ(), "MORTISE_HOME="+t.TempDir(), "MORTISE_CONFIG=", "MORTISE_AS=", "MORTISE_DATABASE=", "MORTISE_SERVER="+url, "MORTISE_URL="+url, "MORTISE_TOKEN="+n.token,
		"HOME="+t.TempDir(), "XDG_CACHE_HOME="+t.TempDir()), env...)
	cmd.Stdin = strings.NewReader(stdin)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s %s: %v\n%s%s", program, strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

func runsACommand(t *testing.T, n *node, url string) int {
	runs(t, n, url, "", nil, self(t), "mortise", "run", "desk/line", "--set", "text=once")
	return n.left()["once"]
}

func asksADecision(t *testing.T, n *node, url string) int {
	said := runs(t, n, url, `{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t"}`, nil, self(t), "mortise", "hook", "claude-code")
	if !strings.Contains(said, `"permissionDecision":"allow"`) {
		t.Errorf("the hook says %q", said)
	}
	var page struct{ Calls []any }
	if err := json.Unmarshal([]byte(n.must("calls", "list", "--operation", "reported.claude-code/Bash", "--json")), &page); err != nil {
		t.Error(err)
	}
	return len(page.Calls)
}

func callsOverStreams(t *testing.T, n *node, url string) int {
	said := runs(t, n, url, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"desk.line","arguments":{"text":"once"}}}`+"\n", nil, self(t), "mortise", "mcp")
	if strings.Count(said, `"id":2`) != 1 || strings.Contains(said, `"error"`) {
		t.Errorf("the bridge says %s", said)
	}
	return n.left()["once"]
}

func callsFromPython(t *testing.T, n *node, url string) int {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	sdk, err := filepath.Abs(filepath.Join(repository, "sdk", "python"))
	if err != nil {
		t.Fatal(err)
	}
	runs(t, n, url, "", []string{"PYTHONPATH=" + sdk, "PYTHONDONTWRITEBYTECODE=1"}, python, "-c",
		`from mortise_client import Client; assert Client().execute("desk/line", {"text": "once"}).status == "succeeded"`)
	return n.left()["once"]
}

func callsFromTypeScript(t *testing.T, n *node, url string) int {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	built := api.Build(api.BuildOptions{
		Stdin: &api.StdinOptions{ResolveDir: filepath.Join(repository, "sdk", "typescript", "client", "src"), Contents: `import { Client } from "./client.ts";
const outcome = await new Client().execute("desk/line", { text: "once" });
if (outcome.status !== "succeeded") throw new Error(outcome.status);`},
		Bundle: true, Platform: api.PlatformNode, Format: api.FormatESModule, Write: false,
	})
	if len(built.Errors) > 0 {
		t.Fatalf("%+v", built.Errors)
	}
	runs(t, n, url, string(built.OutputFiles[0].Contents), nil, node, "--input-type=module")
	return n.left()["once"]
}
