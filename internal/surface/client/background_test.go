package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/surface/cli"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/plugin"
)

// TestMain makes this binary the program, which starts itself in the background.
func TestMain(m *testing.M) {
	if os.Getenv("CLIENT_TEST_PROGRAM") != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

const (
	padManifest = `{name: pad, version: 1.0.0, owner: test, description: Keep notes in memory., runner: {kind: process, entry: pad.py}, isolation: session}`

	padSource = `
import os, time
from mortise import Plugin

plugin = Plugin("pad", version="1.0.0")
notes = []

def work(begun, seconds):
    if begun:
        with open(begun, "w") as f:
            f.write("begun")
    time.sleep(seconds)
    notes.append(1)
    return {"pid": os.getpid(), "host": os.getppid(), "notes": len(notes)}

@plugin.tool
def note(begun: str = "", seconds: float = 0) -> dict:
    """Keep a note."""
    return work(begun, seconds)

@plugin.operator(effects=["db_write"])
def send(begun: str = "", seconds: float = 0) -> dict:
    """Keep a note, with an effect."""
    return work(begun, seconds)

plugin.run()
`
	padPolicy = `@id("all") permit (principal, action, resource);`
)

// A place is a data directory with the plugin pad and a session. Hosts that are left are
// killed when the test ends.
type place struct {
	*testing.T
	home, session string
}

func begin(t *testing.T, configuration string) *place {
	t.Helper()
	if out, err := exec.Command("python3", "--version").CombinedOutput(); err != nil {
		t.Skipf("install python3, which the plugin of this test needs: %v %s", err, out)
	}
	home, err := os.MkdirTemp("", "back") // t.TempDir's names are long
	if err != nil {
		t.Fatal(err)
	}
	p := &place{T: t, home: home}
	t.Cleanup(func() {
		for _, pid := range p.hosts() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = os.RemoveAll(home)
	})
	for name, text := range map[string]string{"pad/manifest.yaml": padManifest, "pad/pad.py": padSource, "all.cedar": padPolicy, "mortise.yaml": "sandbox: off\npolicy: {files: [all.cedar]}\n" + configuration} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.must("plugins", "register", "--dev", filepath.Join(home, "pad"))
	p.session = strings.TrimSpace(p.must("sessions", "create"))
	return p
}

// command is one command line.
func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "CLIENT_TEST_PROGRAM=1", "MORTISE_HOME="+p.home, "HOME="+p.home, "GORACE=atexit_sleep_ms=0")
	cmd.Dir = p.home
	return cmd
}

func (p *place) run(args ...string) (out, errs string, status int) {
	p.Helper()
	cmd := p.command(args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		p.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

func (p *place) must(args ...string) string {
	p.Helper()
	out, errs, status := p.run(args...)
	if status != 0 {
		p.Fatalf("%s: status %d\n%s%s", args, status, out, errs)
	}
	return out
}

// A note is how a call of pad ended.
type note struct {
	PID, Host, Notes int
	Fresh            bool
	Code             plugin.Code
	Message          string
	CallID           string
	Status           int
}

func noteOf(p *place, out string, status int) (n note) {
	p.Helper()
	var answer struct {
		CallID  string `json:"call_id"`
		Data    struct{ PID, Host, Notes int }
		Metrics struct {
			Fresh bool `json:"fresh_process"`
		}
		Error struct {
			Code    plugin.Code
			Message string
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		p.Fatalf("%v: %q", err, out)
	}
	return note{answer.Data.PID, answer.Data.Host, answer.Data.Notes, answer.Metrics.Fresh, answer.Error.Code, answer.Error.Message, answer.CallID, status}
}

// note calls pad/note in the session.
func (p *place) note(args ...string) note {
	p.Helper()
	out, errs, status := p.run(append([]string{"run", "pad/note", "--json", "--session", p.session}, args...)...)
	if out == "" {
		p.Fatalf("status %d: %s", status, errs)
	}
	return noteOf(p, out, status)
}

// slow begins a call that takes so many seconds, and returns what tells how it ended.
func (p *place) slow(operation string, seconds float64) (ended func() note) {
	p.Helper()
	begun := filepath.Join(p.home, "begun-"+operation)
	_ = os.Remove(begun)
	cmd := p.command("run", "pad/"+operation, "--json", "--session", p.session, "--set", "begun="+begun, "--set", fmt.Sprint("seconds=", seconds))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	testwait.Until(p, "the call has begun", func() bool {
		select {
		case <-gone:
			p.Fatalf("the command ended before the call began: %s%s", &out, &errs)
		default:
		}
		_, err := os.Stat(begun)
		return err == nil
	})
	return func() note {
		p.Helper()
		testwait.Receive(p, "the end of the command", gone)
		return noteOf(p, out.String(), cmd.ProcessState.ExitCode())
	}
}

// hosts are the background hosts of the place.
func (p *place) hosts() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if args := strings.Split(string(raw), "\x00"); err == nil && len(args) > 4 && args[1] == "serve" && args[4] == p.home {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone waits until there is no background host.
func (p *place) gone() {
	p.Helper()
	testwait.Until(p, "there is no background host", func() bool { return len(p.hosts()) == 0 })
}

// Of many commands that want a host in the background one starts it, and all have their calls
// made by it, in one process.
func TestOfManyWhoStartAHostOneDoes(t *testing.T) {
	t.Parallel()
	p := begin(t, "")
	var started []*exec.Cmd
	var outs []*bytes.Buffer
	for range 6 {
		cmd, out := p.command("run", "pad/note", "--json", "--session", p.session), &bytes.Buffer{}
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started, outs = append(started, cmd), append(outs, out)
	}
	pids, notes := map[int]bool{}, map[int]bool{}
	for i, cmd := range started {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, outs[i])
		}
		n := noteOf(p, outs[i].String(), 0)
		pids[n.PID], notes[n.Notes] = true, true
		if n.Fresh {
			t.Errorf("a first process is fresh: %+v", n)
		}
	}
	if hosts := p.hosts(); len(pids) != 1 || len(notes) != len(started) || len(hosts) != 1 {
		t.Errorf("processes %v, notes %v, hosts %v", pids, notes, hosts)
	}
	if out, _, _ := p.run("calls", "list", "--debug"); strings.Contains(out, "error") {
		t.Error(out)
	}
	if _, errs, _ := p.run("run", "pad/note", "--session", p.session, "--debug"); !strings.Contains(errs, "reached by socket") {
		t.Errorf("the next command does not ask it: %s", errs)
	}
}

// A background host that is killed takes what plugins remember with it, which the next call
// says. A call that it was at work on has crashed, or its outcome is unknown where it may have
// had its effect; what was waited for goes on with the command that waits.
func TestABackgroundHostThatIsKilledIsReplaced(t *testing.T) {
	t.Parallel()
	p := begin(t, "")
	first := p.note()
	kill := func() {
		t.Helper()
		for _, pid := range p.hosts() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		p.gone()
	}
	kill()
	second := p.note()
	if second.PID == first.PID || second.Notes != 1 || !second.Fresh {
		t.Errorf("%+v after %+v", second, first)
	}
	if again := p.note(); again.PID != second.PID || again.Notes != 2 || again.Fresh {
		t.Errorf("%+v after %+v", again, second)
	}
	ended := p.slow("note", 3600)
	kill()
	if n := ended(); n.Code != plugin.CodeCrashed || n.Status != 6 || !strings.Contains(n.Message, "ended during the call") {
		t.Errorf("a call without effects: %+v", n)
	}
	p.note()
	ended = p.slow("send", 3600)
	kill()
	if n := ended(); n.Code != plugin.CodeOutcomeUnknown || n.Status != 9 {
		t.Errorf("a call with an effect: %+v", n)
	}
	if out := p.must("calls", "list", "--json"); !strings.Contains(out, `"state":"unknown"`) {
		t.Errorf("on record: %s", out)
	}
	p.must("ledger", "verify")
}

// What another configuration says is done by another host: the one before finishes what it is
// at work on, and takes no more.
func TestABackgroundHostOfAnotherConfigurationIsReplaced(t *testing.T) {
	t.Parallel()
	p := begin(t, "")
	first := p.note()
	ended := p.slow("note", 1.5)
	config, err := os.OpenFile(filepath.Join(p.home, "mortise.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.WriteString("workers: 3\n"); err != nil || config.Close() != nil {
		t.Fatal(err)
	}
	second := p.note()
	if second.Host == first.Host || !second.Fresh || second.Status != 0 {
		t.Errorf("%+v after %+v", second, first)
	}
	if n := ended(); n.Code != "" || n.Host != first.Host || n.Notes != 2 {
		t.Errorf("what was under way: %+v", n)
	}
	third := p.command("run", "pad/note", "--json", "--session", p.session)
	third.Env = append(third.Env, "PATH="+os.Getenv("PATH")+":/nowhere")
	out, err := third.Output()
	if n := noteOf(p, string(out), 0); err != nil || n.Host == second.Host || !n.Fresh {
		t.Errorf("another environment: %+v, %v", n, err)
	}
}

// A background host ends when no session used it for its idle time, and not while a call
// takes longer.
func TestAnIdleBackgroundHostEnds(t *testing.T) {
	t.Parallel()
	p := begin(t, "processes: {session_idle: 400ms}\n")
	if n := p.note("--set", "seconds=1.2"); n.Code != "" || n.Notes != 1 {
		t.Errorf("it ended during a call that takes longer: %+v", n)
	}
	p.gone()
	if _, err := os.Stat(filepath.Join(p.home, "run", "owner.sock")); !os.IsNotExist(err) {
		t.Errorf("its socket is left: %v", err)
	}
	if n := p.note(); !n.Fresh || n.Notes != 1 {
		t.Errorf("the next: %+v", n)
	}
}

// It ends when the last session is closed or deleted, and not before. A session that was
// deleted is not remembered.
func TestABackgroundHostEndsWithItsLastSession(t *testing.T) {
	t.Parallel()
	p := begin(t, "")
	other := strings.TrimSpace(p.must("sessions", "create"))
	first := p.note()
	p.must("run", "pad/note", "--session", other)
	p.must("sessions", "close", other)
	if n := p.note(); n.PID != first.PID || n.Notes != 2 {
		t.Errorf("closing another session: %+v after %+v", n, first)
	}
	ended := p.slow("note", 3600)
	p.must("sessions", "close", p.session)
	if n := ended(); n.Code == "" {
		t.Errorf("a call of a session that was closed: %+v", n)
	}
	p.gone()
	p.must("sessions", "resume", p.session)
	if n := p.note(); !n.Fresh {
		t.Errorf("of a session that is open again: %+v", n)
	}
	p.must("sessions", "delete", p.session)
	p.gone()
	if left, err := filepath.Glob(filepath.Join(p.home, "run", "served", "*")); err != nil || len(left) != 1 { // the other's
		t.Errorf("remembered: %v %v", left, err)
	}
}

// Without its data directory, or the socket by which it is found, it ends.
func TestABackgroundHostEndsWithWhatItIsFoundBy(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{".", "run"} {
		p := begin(t, "")
		p.note()
		if err := os.RemoveAll(filepath.Join(p.home, lost)); err != nil {
			t.Fatal(err)
		}
		p.gone()
	}
}

// 'mortise serve' takes the place of a background host, and holds its sessions from then on.
func TestServeTakesThePlaceOfABackgroundHost(t *testing.T) {
	t.Parallel()
	p := begin(t, "")
	first := p.note()
	serve := p.command("serve")
	var errs bytes.Buffer
	serve.Stderr = &errs
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve.Wait() }()
	p.gone()
	var n note
	testwait.Until(t, "the host of 'mortise serve' makes the calls", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v %s", err, &errs)
		default:
		}
		n = p.note()
		return n.Host == serve.Process.Pid
	})
	if n.Host != serve.Process.Pid || n.PID == first.PID {
		t.Errorf("%+v after %+v, %d serves: %s", n, first, serve.Process.Pid, &errs)
	}
	if hosts := p.hosts(); len(hosts) != 0 {
		t.Errorf("hosts beside it: %v", hosts)
	}
	_ = serve.Process.Signal(os.Interrupt)
	if err := <-ended; err != nil {
		t.Errorf("%v: %s", err, &errs)
	}
}

// With --embedded nothing holds the session, which is said.
func TestWithoutAHostThatStaysAMemoryEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	p := begin(t, "")
	for _, fresh := range []bool{false, true} {
		out, errs, status := p.run("--embedded", "run", "pad/note", "--json", "--session", p.session)
		if n := noteOf(p, out, status); n.Notes != 1 || n.Fresh != fresh || !strings.Contains(errs, "ends with this command") {
			t.Errorf("%+v: %s", n, errs)
		}
	}
	if hosts := p.hosts(); len(hosts) != 0 {
		t.Errorf("hosts: %v", hosts)
	}
}

// A host that cannot start says why, and where its log is; one that does not answer is waited
// for so long.
func TestABackgroundHostThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	p := begin(t, "")
	o := client.Options{Home: p.home}
	program := func(text string) string {
		path := filepath.Join(p.home, "program")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		return path
	}
	_, err := client.Start(t.Context(), o, program("echo first words >&2; echo the disk is away >&2; exit 3"), 0)
	if plugin.CodeOf(err) != plugin.CodeLaunchFailed || !strings.Contains(err.Error(), "the disk is away") || !strings.Contains(err.Error(), "background.log") {
		t.Errorf("%v", err)
	}
	if _, err := client.Start(t.Context(), o, filepath.Join(p.home, "absent"), 0); plugin.CodeOf(err) != plugin.CodeLaunchFailed {
		t.Errorf("%v", err)
	}
	if _, err := client.Start(t.Context(), o, program("exec sleep 3600"), time.Second); plugin.CodeOf(err) != plugin.CodeTimeout {
		t.Errorf("a program that does not answer: %v, want timeout", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	if _, err := client.Start(ctx, o, program("exec sleep 3600"), 2*testwait.Limit); err == nil {
		t.Error("an interrupted start has no error")
	}
}
