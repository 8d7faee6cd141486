package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// A said is what the process of several tools answers with.
type said struct {
	Process string   `json:"process"` // see identity
	Seen    []string `json:"seen"`    // operations it was called with, in order
	Most    int64    `json:"most"`    // calls it had at a time
	Text    string   `json:"text"`    // of the file that the input names
	Reply   string   `json:"reply"`   // what the host answered
	View    string   `json:"view"`    // where the handshake says the artifacts are
}

// playTools serves any operation of any plugin, as many at a time as are sent,
// and tells in its handshake of none.
func playTools() {
	var (
		mu      sync.Mutex // guards the two below and stdout
		seen    []string
		replies = make(chan string, 1)
		view    string
		now     atomic.Int64
		most    atomic.Int64
	)
	send := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(format+"\n", args...)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var f struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Params struct {
				Call, Operation string
				Paths           protocol.Paths
				Input           struct {
					Hold              bool
					Write, Read, Exit string
				}
			} `json:"params"`
		}
		if json.Unmarshal(lines.Bytes(), &f) != nil {
			os.Exit(2)
		}
		in := f.Params.Input
		switch f.Method {
		case protocol.MethodInitialize:
			view = f.Params.Paths.Artifacts
			send(`{"jsonrpc":"2.0","id":%s,"result":{"protocol":"2","plugins":[],"concurrency":8}}`, f.ID)
		case protocol.MethodShutdown:
			send(`{"jsonrpc":"2.0","id":%s,"result":{}}`, f.ID)
			return
		case protocol.MethodExecute:
			mu.Lock()
			seen = append(seen, f.Params.Operation)
			answer := said{Process: identity(), Seen: slices.Clone(seen), View: view}
			mu.Unlock()
			if in.Exit != "" {
				os.Exit(3)
			}
			go func() {
				most.Store(max(most.Load(), now.Add(1)))
				if in.Hold {
					send(`{"jsonrpc":"2.0","id":"s0","method":"gate.pass","params":{"call":%q,"args":{}}}`, f.Params.Call)
					<-replies
				}
				if in.Write != "" {
					_ = os.WriteFile("out.txt", []byte(in.Write), 0o600)
					send(`{"jsonrpc":"2.0","id":"s1","method":"artifacts.register","params":{"call":%q,"args":{"file_path":"out.txt"}}}`, f.Params.Call)
					answer.Reply = <-replies
				}
				text, _ := os.ReadFile(in.Read)
				answer.Text, answer.Most = string(text), most.Load()
				raw, _ := json.Marshal(answer)
				now.Add(-1)
				send(`{"jsonrpc":"2.0","id":%s,"result":{"status":"succeeded","data":%s}}`, f.ID, raw)
			}()
		case "":
			replies <- string(f.Result)
		}
	}
}

// millTool is a tool of a package of Event Mill.
func millTool(name string, change ...func(*plugin.Manifest)) *plugin.Target {
	t := target("tools", name, append([]func(*plugin.Manifest){func(m *plugin.Manifest) {
		m.Name, m.Contract, m.Isolation = name, plugin.Contract{SharesProcess: true, MaxSummary: 2000}, plugin.IsolationSession
	}}, change...)...)
	return t
}

// use calls a tool in a session, and returns what it said and whether the
// process is said to be fresh.
func use(t *testing.T, r *process.Runner, target *plugin.Target, session, input string, services plugin.Services) (said, bool) {
	t.Helper()
	return useFiles(t, r, target, session, input, services, nil)
}

func useFiles(t *testing.T, r *process.Runner, target *plugin.Target, session, input string, services plugin.Services, files []plugin.File) (said, bool) {
	t.Helper()
	c := call(input)
	c.Files = files
	c.Session = session
	res, err := r.Run(t.Context(), target, c, services)
	if err != nil {
		t.Fatal(err)
	}
	var s said
	if err := json.Unmarshal(res.Data, &s); err != nil {
		t.Fatal(err)
	}
	fresh, _ := res.Metrics["fresh_process"].(bool)
	return s, fresh
}

func TestToolsOfAPackageShareAProcessInASession(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	first, _ := use(t, r, millTool("alpha"), "a", `{}`, nil)
	second, fresh := use(t, r, millTool("beta"), "a", `{"artifacts":[{"path":"/etc/hostname"}]}`, nil)
	if first.Process != second.Process || fresh || strings.Join(second.Seen, " ") != "alpha/alpha beta/beta" {
		t.Errorf("%+v, then %+v", first, second)
	}
	for name, other := range map[string]struct {
		target  *plugin.Target
		session string
	}{
		"another session": {millTool("alpha"), "b"},
		"no session":      {millTool("alpha"), ""},
		"another package": {func() *plugin.Target { t := millTool("alpha"); t.Package.Digest = "sha256:other"; return t }(), "c"},
	} {
		if got, _ := use(t, r, other.target, other.session, `{}`, nil); got.Process == first.Process {
			t.Errorf("%s has the same process", name)
		}
	}
	if one, _ := use(t, r, millTool("alpha"), "", `{}`, nil); len(one.Seen) != 1 {
		t.Errorf("a process outside a session has served %q before", one.Seen)
	}
}

func TestToolsOfASessionWaitForEachOther(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	use(t, r, millTool("first"), "a", `{}`, nil)
	held := newGate()
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			c := call(`{"hold":true}`)
			c.Session = "a"
			if _, err := r.Run(t.Context(), millTool(fmt.Sprintf("t%d", i)), c, held); err != nil {
				t.Error(err)
			}
		})
		if i == 0 {
			held.await(t)
		}
		testwait.Until(t, fmt.Sprintf("the calls behind the first are waiting: %d", i), func() bool { return r.Waiting() == i })
	}
	held.open()
	wg.Wait()
	last, _ := use(t, r, millTool("last"), "a", `{}`, nil)
	if last.Most != 1 {
		t.Errorf("%d calls at a time", last.Most)
	}
	if got := strings.Join(last.Seen, " "); got != "first/first t0/t0 t1/t1 t2/t2 t3/t3 t4/t4 t5/t5 last/last" {
		t.Errorf("order %s", got)
	}
}

// A tool whose time is up ends the process at once; the caller of the next one
// is told that what the session had in memory is gone, once.
func TestATimeoutEndsTheProcessOfASession(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{CancelGrace: time.Hour})
	first, fresh := use(t, r, millTool("alpha"), "a", `{}`, nil)
	if fresh {
		t.Error("the first process of a session is said to take the place of another")
	}
	ctx, expire := expiring(t)
	held := newGate()
	go func() {
		<-held.reached
		expire()
	}()
	c := call(`{"hold":true}`)
	c.Session = "a"
	_, err := r.Run(ctx, millTool("beta"), c, held)
	wantCode(t, err, plugin.CodeTimeout)
	second, fresh := use(t, r, millTool("alpha"), "a", `{}`, nil)
	if second.Process == first.Process || !fresh || len(second.Seen) != 1 {
		t.Errorf("%+v after %+v, fresh %v", second, first, fresh)
	}
	if third, fresh := use(t, r, millTool("alpha"), "a", `{}`, nil); third.Process != second.Process || fresh {
		t.Errorf("%+v, fresh %v", third, fresh)
	}
}

func TestALostProcessOfASessionIsTold(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *process.Runner){
		"crashed": func(r *process.Runner) {
			c := call(`{"exit":"now"}`)
			c.Session = "a"
			_, err := r.Run(t.Context(), millTool("beta"), c, nil)
			wantCode(t, err, plugin.CodeCrashed, "beta: ")
		},
		"idle": func(r *process.Runner) {
			testwait.Until(t, "the idle process of the session is gone", func() bool { return r.Holding().Groups == 0 })
		},
		"pushed out": func(r *process.Runner) {
			for i := range 3 {
				use(t, r, millTool("alpha"), fmt.Sprint("other", i), `{}`, nil)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := process.Options{MaxProcesses: 2}
			if name == "idle" {
				o.SessionIdle = 100 * time.Millisecond
			}
			r := newRunner(t, o)
			first, _ := use(t, r, millTool("alpha"), "a", `{}`, nil)
			lose(r)
			second, fresh := use(t, r, millTool("beta"), "a", `{}`, nil)
			if second.Process == first.Process || !fresh {
				t.Errorf("fresh %v: %+v after %+v", fresh, second, first)
			}
			if again, fresh := use(t, r, millTool("alpha"), "a", `{}`, nil); name != "idle" && (again.Process != second.Process || fresh) {
				t.Errorf("told twice: %+v", again)
			}
		})
	}
}

// A plugin of any dialect that has a process for a session or agent is told of
// alike, and cannot say it itself.
func TestOnlyTheHostSaysThatAProcessIsFresh(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	claims := target("claims to be fresh", "x", isolated(plugin.IsolationSession))
	c := call(`{}`)
	c.Session = "a"
	res, err := run(t, r, claims, c)
	if err != nil || res.Metrics["fresh_process"] != nil || res.Metrics["tokens_in"] != 1.0 {
		t.Errorf("%+v, %v", res.Metrics, err)
	}
}

// The artifacts of a session are there for its process, those too that come
// after it was started, as session.open shows them; a call outside a session
// reads what its input names.
func TestASessionSeesItsArtifacts(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	views := t.TempDir()
	r := newRunner(t, process.Options{Hide: []string{views}, View: func(_ context.Context, tenant, session string) (string, error) {
		dir := filepath.Join(views, tenant+"-"+session)
		if session == "gone" {
			return "", plugin.Errorf(plugin.CodeNotFound, "there is no session %s", session)
		}
		n := asked.Add(1)
		if err := os.MkdirAll(filepath.Join(dir, "art"), 0o755); err != nil {
			return "", err
		}
		return dir, os.WriteFile(filepath.Join(dir, "art", fmt.Sprint(n)), fmt.Append(nil, "artifact ", n), 0o644)
	}})
	dir := filepath.Join(views, "local-a")
	for n := 1; n <= 2; n++ {
		if n == 2 {
			if err := os.WriteFile(filepath.Join(dir, "art", "2"), []byte("artifact 2"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		in, _ := json.Marshal(map[string]string{"read": filepath.Join(dir, "art", fmt.Sprint(n))})
		if got, _ := use(t, r, millTool("alpha"), "a", string(in), nil); got.Text != fmt.Sprint("artifact ", n) || got.View != dir || len(got.Seen) != n {
			t.Errorf("%+v", got)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the view was asked for %d times by two calls of one process", n)
	}
	in, _ := json.Marshal(map[string]string{"read": filepath.Join(dir, "art", "1")})
	if got, _ := use(t, r, millTool("alpha"), "b", string(in), nil); caged(t) && got.Text != "" {
		t.Errorf("another session reads %q", got.Text)
	}
	before := asked.Load()
	own := filepath.Join(t.TempDir(), "own.log")
	if err := os.WriteFile(own, []byte("my own"), 0o644); err != nil {
		t.Fatal(err)
	}
	in, _ = json.Marshal(map[string]any{"read": own, "artifacts": []any{map[string]string{"file_path": own}}})
	if got, _ := useFiles(t, r, millTool("alpha"), "", string(in), nil, handOn(t, own)); got.Text != "my own" || got.View != "" || asked.Load() != before {
		t.Errorf("outside a session: %+v", got)
	}
	c := call(`{}`)
	c.Session = "gone"
	_, err := r.Run(t.Context(), millTool("alpha"), c, nil)
	wantCode(t, err, plugin.CodeNotFound, "alpha: there is no session gone")
}

func caged(t *testing.T) bool {
	s := cage(t)
	return s.Report().Level == sandbox.Full
}

// attached is services that read a file of the scratch directory.
type attached struct {
	scratch fs.FS
	dir     string
}

func (a *attached) Attach(scratch fs.FS, dir string) { a.scratch, a.dir = scratch, dir }

func (a *attached) Serve(_ context.Context, method string, args json.RawMessage) (json.RawMessage, error) {
	var in struct {
		FilePath string `json:"file_path"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, err
	}
	text, err := fs.ReadFile(a.scratch, in.FilePath)
	if err != nil {
		return nil, err
	}
	return json.Marshal(method + ": " + string(text))
}

// Services read what the plugin of their call wrote, beneath a descriptor of
// its scratch directory, caged or not; once the process is gone nothing is read.
func TestServicesReadTheScratchDirectory(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	for _, text := range []string{"one", "two"} {
		s := &attached{}
		got, _ := use(t, r, millTool("alpha"), "a", fmt.Sprintf(`{"write":%q}`, text), s)
		if got.Reply != `"artifacts.register: `+text+`"` || !filepath.IsAbs(s.dir) {
			t.Errorf("%+v in %s", got, s.dir)
		}
		if _, err := fs.ReadFile(s.scratch, "../out.txt"); err == nil {
			t.Error("what is above the scratch directory can be read")
		}
	}
	s := &attached{}
	use(t, r, millTool("alpha"), "b", `{}`, s)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.ReadDir(s.scratch, "."); err == nil {
		t.Error("the scratch directory of a process that is gone is still open")
	}
}
