package sessionhost

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/plugin"
)

// TestMain makes this binary a session host, or a stranger who would reach one.
func TestMain(m *testing.M) {
	switch os.Getenv("SESSIONHOST_ROLE") {
	case "host":
		os.Exit(keep())
	case "stranger":
		os.Exit(knock(os.Getenv("SESSIONHOST_SOCKET")))
	case "broken":
		fmt.Fprintln(os.Stderr, "first words\nthe data directory is gone")
		os.Exit(3)
	}
	goleak.VerifyTestMain(m)
}

// keep is a session host whose calls do what their operation says.
func keep() int {
	idle, _ := time.ParseDuration(os.Getenv("SESSIONHOST_IDLE"))
	k := &Server{
		Place:    Place{Home: os.Getenv("SESSIONHOST_HOME"), Tenant: "local", Session: os.Getenv("SESSIONHOST_SESSION")},
		Identity: os.Getenv("SESSIONHOST_IDENTITY"), Idle: idle,
	}
	calls := 0
	k.Advance = func(context.Context, string) error { return plugin.Errorf(plugin.CodeNotFound, "nothing waits") }
	k.Call = func(ctx context.Context, principal string, call plugin.Call) (plugin.Result, error) {
		calls++
		res := plugin.Result{Status: plugin.Succeeded, CallID: call.ID, Operation: call.Operation, Metrics: plugin.Metrics{}}
		if principal != "local:owner" {
			return res, plugin.Errorf(plugin.CodeUnauthenticated, "there is no principal %s", principal)
		}
		switch call.Operation {
		case "echo":
			res.Data, _ = json.Marshal(map[string]any{
				"input": call.Input, "pid": os.Getpid(), "calls": calls, "earlier": k.Earlier(), "session": call.Session, "tenant": call.Tenant, "key": call.Key,
				"labels": call.Labels, "timeout": call.Timeout, "no_wait": call.NoWait, "fresh": call.Fresh, "origin": call.Origin,
			})
		case "events":
			for i := range 100 {
				call.Observe(plugin.Event{Kind: plugin.EventContent, Data: fmt.Appendf(nil, `{"n":%d}`, i)})
			}
		case "slow":
			call.Observe(plugin.Event{Kind: plugin.EventLog, Message: "at work"})
			select {
			case <-ctx.Done():
				return res, context.Cause(ctx)
			case <-time.After(time.Second):
			}
		case "large":
			res.Data = []byte(`"` + strings.Repeat("x", 8<<20) + `"`)
		case "fail":
			return res, &plugin.Error{Code: plugin.CodePluginError, PluginCode: "NO_SUCH", Message: "it is not there", Details: []byte(`{"a":1}`), Retryable: true, RetryAfter: time.Second}
		case "internal":
			return res, errors.New("the disk is full")
		}
		return res, nil
	}
	closed := func() error { return nil }
	if err := k.Serve(context.Background(), func(context.Context) (func() error, error) { return closed, nil }); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func knock(socket string) int {
	_, err := newClient(socket, "s").hello(context.Background())
	if err == nil {
		return 0
	}
	fmt.Println(err)
	return 7
}

// starter returns a way to start session hosts of one session, all gone when the test
// ends.
func starter(t *testing.T, more ...string) *Starter {
	t.Helper()
	home, err := os.MkdirTemp("", "relay") // t.TempDir's names are long
	if err != nil {
		t.Fatal(err)
	}
	s := &Starter{Place: Place{Home: home, Tenant: "local", Session: "sess_0123456789ab"}, Identity: "one", Command: []string{os.Args[0]}}
	s.become("one", more...)
	t.Cleanup(func() {
		if err := Forget(context.Background(), s.Place); err != nil {
			t.Error(err)
		}
		base, err := s.base()
		if err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(base + "*"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		_ = os.RemoveAll(filepath.Dir(base))
		_ = os.RemoveAll(home)
	})
	return s
}

// become makes the next session host that is started another one.
func (s *Starter) become(identity string, more ...string) {
	s.Identity = identity
	s.Env = append(os.Environ(), append([]string{
		"SESSIONHOST_ROLE=host", "SESSIONHOST_HOME=" + s.Home, "SESSIONHOST_SESSION=" + s.Session, "SESSIONHOST_IDENTITY=" + identity, "SESSIONHOST_IDLE=1m", "GORACE=atexit_sleep_ms=0",
	}, more...)...)
}

func connect(t *testing.T, s *Starter) (*Client, bool) {
	t.Helper()
	client, started, err := s.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client, started
}

// served starts the session host of a session and returns a client of it, and its
// process's id.
func served(t *testing.T, more ...string) (s *Starter, c *Client, pid int) {
	t.Helper()
	s = starter(t, more...)
	c, _ = connect(t, s)
	return s, c, echo(t, c, plugin.Call{}).PID
}

// underWay begins a call that takes a second, and returns where its end is told.
func underWay(c *Client) (ended <-chan error) {
	begun, end := make(chan struct{}), make(chan error, 1)
	go func() {
		_, _, err := c.Call(context.Background(), "local:owner", plugin.Call{Operation: "slow", Observe: func(plugin.Event) { close(begun) }})
		end <- err
	}()
	<-begun
	return end
}

type echoed struct {
	PID, Calls                   int
	Earlier, Fresh               bool
	NoWait                       bool `json:"no_wait"`
	Session, Tenant, Key, Origin string
	Input                        json.RawMessage
	Labels                       []string
	Timeout                      time.Duration
}

func echo(t *testing.T, c *Client, call plugin.Call) echoed {
	t.Helper()
	call.Operation = "echo"
	res, sent, err := c.Call(t.Context(), "local:owner", call)
	if err != nil || !sent {
		t.Fatalf("sent %v: %v", sent, err)
	}
	var e echoed
	if err := json.Unmarshal(res.Data, &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func running(pid int) bool { return syscall.Kill(pid, 0) == nil }

func goneSoon(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		if !running(pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("process %d is still there", pid)
}

// stopped waits until each thread of a process stands still: the signal is sent at
// once and takes effect thread by thread, and one that still runs answers.
func stopped(t *testing.T, pid int) {
	t.Helper()
	for range 500 {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		still := err == nil && len(stats) > 0
		for _, path := range stats {
			stat, _ := os.ReadFile(path)
			_, after, _ := strings.Cut(string(stat), ") ")
			still = still && strings.HasPrefix(after, "T")
		}
		if still {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("process %d runs on", pid)
}

func TestACallIsCarriedWhole(t *testing.T) {
	t.Parallel()
	s := starter(t)
	c, started := connect(t, s)
	if !started {
		t.Error("no session host listened, and none was started")
	}
	e := echo(t, c, plugin.Call{Input: []byte(`{"a":"<&>\u00e9"}`), Key: "k", Labels: []string{"private"}, Timeout: time.Second, NoWait: true, Fresh: true, Session: "another", Tenant: "another"})
	if string(e.Input) != `{"a":"<&>é"}` || e.Key != "k" || len(e.Labels) != 1 || e.Timeout != time.Second || !e.NoWait || !e.Fresh || e.Origin != "cli" {
		t.Errorf("%+v", e)
	}
	if e.Session != s.Session || e.Tenant != "local" {
		t.Errorf("the call says of which session it is: %+v", e)
	}
	again, started := connect(t, s)
	if f := echo(t, again, plugin.Call{}); started || f.PID != e.PID || f.Calls != 2 || f.Earlier {
		t.Errorf("another session host: %v %+v", started, f)
	}

	n := 0
	if _, _, err := c.Call(t.Context(), "local:owner", plugin.Call{Operation: "events", Observe: func(e plugin.Event) {
		if string(e.Data) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Errorf("event %d is %s", n, e.Data)
		}
		n++
	}}); err != nil || n != 100 {
		t.Errorf("%d events, %v", n, err)
	}
	if res, _, err := c.Call(t.Context(), "local:owner", plugin.Call{Operation: "large"}); err != nil || len(res.Data) != 8<<20+2 {
		t.Errorf("%d bytes, %v", len(res.Data), err)
	}
	if _, sent, err := c.Call(t.Context(), "local:owner", plugin.Call{Operation: "echo", Input: []byte(`"` + strings.Repeat("x", maxRequest) + `"`)}); sent || plugin.CodeOf(err) != plugin.CodeInputTooLarge {
		t.Errorf("a very large input: %v %v", sent, err)
	}
	if sent, err := c.Advance(t.Context(), "x"); !sent || plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("advance: %v %v", sent, err)
	}
}

func TestErrorsKeepWhatTheyAre(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, starter(t))
	_, sent, err := c.Call(t.Context(), "local:owner", plugin.Call{Operation: "fail"})
	e := plugin.AsError(err)
	if !sent || e.Code != plugin.CodePluginError || e.PluginCode != "NO_SUCH" || e.Message != "it is not there" || string(e.Details) != `{"a":1}` || !e.Retryable || e.RetryAfter != time.Second {
		t.Errorf("%+v", e)
	}
	_, _, err = c.Call(t.Context(), "local:owner", plugin.Call{Operation: "internal"})
	if e := plugin.AsError(err); e.Code != plugin.CodeInternal || e.Err == nil || e.Err.Error() != "the disk is full" {
		t.Errorf("%+v", e)
	}
	if _, _, err = c.Call(t.Context(), "local:stranger", plugin.Call{Operation: "echo"}); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("an unknown principal: %v", err)
	}
}

func TestACallerThatGivesUpHearsHowItEnded(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, starter(t))
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	res, sent, err := c.Call(ctx, "local:owner", plugin.Call{Operation: "slow", Observe: func(plugin.Event) { cancel() }})
	if !sent || plugin.CodeOf(err) != plugin.CodeCancelled || res.CallID == "" || time.Since(begun) > 900*time.Millisecond {
		t.Errorf("sent %v, %v, %q after %s", sent, err, res.CallID, time.Since(begun))
	}
	if _, sent, err := c.Call(ctx, "local:owner", plugin.Call{Operation: "echo"}); sent || !errors.Is(err, context.Canceled) {
		t.Errorf("given up before: %v %v", sent, err)
	}
}

func TestOfManyWhoStartOneDoes(t *testing.T) {
	t.Parallel()
	s := starter(t)
	var mu sync.Mutex
	pids := map[int]int{}
	begun := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			c, started, err := s.Connect(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			e := echo(t, c, plugin.Call{})
			mu.Lock()
			defer mu.Unlock()
			pids[e.PID]++
			if started {
				begun++
			}
		})
	}
	all.Wait()
	if len(pids) != 1 || begun != 1 {
		t.Errorf("session hosts %v, %d started", pids, begun)
	}
}

// TestAKilledServerIsReplaced: who was served hears that it was lost, and the
// next session host knows that there was one.
func TestAKilledServerIsReplaced(t *testing.T) {
	t.Parallel()
	s, c, pid := served(t)
	res, sent, err := c.Call(t.Context(), "local:owner", plugin.Call{ID: "call-1", Operation: "slow", Observe: func(plugin.Event) { _ = syscall.Kill(pid, syscall.SIGKILL) }})
	if !sent || !errors.Is(err, ErrLost) || plugin.CodeOf(err) != plugin.CodeCrashed || res.CallID != "call-1" {
		t.Errorf("sent %v, %v, %q", sent, err, res.CallID)
	}
	if _, sent, err := c.Call(t.Context(), "local:owner", plugin.Call{Operation: "echo"}); sent || !errors.Is(err, ErrGone) {
		t.Errorf("sent %v, %v", sent, err)
	}
	next, started := connect(t, s)
	if e := echo(t, next, plugin.Call{}); !started || e.PID == pid || !e.Earlier {
		t.Errorf("started %v, %+v", started, e)
	}
}

// TestAnotherHostsServerIsReplaced: what it is at work on it finishes first.
func TestAnotherHostsServerIsReplaced(t *testing.T) {
	t.Parallel()
	s, c, pid := served(t)
	ended := underWay(c)
	s.become("two")
	next, started := connect(t, s)
	if e := echo(t, next, plugin.Call{}); !started || e.PID == pid || !e.Earlier {
		t.Errorf("started %v, %+v", started, e)
	}
	if err := <-ended; err != nil {
		t.Errorf("the call that was under way: %v", err)
	}
	goneSoon(t, pid)
}

func TestAnIdleServerEnds(t *testing.T) {
	t.Parallel()
	s, c, pid := served(t, "SESSIONHOST_IDLE=300ms")
	if _, _, err := c.Call(t.Context(), "local:owner", plugin.Call{Operation: "slow", Observe: func(plugin.Event) {}}); err != nil {
		t.Errorf("it ended during a call that takes longer: %v", err)
	}
	goneSoon(t, pid)
	base, err := s.base()
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(base + socketFile); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestAServerEndsWithItsDirectory: no client could find it again.
func TestAServerEndsWithItsDirectory(t *testing.T) {
	t.Parallel()
	s, _, pid := served(t)
	if err := os.RemoveAll(filepath.Join(s.Home, "keep")); err != nil {
		t.Fatal(err)
	}
	goneSoon(t, pid)
}

func TestAServerEndsWithItsDataDirectory(t *testing.T) {
	t.Parallel()
	s := starter(t)
	short := s.Home
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	s.Home = filepath.Join(short, strings.Repeat("d", socket.MaxPath)) // its socket is elsewhere
	if err := os.Mkdir(s.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	s.become(s.Identity)
	c, _ := connect(t, s)
	pid := echo(t, c, plugin.Call{Operation: "echo"}).PID
	if err := os.RemoveAll(s.Home); err != nil {
		t.Fatal(err)
	}
	goneSoon(t, pid)
}

func TestEndingCancelsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s, c, pid := served(t)
	ended := underWay(c)
	if err := End(t.Context(), s.Place); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; plugin.CodeOf(err) != plugin.CodeCancelled {
		t.Errorf("the call that was under way: %v", err)
	}
	goneSoon(t, pid)
	if err := End(t.Context(), s.Place); err != nil {
		t.Errorf("where there is none: %v", err)
	}
	next, _ := connect(t, s)
	if e := echo(t, next, plugin.Call{}); !e.Earlier {
		t.Error("the next does not know that there was one")
	}
	if err := Forget(t.Context(), s.Place); err != nil {
		t.Fatal(err)
	}
	last, _ := connect(t, s)
	if e := echo(t, last, plugin.Call{}); e.Earlier {
		t.Error("a session that was forgotten is remembered")
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	s := starter(t)
	s.become("one", "SESSIONHOST_ROLE=broken")
	_, _, err := s.Connect(t.Context())
	if plugin.CodeOf(err) != plugin.CodeLaunchFailed || !strings.Contains(err.Error(), "the data directory is gone") {
		t.Errorf("%v", err)
	}
	s.Command = []string{filepath.Join(s.Home, "absent")}
	if _, _, err := s.Connect(t.Context()); plugin.CodeOf(err) != plugin.CodeLaunchFailed {
		t.Errorf("%v", err)
	}
}

// TestAServerThatDoesNotAnswerIsWaitedForSoLong: it is stopped, and neither
// answers nor lets go of its lock.
func TestAServerThatDoesNotAnswerIsWaitedForSoLong(t *testing.T) {
	t.Parallel()
	s, _, pid := served(t)
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	stopped(t, pid)
	s.Wait = 3 * time.Second
	begun := time.Now()
	if _, _, err := s.Connect(t.Context()); plugin.CodeOf(err) != plugin.CodeTimeout || time.Since(begun) > 6*time.Second {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
}

func TestOnlyItsOwnerReachesAServer(t *testing.T) {
	t.Parallel()
	if err := allowed(1000, 1000); err != nil {
		t.Error(err)
	}
	if err := allowed(0, 1000); err != nil {
		t.Errorf("root: %v", err)
	}
	if err := allowed(1001, 1000); plugin.CodeOf(err) != plugin.CodeUnauthenticated {
		t.Errorf("another user: %v", err)
	}
	s := starter(t)
	c, _ := connect(t, s)
	base, err := s.base()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{filepath.Dir(base): 0o700, base + socketFile: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("not run: only root can become another user")
	}
	// Even where every door stands open, a stranger is turned away.
	for _, path := range []string{s.Home, filepath.Dir(base), base + socketFile} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(s.Home, "stranger")
	raw, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{"SESSIONHOST_ROLE=stranger", "SESSIONHOST_SOCKET=" + base + socketFile}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("a stranger: %v: %s", err, out)
	}
	if err := os.Chmod(filepath.Dir(base), 0o700); err != nil {
		t.Fatal(err)
	}
	echo(t, c, plugin.Call{})
}

func TestPlacesOfSockets(t *testing.T) {
	t.Parallel()
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 100))
	p := Place{Home: deep, Tenant: strings.Repeat("t", 200), Session: "sess_0123456789ab"}
	base, err := p.base()
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(filepath.Dir(base))
	if len(base)+len(socketFile) > socket.MaxPath || strings.HasPrefix(base, deep) {
		t.Errorf("%s", base)
	}
	other := p
	other.Session = "sess_0123456789ac"
	if found, err := other.base(); err != nil || found == base {
		t.Errorf("two sessions have one socket: %s %v", found, err)
	}
	if err := os.Chmod(filepath.Dir(base), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := p.base(); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("a directory that others may enter: %v", err)
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "keep"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if len(home) < 60 {
		if _, err := (Place{Home: home, Tenant: "t", Session: "s"}).base(); plugin.CodeOf(err) != plugin.CodeUnavailable {
			t.Errorf("a file in its place: %v", err)
		}
	}
}

func TestLinesAreBounded(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		chunk := []byte(strings.Repeat("x", 1<<20))
		for range maxLine>>20 + 2 {
			if _, err := far.Write(chunk); err != nil {
				return
			}
		}
	}()
	defer near.Close()
	if _, err := readLine(bufio.NewReader(near)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}
