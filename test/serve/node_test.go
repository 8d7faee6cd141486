// Package serve runs 'mortise serve' as people do: as processes of their own that listen on
// the network, are told things by signals, are killed, and start again. Nothing is
// simulated. The test binary is the host, and the plugin that the host runs.
package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/cli"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "mortise":
			os.Exit(cli.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case "desk":
			desk(os.Args[2])
			return
		}
	}
	os.Exit(m.Run())
}

type text struct {
	Text string `json:"text"`
}

// desk is the plugin. Its effects are lines of a file, so that none that happened twice can
// be overlooked.
func desk(dir string) {
	p := mortise.New("desk", "1.0.0")
	line := func(in text) (map[string]any, error) {
		f, err := os.OpenFile(filepath.Join(dir, "lines"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = fmt.Fprintln(f, in.Text)
		return map[string]any{"wrote": in.Text}, err
	}
	mortise.Tool(p, "upper", "Make a text upper case.", func(_ *mortise.Call, in text) (map[string]any, error) {
		return map[string]any{"text": strings.ToUpper(in.Text)}, nil
	})
	mortise.Operator(p, "line", "Leave a line.", func(_ *mortise.Call, in text) (map[string]any, error) {
		return line(in)
	}, mortise.Effects("db_write"))
	mortise.Operator(p, "hold", "Leave a line, and say so when there is a file go.", func(_ *mortise.Call, in text) (map[string]any, error) {
		answer, err := line(in)
		for range time.Tick(5 * time.Millisecond) {
			if _, missing := os.Stat(filepath.Join(dir, "go")); missing == nil {
				break
			}
		}
		return answer, err
	}, mortise.Effects("db_write"))
	p.Run()
}

// A node is one host with a data directory of its own, that is started and ended.
type node struct {
	*testing.T
	home, desk string // the data directory, and where the plugin leaves its lines
	database   string
	token      string // of ann, with all scopes
	url        string // while it serves
	at         string // the address that it listens on, once it has one

	process *exec.Cmd
	said    *lines // what it says on standard error
}

// config is what every node is configured with; policies may follow.
const config = `sandbox: "off" # what the plugin does shows in files outside
drain: 20s
ledger: {tools: behind}
policy: {files: [serve.cedar], groups: {people: [ann, bob]}}
server: {rate: 100000, burst: 100000}
approvals: {by: ["local:owner"]}
processes: {max: 64, per_tenant: 32}
workers: 32
`

const rules = `
@id("all") @untrusted("allow") permit (principal, action in [Action::"execute", Action::"list"], resource in Plugin::"desk");
@id("owner") permit (principal == User::"local:owner", action == Action::"configure", resource);
`

// prepare makes a node with the plugin registered. database is "" for SQLite.
func prepare(t *testing.T, database string) *node {
	t.Helper()
	home, err := os.MkdirTemp("", "s") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	n := &node{T: t, home: home, desk: filepath.Join(home, "desk"), database: database}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	n.write("mortise.yaml", config)
	n.write("serve.cedar", rules)
	n.write("desk/source/manifest.yaml", fmt.Sprintf("name: desk\nversion: 1.0.0\nowner: test\ndescription: A test.\nrunner: {kind: process, command: [%q, desk, %q]}\n", self(t), n.desk))
	return n
}

// begin prepares a node and has it serve.
func begin(t *testing.T, database string) *node {
	t.Helper()
	n := prepare(t, database)
	n.must("plugins", "register", filepath.Join(n.desk, "source"))
	n.token = strings.TrimSpace(n.must("tokens", "create", "test", "--for", "ann", "--scope", "admin"))
	n.serve()
	return n
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func (n *node) write(name, text string) {
	n.Helper()
	path := filepath.Join(n.home, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil { // whole or not at all, as an editor does it
		err = os.WriteFile(path+".new", []byte(text), 0o600)
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		n.Fatal(err)
	}
}

// command is a run of the program on the node's data directory.
func (n *node) command(args ...string) *exec.Cmd {
	n.Helper()
	cmd := exec.Command(self(n.T), append([]string{"mortise", "--home", n.home}, args...)...)
	cmd.Env = append(os.Environ(), "MORTISE_DATABASE="+n.database, "MORTISE_CONFIG=", "MORTISE_AS=")
	return cmd
}

// run returns what a command prints, and its exit status.
func (n *node) run(args ...string) (out, errs string, status int) {
	n.Helper()
	cmd := n.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		n.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

func (n *node) must(args ...string) string {
	n.Helper()
	out, errs, status := n.run(args...)
	if status != 0 {
		n.Fatalf("mortise %s ended with %d: %s", strings.Join(args, " "), status, errs)
	}
	return out
}

// lines is what a process says, line by line.
type lines struct {
	mu   sync.Mutex
	all  []string
	more chan struct{} // closed and replaced with each line
	done chan struct{} // closed at the end
}

func (l *lines) read(from io.Reader) {
	defer close(l.done)
	in := bufio.NewScanner(from)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		l.mu.Lock()
		l.all = append(l.all, in.Text())
		close(l.more)
		l.more = make(chan struct{})
		l.mu.Unlock()
	}
}

// find returns the first line that has a text, waiting for it.
func (l *lines) find(ctx context.Context, text string) (string, bool) {
	for from := 0; ; {
		l.mu.Lock()
		all, more := l.all, l.more
		l.mu.Unlock()
		for ; from < len(all); from++ {
			if strings.Contains(all[from], text) {
				return all[from], true
			}
		}
		select {
		case <-more:
		case <-l.done:
			return "", false
		case <-ctx.Done():
			return "", false
		}
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// serve starts the node and waits until it listens. It is ended with the test.
func (n *node) serve(args ...string) {
	n.Helper()
	at := n.at
	if at == "" {
		at = "127.0.0.1:0"
	}
	n.process = n.command(append([]string{"serve", "--listen", at}, args...)...)
	errs, err := n.process.StderrPipe()
	if err == nil {
		err = n.process.Start()
	}
	if err != nil {
		n.Fatal(err)
	}
	process := n.process
	n.said = &lines{more: make(chan struct{}), done: make(chan struct{})}
	go n.said.read(errs)
	n.Cleanup(func() {
		if process.ProcessState == nil {
			_ = process.Process.Kill()
			_ = process.Wait()
		}
	})
	ctx, cancel := context.WithTimeout(n.Context(), time.Minute)
	defer cancel()
	line, found := n.said.find(ctx, "listening on http://")
	if found {
		_, found = n.said.find(ctx, "Ctrl-C stops")
	}
	if !found {
		n.Fatalf("it does not serve: %s", n.said)
	}
	_, n.at, _ = strings.Cut(line, "listening on http://")
	n.url = "http://" + n.at
	testwait.Until(n.T, "it answers", func() bool { // the listener was there first
		resp, err := http.Get(n.url + "/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// end sends a signal, and waits for the end.
func (n *node) end(sig syscall.Signal) {
	n.Helper()
	if err := n.process.Process.Signal(sig); err != nil {
		n.Fatal(err)
	}
	<-n.said.done
	err := n.process.Wait()
	if sig != syscall.SIGKILL && err != nil {
		n.Errorf("it ended with %v: %s", err, n.said)
	}
}

// left returns how often the plugin left each line.
func (n *node) left() map[string]int {
	n.Helper()
	raw, err := os.ReadFile(filepath.Join(n.desk, "lines"))
	if err != nil && !os.IsNotExist(err) {
		n.Fatal(err)
	}
	times := map[string]int{}
	for _, line := range strings.Fields(string(raw)) {
		times[line]++
	}
	return times
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	text   string
	err    error // nothing came back
}

// member returns a text of the answer's object.
func (a answer) member(name string) string {
	var all map[string]any
	_ = json.Unmarshal([]byte(a.text), &all)
	text, _ := all[name].(string)
	return text
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, IdleConnTimeout: time.Second}}

// ask sends a request with a token. headers are names and values in turn.
func ask(url, token, method, path, body string, headers ...string) answer {
	r, err := http.NewRequest(method, url+path, strings.NewReader(body))
	if err != nil {
		return answer{err: err}
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(raw), err}
}

// execute asks for an operation of the plugin.
func (n *node) execute(operation, text string, headers ...string) answer {
	return n.executeBy(n.token, operation, text, headers...)
}

// executeBy is execute with another token.
func (n *node) executeBy(token, operation, text string, headers ...string) answer {
	return ask(n.url, token, "POST", "/api/v1/operations/desk/"+operation+":execute", fmt.Sprintf(`{"input": {"text": %q}}`, text), headers...)
}
