// Package shu runs packages of the Shu contract as a person does, by the
// command line: one package at least for each thing that published plugins rely
// on beyond the contract's text, and some that do real work against a provider
// on this machine. The packages in plugins/ are written as published ones are;
// what must come of them is in cases/. Those in bad/ must be refused.
package shu

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testinput"
	"github.com/mortise-dev/mortise/internal/service/account/accounttest"
)

// A scenario is one plugin, a provider, and calls one after the other.
type scenario struct {
	Row      string                `json:"row"`      // what published plugins rely on
	Plugin   string                `json:"plugin"`   // its directory in plugins/
	Name     string                `json:"name"`     // what its manifest calls it
	Bases    []string              `json:"bases"`    // knowledge bases that are there
	Hosts    []string              `json:"hosts"`    // that an administrator grants, where the code does not name them
	Account  bool                  `json:"account"`  // there is a provider of accounts, google, and an address at it
	Secrets  map[string]string     `json:"secrets"`  // of the caller, of all where the name has the prefix system:, for this plugin alone where it has own:
	Provider map[string][]response `json:"provider"` // by path, or method and path: in order, the last one again and again
	Calls    []step                `json:"calls"`
}

// A response is what the provider answers.
type response struct {
	Status  int               `json:"status"` // 200 where it is absent
	Headers map[string]string `json:"headers"`
	JSON    any               `json:"json"`
	Text    string            `json:"text"`
	Base64  string            `json:"base64"`
}

// A step is one call and what must come of it.
type step struct {
	Operation string         `json:"operation"` // without the plugin's name
	Params    map[string]any `json:"params"`
	Debug     bool           `json:"debug"`   // with --debug
	Approve   bool           `json:"approve"` // it waits for a person, who agrees
	Preview   any            `json:"preview"` // what that person is shown
	Want      want           `json:"want"`
}

// A want is what must come of a call; what is not there may be anything.
type want struct {
	Code       string `json:"code"`        // of the error; empty is success
	PluginCode string `json:"plugin_code"` // likewise
	Message    string `json:"message"`     // is contained
	Data       any    `json:"data"`
	Skips      any    `json:"skips"`
	Citations  any    `json:"citations"`
	NextCursor any    `json:"next_cursor"`
	Labels     any    `json:"labels"`
	Diagnosed  any    `json:"diagnostics"`
	Metrics    any    `json:"metrics"` // those named are there
}

// An outcome is what `mortise run --json` prints.
type outcome struct {
	Status     string         `json:"status"`
	Data       any            `json:"data"`
	Skips      any            `json:"skips"`
	Citations  any            `json:"citations"`
	NextCursor any            `json:"next_cursor"`
	Labels     any            `json:"labels"`
	Diagnosed  any            `json:"diagnostics"`
	Metrics    map[string]any `json:"metrics"`
	Approval   struct {
		ID      string `json:"id"`
		Preview any    `json:"preview"`
	} `json:"approval"`
	Error struct {
		Code       string `json:"code"`
		PluginCode string `json:"plugin_code"`
		Message    string `json:"message"`
	} `json:"error"`
}

func TestPublishedPlugins(t *testing.T) {
	cases, err := filepath.Glob("cases/*.json")
	if err != nil || len(cases) < 15 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s scenario
			read(t, file, &s)
			s.run(t, newHost(t))
		})
	}
}

// TestHintsAreKept: what a schema says for forms is shown as it was written
// (Schema UI Hints), beside what the manifest says of accounts and feeds.
func TestHintsAreKept(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.must(t, "plugins", "register", "--dev", "plugins/inbox-archive")
	var shown struct {
		Manifest struct {
			Feed       map[string]any   `json:"feed"`
			Identities []map[string]any `json:"identities"`
			Operations []struct {
				Name  string         `json:"name"`
				Auth  map[string]any `json:"auth"`
				Tags  []string       `json:"policy_tags"`
				Input struct {
					Properties map[string]map[string]any `json:"properties"`
				} `json:"input"`
			} `json:"operations"`
		} `json:"manifest"`
	}
	if err := json.Unmarshal(h.must(t, "plugins", "show", "inbox_archive", "--json"), &shown); err != nil {
		t.Fatal(err)
	}
	m := shown.Manifest
	if got := fmt.Sprintln(m.Feed, m.Identities[1]["provider"], m.Identities[1]["optional"]); got != "map[allowed:[ingest digest] default:ingest] chat true\n" {
		t.Errorf("of the manifest: %s", got)
	}
	for _, op := range m.Operations {
		p := op.Input.Properties
		switch op.Name {
		case "ingest":
			if got := fmt.Sprint(p["op"]["x-ui"], p["kb_id"]["x-ui"], p["query_filter"]["x-ui"], p["max_results"]["x-ui"]); got !=
				"map[enum_help:map[ingest:All of it.] enum_labels:map[digest:Digest ingest:Ingest]] map[help:Where it goes. hidden:true] map[placeholder:Auto] map[show_when:map[field:op in:[ingest]]]" {
				t.Errorf("of its schema: %s", got)
			}
			if got := fmt.Sprintln(op.Auth["mode"], op.Auth["allowed_modes"], op.Auth["subject_hint"]); got != "domain_delegate [user domain_delegate service_account] identity:google_email\n" {
				t.Errorf("of its account: %s", got)
			}
		case "mark_read":
			if got := fmt.Sprint(op.Tags); got != "[action requires_approval risk_low]" {
				t.Errorf("of an action: %s", got)
			}
		}
	}
}

// refusals are the packages in bad/, each with what the refusal says: the rule,
// and where it is broken.
var refusals = map[string]string{
	"name-int":               `manifest.py: at /name: "int" is reserved`,
	"name-prefix":            `manifest.py: at /name: "mcp-notes" begins with mcp-`,
	"name-colon":             `manifest.py: at /name: "a:b" holds a colon`,
	"imports-requests":       "plugin.py:2:5: it imports requests: a plugin reaches the network through host.http alone",
	"imports-httpx":          "plugin.py:2:5: it imports httpx.AsyncClient: a plugin reaches the network through host.http alone",
	"imports-urllib3":        "it imports urllib3",
	"imports-urllib":         "it imports urllib.request",
	"imports-importlib":      "plugin.py:3:20: it imports requests: a plugin reaches the network through host.http alone",
	"imports-host":           "plugin.py:1:1: it imports shu.core.settings: a plugin has no part of its host but what execute is given",
	"imports-dunder":         "plugin.py:1:5: it imports requests",
	"vendored-client":        "vendor/tiny/net.py:5:5: it imports urllib.request: a plugin reaches the network through host.http alone",
	"imports-by-exec":        "plugin.py:1: import of requests is denied: plugins have no HTTP clients of their own",
	"imports-by-getattr":     "plugin.py:3: import of httpx is denied: plugins have no HTTP clients of their own",
	"class-missing":          "plugin.py has no class Plugin",
	"execute-missing":        "the class Plugin has no execute: no operation can run",
	"chat-op-without-title":  "chats call it, so get_schema_for_op",
	"computed-manifest":      "manifest.py:1:",
	"comprehension-manifest": "manifest.py:6:",
	"spread-manifest":        "manifest.py:2:",
}

// late are those of which only their code tells that they cannot be used.
var late = map[string]bool{"imports-by-exec": true, "imports-by-getattr": true, "class-missing": true, "execute-missing": true, "chat-op-without-title": true}

// TestRefusedPackages: linked or copied, nothing of a package that is refused is
// there afterwards, and nothing of it runs.
func TestRefusedPackages(t *testing.T) {
	dirs, err := os.ReadDir("bad")
	if err != nil || len(dirs) != len(refusals) {
		t.Fatalf("%d packages and %d refusals, %v", len(dirs), len(refusals), err)
	}
	for dir, says := range refusals {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			path := filepath.Join("bad", dir)
			for _, args := range [][]string{{"--dev", path}, {path}} {
				out, errs, err := h.command(t, append([]string{"plugins", "register"}, args...)...)
				if said := string(out) + string(errs); err == nil || !strings.Contains(said, says) {
					t.Errorf("%s: it is registered, or refused without a word of %q: %v\n%s", args[0], says, err, said)
				}
			}
			var listed struct {
				Plugins []struct {
					Name  string `json:"name"`
					State string `json:"state"`
				} `json:"plugins"`
			}
			if err := json.Unmarshal(h.must(t, "plugins", "list", "--json"), &listed); err != nil {
				t.Fatal(err)
			}
			for _, one := range listed.Plugins {
				// What was refused by what its code says is there as a whole, and nothing of it runs.
				if one.Name == "bad" && (one.State != "disabled" || !late[dir]) {
					t.Errorf("something of it is there: %+v", listed.Plugins)
				}
			}
			if out, _, err := h.command(t, "run", "bad", "--json"); err == nil {
				t.Errorf("it runs: %s", out)
			}
		})
	}
}

// run plays a scenario.
func (s *scenario) run(t *testing.T, h *host) {
	address := serve(t, s.Provider)
	config := fmt.Sprintf(`policy:
  allow:
    - {operations: ["*"], effects: ["*"], untrusted: allow}
approvals: {by: [bob], trust_as: true}
egress:
  loopback: [%[1]s]
  hosts: {%[1]s: [%[3]s]}
  map: {api.provider.example: %[2]q}
`, s.Name, address, strings.Join(s.Hosts, ", "))
	if s.Account {
		google := accounttest.New(t)
		if err := os.WriteFile(filepath.Join(h.home, "robot.json"), []byte(google.RobotKey()), 0o600); err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("auth:\n  providers:\n    google: {client_id: %s, client_secret_name: google_client, issuer: %q, service_account: {key_file: robot.json}}\n", accounttest.ClientID, google.URL)
	}
	h.configure(t, config)
	h.must(t, "plugins", "register", "--dev", filepath.Join("plugins", s.Plugin))
	for _, base := range s.Bases {
		h.must(t, "kb", "create", base)
	}
	if s.Account {
		h.must(t, "identities", "link", "google", "ada@example.com", "local:owner")
	}
	for name, value := range s.Secrets {
		name, own := strings.CutPrefix(name, "own:")
		file := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"secrets", "set", strings.TrimPrefix(name, "system:"), "--from-file", file}
		if strings.HasPrefix(name, "system:") {
			args = append(args, "--system")
		}
		if own {
			args = append(args, "--plugin", s.Name)
		}
		h.must(t, args...)
	}
	for i, c := range s.Calls {
		got, printed := c.call(t, h, s.Name)
		c.judge(t, i+1, got, printed)
	}
}

// call makes one call and returns what came of it.
func (c *step) call(t *testing.T, h *host, name string) (got outcome, printed []byte) {
	t.Helper()
	params, err := json.Marshal(c.Params)
	if err != nil {
		t.Fatal(err)
	}
	if c.Params == nil {
		params = []byte("{}")
	}
	args := []string{"run", name + "/" + c.Operation, "--json", "--input", string(params)}
	if c.Debug {
		args = append(args, "--debug")
	}
	if c.Approve {
		args = append(args, "--no-wait")
	}
	printed, errs, _ := h.command(t, args...)
	if c.Approve {
		var asked outcome
		if err := json.Unmarshal(printed, &asked); err != nil || asked.Status != "pending_approval" || !reflect.DeepEqual(asked.Approval.Preview, c.Preview) {
			t.Fatalf("%s does not wait for a person, or shows something else than %v: %v: %s%s", c.Operation, c.Preview, err, printed, errs)
		}
		printed, errs, _ = h.command(t, "approvals", "approve", asked.Approval.ID, "--as", "bob", "--json")
	}
	if err := json.Unmarshal(printed, &got); err != nil {
		t.Fatalf("%s: %v: %s%s", c.Operation, err, printed, errs)
	}
	return got, printed
}

// judge holds what came against what was wanted.
func (c *step) judge(t *testing.T, n int, got outcome, printed []byte) {
	differs := func(what string, got, want any) {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("call %d of %s: %s is %v; wanted is %v\n%s", n, c.Operation, what, got, want, printed)
		}
	}
	w := c.Want
	status := "succeeded"
	if w.Code != "" {
		status = "failed"
	}
	differs("status", got.Status, status)
	differs("code", got.Error.Code, w.Code)
	differs("plugin_code", got.Error.PluginCode, w.PluginCode)
	if !strings.Contains(got.Error.Message, w.Message) {
		differs("message", got.Error.Message, w.Message)
	}
	for _, part := range []struct {
		name      string
		got, want any
	}{{"data", got.Data, w.Data}, {"skips", got.Skips, w.Skips}, {"citations", got.Citations, w.Citations}, {"next_cursor", got.NextCursor, w.NextCursor}, {"labels", got.Labels, w.Labels}, {"diagnostics", got.Diagnosed, w.Diagnosed}} {
		if part.want != nil {
			differs(part.name, part.got, part.want)
		}
	}
	if metrics, ok := w.Metrics.(map[string]any); ok {
		for name, value := range metrics {
			differs(name, got.Metrics[name], value)
		}
	}
}

// serve starts a provider on this machine and returns its address. At /echo it
// answers with what it was asked.
func serve(t *testing.T, responses map[string][]response) string {
	t.Helper()
	var mu sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/echo" {
			echo(w, r)
			return
		}
		key := r.Method + " " + r.URL.Path
		if responses[key] == nil {
			key = r.URL.Path
		}
		mu.Lock()
		n := asked[key]
		asked[key]++
		mu.Unlock()
		all := responses[key]
		if len(all) == 0 {
			http.Error(w, "nothing at "+r.URL.Path, http.StatusNotFound)
			return
		}
		all[min(n, len(all)-1)].write(w)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

func echo(w http.ResponseWriter, r *http.Request) {
	var body any
	if data, err := io.ReadAll(io.LimitReader(r.Body, 1<<20)); err == nil && len(data) > 0 {
		_ = json.Unmarshal(data, &body)
	}
	headers := map[string]string{}
	for name := range r.Header {
		headers[http.CanonicalHeaderKey(name)] = r.Header.Get(name)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "query": r.URL.RawQuery, "headers": headers, "body": body})
}

func (r response) write(w http.ResponseWriter) {
	body := []byte(r.Text)
	switch {
	case r.JSON != nil:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		body, _ = json.Marshal(r.JSON)
	case r.Base64 != "":
		w.Header().Set("Content-Type", "application/octet-stream")
		body, _ = base64.StdEncoding.DecodeString(r.Base64)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	for name, value := range r.Headers {
		w.Header().Set(name, value)
	}
	if r.Status != 0 {
		w.WriteHeader(r.Status)
	}
	_, _ = w.Write(body)
}

// A host is a data directory.
type host struct{ home string }

var binary string // the program

func TestMain(m *testing.M) {
	var err error
	if binary, err = testinput.Find("mortise"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func newHost(t *testing.T) *host {
	t.Helper()
	home, err := os.MkdirTemp("", "shu-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	h := &host{home}
	h.configure(t, "")
	return h
}

// patient is in every configuration: a machine that is busy starts Python slowly,
// and how fast it starts is no subject here.
const patient = "processes: {handshake: 60s}\n"

// configure writes the configuration.
func (h *host) configure(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(h.home, "mortise.yaml"), []byte(patient+text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h *host) command(t *testing.T, args ...string) (out, errs []byte, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "MORTISE_HOME="+h.home)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("mortise %s: %v\n%s%s", strings.Join(args, " "), ctx.Err(), stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), stderr.Bytes(), err
}

// must runs a command that succeeds and returns what it printed.
func (h *host) must(t *testing.T, args ...string) []byte {
	t.Helper()
	out, errs, err := h.command(t, args...)
	if err != nil {
		t.Fatalf("mortise %s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
	}
	return out
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
