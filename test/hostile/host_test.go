package hostile

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/alive"
	"github.com/mortise-dev/mortise/internal/service"
	"github.com/mortise-dev/mortise/plugin"
)

// The line and the answer are those of test/hostile/host.
type line struct {
	ID        int             `json:"id"`
	Do        string          `json:"do"`
	Operation string          `json:"operation"`
	Session   string          `json:"session"`
	Input     json.RawMessage `json:"input"`
	MS        int             `json:"ms"`
	Watch     string          `json:"watch"`
}

type answer struct {
	ID      int         `json:"id"`
	Code    plugin.Code `json:"code"`
	Message string      `json:"message"`
	Data    string      `json:"data"`
	Level   string      `json:"level"`
	Micros  []int64     `json:"micros"`
}

// languages are the programs that need an interpreter.
var languages = []struct{ program, command, file string }{
	{"python", "python3", "hostile.py"}, {"node", "node", "hostile.mjs"}, {"shell", "sh", "hostile.sh"},
}

// programs are what is built for the tests.
type built struct{ host, plugin string }

var (
	buildOnce sync.Once
	programs  built
	buildErr  error
)

func build(t *testing.T) built {
	t.Helper()
	buildOnce.Do(func() {
		var dir string
		if dir, buildErr = os.MkdirTemp("", "mortise-hostile"); buildErr != nil {
			return
		}
		programs = built{filepath.Join(dir, "host"), filepath.Join(dir, "plugin")}
		for path, source := range map[string]string{programs.host: "./host", programs.plugin: "./plugin"} {
			cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, source)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // without a library of the system's
			if out, err := cmd.CombinedOutput(); err != nil {
				buildErr = fmt.Errorf("%w: %s", err, out)
				return
			}
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return programs
}

func TestMain(m *testing.M) {
	status := m.Run()
	if programs.host != "" {
		_ = os.RemoveAll(filepath.Dir(programs.host))
	}
	os.Exit(status)
}

// A home is a data directory with the hostile plugins beside it.
type home struct {
	dir     string
	missing map[string]string // programs that cannot be run here, and why
}

// newHome lays everything out for a host.
func newHome(t *testing.T) *home {
	t.Helper()
	p := build(t)
	h := &home{dir: t.TempDir(), missing: map[string]string{}}
	t.Cleanup(func() { killMarked(h.dir) }) // before the directory goes
	h.write(t, "bin/plugin", read(t, p.plugin), 0o755)
	h.pack(t, "good", "tenant", "[./good]")
	h.write(t, "plugins/good/good", read(t, p.plugin), 0o755)
	h.pack(t, "hostile.go", "session", "[./hostile]")
	h.write(t, "plugins/hostile.go/hostile", read(t, p.plugin), 0o755)
	for _, l := range languages {
		if _, err := exec.LookPath(l.command); err != nil {
			h.missing[l.program] = l.command + " is not installed"
			continue
		}
		h.pack(t, "hostile."+l.program, "session", fmt.Sprintf("[%s, ./%s]", l.command, l.file))
		h.write(t, "plugins/hostile."+l.program+"/"+l.file, read(t, "scripts/"+l.file), 0o644)
	}
	h.configure(t, "")
	return h
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (h *home) write(t *testing.T, name string, content []byte, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(h.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}

// actManifest is the operation that may use every service.
const actManifest = `  act: {kind: operator, description: The same with effects., timeout: 20s, effects: [storage_write, cursor_write, secret_write, kb_write, schedule_write, http_write]}
`

// pack writes a manifest.
func (h *home) pack(t *testing.T, name, isolation, command string) {
	t.Helper()
	capabilities, act, requires := "cache", "", ""
	if name == "hostile.go" {
		capabilities, act, requires = strings.Join(service.Names(), ", "), actManifest, "requires: {tools: [good/run]}\n"
	}
	h.write(t, "plugins/"+name+"/manifest.yaml", fmt.Appendf(nil, `name: %s
version: 1.0.0
owner: test
description: Misbehaves, or is called beside those that do.
runner: {kind: process, command: %s}
isolation: %s
capabilities: [%s]
operations:
  run: {kind: tool, description: Does what its session says., timeout: 20s, no_cache: true}
%s  typed: {kind: tool, description: The same with a whole number for an answer., timeout: 20s, no_cache: true, output: {type: integer}}
%s`, name, command, isolation, capabilities, act, requires), 0o644)
}

// configure writes the configuration: quick to give up, so that cases end, and
// with every case of protocol 1 as a binding of its own.
func (h *home) configure(t *testing.T, more string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("processes: {handshake: 3s, cancel_grace: 200ms, session_idle: 1s, per_tenant: 1, max: 48}\npolicy: {allow: [{operations: [\"*\"]}, {effects: [\"*\"]}]}\n" + more + "bindings:\n")
	for _, c := range trials() {
		if c.program != "v1" {
			continue
		}
		id := fmt.Sprintf("hostile.v1.n%d", c.n)
		param := c.param
		if param == "" {
			param = "0"
		}
		fmt.Fprintf(&text, "  - {plugin_id: %s, command: [%q, v1, %q, %q, %q], tools: [run], capabilities: [tool.execute], timeout: 20s}\n",
			id, filepath.Join(h.dir, "bin", "plugin"), c.name, param, id)
	}
	h.write(t, "mortise.yaml", []byte(text.String()), 0o600)
}

// limits are what a plugin may use in a full cage here: little, so that bombs
// go off early.
const limits = "plugins: {memory: 256MiB, processes: 64, open_files: 128, file_size: 16MiB, scratch: 32MiB}\n"

// A hostProcess is a host that runs.
type hostProcess struct {
	*home
	level string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	ended chan struct{}

	mu      sync.Mutex // guards the rest
	last    int
	cases   int
	running map[string]bool // sessions of the cases at work
	waiting map[int]chan answer
	err     error // why it is gone
}

// start starts a host in a home. In a full cage it is given limits of its own.
func start(t *testing.T, dir *home) *hostProcess {
	t.Helper()
	h := launch(t, dir)
	if h.level == "full" {
		h.close(t)
		dir.configure(t, limits)
		h = launch(t, dir)
	}
	return h
}

func launch(t *testing.T, dir *home) *hostProcess {
	t.Helper()
	if sandbox := os.Getenv("MORTISE_HOSTILE_SANDBOX"); sandbox != "" {
		dir.configure(t, "sandbox: "+sandbox+"\n")
	}
	h := &hostProcess{home: dir, ended: make(chan struct{}), waiting: map[int]chan answer{}, running: map[string]bool{}}
	h.cmd = exec.Command(build(t).host, dir.dir)
	h.cmd.Env = append(os.Environ(), "MORTISE_HOME=", "MORTISE_CONFIG=", "MORTISE_DATABASE=")
	h.cmd.Stderr = os.Stderr
	stdin, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.stdin = stdin
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); <-h.ended })
	lines := bufio.NewReader(stdout)
	var first answer
	raw, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(raw, &first)
	}
	go h.read(lines)
	if err != nil {
		t.Fatalf("the host does not begin: %v", err)
	}
	h.level = first.Level
	return h
}

// read hands answers to those who wait, until the host ends.
func (h *hostProcess) read(lines *bufio.Reader) {
	defer close(h.ended)
	for {
		raw, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var a answer
		if json.Unmarshal(raw, &a) != nil {
			continue
		}
		h.mu.Lock()
		reply := h.waiting[a.ID]
		delete(h.waiting, a.ID)
		h.mu.Unlock()
		if reply != nil {
			reply <- a
		}
	}
	err := h.cmd.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = fmt.Errorf("the host ended: %v", err)
	for _, reply := range h.waiting {
		close(reply)
	}
	h.waiting = nil
}

// ask puts a line to the host and waits for its answer.
func (h *hostProcess) ask(l line) (answer, error) {
	reply := make(chan answer, 1)
	h.mu.Lock()
	if h.err != nil {
		defer h.mu.Unlock()
		return answer{}, h.err
	}
	h.last++
	l.ID = h.last
	h.waiting[l.ID] = reply
	raw, err := json.Marshal(l)
	if err == nil {
		_, err = h.stdin.Write(append(raw, '\n'))
	}
	h.mu.Unlock()
	if err != nil {
		return answer{}, err
	}
	select {
	case a, ok := <-reply:
		if !ok {
			return answer{}, errors.New("the host ended before it answered")
		}
		return a, nil
	case <-time.After(time.Duration(l.MS)*time.Millisecond + 20*time.Second):
		return answer{}, fmt.Errorf("the host hangs: no answer 20 s after the time of the call")
	}
}

// begin gives a case a session that no other had before; end ends it.
func (h *hostProcess) begin(c *trial) (session string, end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cases++
	session = c.session(h.cases)
	h.running[session] = true
	return session, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.running, session)
	}
}

// measure has the good plugin called until the function is called, which
// returns how long each call took.
func (h *hostProcess) measure() func(t *testing.T) []int64 {
	h.mu.Lock()
	_, err := fmt.Fprintf(h.stdin, `{"do":"measure","ms":%d}`+"\n", pace.Milliseconds())
	h.mu.Unlock()
	return func(t *testing.T) []int64 {
		t.Helper()
		a, asked := h.ask(line{Do: "measured"})
		if err := errors.Join(err, asked); err != nil {
			t.Fatal(err)
		}
		return a.Micros
	}
}

// measured is that for a while in which nothing else happens.
func (h *hostProcess) measured(t *testing.T, d time.Duration) []int64 {
	t.Helper()
	stop := h.measure()
	<-time.After(d)
	return stop(t)
}

// memory returns how many KiB the host has in memory, once it has given back
// what it does not need.
func (h *hostProcess) memory(t *testing.T) int {
	t.Helper()
	if _, err := h.ask(line{Do: "free"}); err != nil {
		t.Fatal(err)
	}
	return h.resident()
}

// resident returns how many KiB the host has in memory now.
func (h *hostProcess) resident() int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, text, _ := strings.Cut(string(raw), "VmRSS:")
	text, _, _ = strings.Cut(text, "kB")
	n, _ := strconv.Atoi(strings.TrimSpace(text))
	return n
}

// watchMemory looks at the host's memory until the function is called, which
// returns the most there was, and the cases that ran then.
func (h *hostProcess) watchMemory() func() (int, []string) {
	stop, done := make(chan struct{}), make(chan struct{})
	highest, suspects := 0, []string{}
	go func() {
		defer close(done)
		for {
			if now := h.resident(); now > highest {
				highest, suspects = now, h.atWork()
			}
			select {
			case <-stop:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	return func() (int, []string) { close(stop); <-done; return highest, suspects }
}

// atWork names the cases that run now.
func (h *hostProcess) atWork() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for session := range h.running {
		names = append(names, session)
	}
	return names
}

// close ends the host as one is ended that has done its work.
func (h *hostProcess) close(t *testing.T) {
	t.Helper()
	h.stdin.Close()
	select {
	case <-h.ended:
	case <-time.After(20 * time.Second):
		t.Error("the host does not end")
	}
	if !h.cmd.ProcessState.Success() {
		t.Errorf("the host ended with %s", h.cmd.ProcessState)
	}
}

// marked returns the processes that have the text in their arguments, their
// environment or their directory, the host and this one left out. What has
// ended and waits to be reaped is none.
func marked(text string, but ...int) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() || contains(but, pid) {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		args, _ := os.ReadFile(dir + "/cmdline")
		env, _ := os.ReadFile(dir + "/environ")
		cwd, _ := os.Readlink(dir + "/cwd")
		if strings.Contains(string(args)+"\x00"+string(env)+"\x00"+cwd, text) && alive.Process(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func contains(list []int, n int) bool {
	for _, m := range list {
		if m == n {
			return true
		}
	}
	return false
}

// killMarked ends what is left of a test.
func killMarked(text string) {
	for range 100 {
		left := marked(text)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-time.After(10 * time.Millisecond)
	}
}
