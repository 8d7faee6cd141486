package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// The test binary is its own plugin: started with a first argument of
// "plugin", it serves as the plugin that the second argument names.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		play(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// play is what the good plugins do. The bad ones are in liars_test.go.
func play(role string) {
	if lie, ok := liars[role]; ok {
		lie()
		return
	}
	if role == "tools" {
		playTools()
		return
	}
	p := mortise.New("test.plugin", "1.0.0")
	switch role {
	case "serial":
		p.Concurrency = 1
	case "broad":
		p.Concurrency = 256
	}
	mortise.Tool(p, "echo", "", func(_ *mortise.Call, in jsontext.Value) (jsontext.Value, error) { return in, nil })
	mortise.Tool(p, "pid", "", func(*mortise.Call, struct{}) (string, error) { return identity(), nil })
	mortise.Tool(p, "hold", "", func(c *mortise.Call, _ struct{}) (string, error) {
		c.Emit(identity())
		return identity(), c.Service("gate.pass", struct{}{}, nil)
	})
	mortise.Tool(p, "wait", "", func(c *mortise.Call, _ struct{}) (string, error) {
		c.Emit("begun")
		<-c.Done()
		return "", c.Err()
	})
	mortise.Tool(p, "deaf", "", func(c *mortise.Call, _ struct{}) (string, error) {
		c.Emit("begun")
		forever()
		return "heard nothing", nil
	})
	mortise.Tool(p, "exit", "", func(_ *mortise.Call, in struct {
		Status int `json:"status"`
	}) (string, error) {
		fmt.Fprintln(os.Stderr, "these are my last words")
		os.Exit(in.Status)
		return "", nil
	})
	mortise.Tool(p, "eat", "", func(*mortise.Call, struct{}) (int, error) {
		var all [][]byte
		for {
			all = append(all, bytes.Repeat([]byte{1}, 4<<20))
			if len(all) > 1<<20 {
				return len(all), nil
			}
		}
	})
	mortise.Tool(p, "read", "", func(_ *mortise.Call, in struct {
		Artifacts []struct {
			Path string `json:"path"`
		} `json:"artifacts"`
		Others []string `json:"others"`
	}) ([]string, error) {
		texts := []string{identity()}
		paths := in.Others
		for _, a := range in.Artifacts {
			paths = append(paths, a.Path)
		}
		for _, path := range paths {
			text, _ := os.ReadFile(path)
			texts = append(texts, string(text))
		}
		return texts, nil
	})
	mortise.Tool(p, "environment", "", func(*mortise.Call, struct{}) ([]string, error) { return os.Environ(), nil })
	mortise.Tool(p, "pour", "", func(c *mortise.Call, in struct {
		N int `json:"n"`
	}) (string, error) {
		for i := range in.N {
			c.Emit(i)
		}
		c.Log("info", "all of it was poured", nil)
		return "poured", nil
	})
	mortise.Tool(p, "ask", "", func(c *mortise.Call, in struct {
		Method string `json:"method"`
	}) (value jsontext.Value, err error) {
		err = c.Service(in.Method, map[string]int{"a": 1}, &value)
		return value, err
	})
	mortise.Tool(p, "measure", "", func(c *mortise.Call, in struct {
		Method string `json:"method"`
	}) (string, error) {
		var value jsontext.Value
		err := c.Service(in.Method, map[string]int{"a": 1}, &value)
		var refused *mortise.ServiceError
		if errors.As(err, &refused) {
			return refused.Code, nil
		}
		return fmt.Sprintf("%d bytes", len(value)), err
	})
	mortise.Tool(p, "talk", "", func(c *mortise.Call, _ struct{}) (string, error) {
		c.Log("warning", "a record", map[string]any{"n": 1})
		fmt.Fprintln(os.Stderr, "a line \x1b[31mof stderr")
		if err := c.Service("stderr.heard", struct{}{}, nil); err != nil { // two pipes keep no common order
			return "", err
		}
		c.Progress(mortise.Progress{Message: "half way", Done: 1, Total: 2})
		c.Emit(map[string]string{"text": "some content"})
		return "talked", nil
	})
	mortise.Operator(p, "send", "", func(c *mortise.Call, in mail) (mail, error) { return in, nil },
		mortise.WithPreview(func(c *mortise.Call, in mail) (jsontext.Value, error) {
			var value jsontext.Value
			err := c.Service("cache.get", map[string]string{"key": in.To}, &value)
			return value, err
		}),
		mortise.WithReconcile(func(c *mortise.Call, in mail, effects []mortise.Effect) (mortise.Reconciled, error) {
			if in.To == "slow" {
				c.Emit("begun")
				<-c.Done()
			}
			return mortise.Reconciled{Outcome: mortise.Succeeded, Data: effects, Evidence: identity()}, nil
		}))
	hears(p)
	p.Run()
}

// born tells this process from any other.
var born = rand.Uint64()

// identity is what a plugin knows of its own process: the PID namespace, its
// number in there, and when it is compared, which of its bearers this is.
func identity() string { return identityOf(os.Getpid()) }

func identityOf(pid int) string {
	space, _ := os.Readlink("/proc/self/ns/pid")
	return fmt.Sprintf("%s %d %x", space, pid, born)
}

// hostPID returns the number by which the host knows a process, by what the
// process knows of itself; 0 where it is gone.
func hostPID(t testing.TB, data []byte) int {
	t.Helper()
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		t.Fatal(err)
	}
	space, rest, _ := strings.Cut(text, " ")
	number, _, _ := strings.Cut(rest, " ")
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if its, err := os.Readlink(filepath.Join("/proc", entry.Name(), "ns", "pid")); err != nil || its != space {
			continue
		}
		status, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "status"))
		for line := range strings.Lines(string(status)) {
			if fields := strings.Fields(line); fields[0] == "NSpid:" && fields[len(fields)-1] == number {
				if pid, err := strconv.Atoi(entry.Name()); err == nil {
					return pid
				}
			}
		}
	}
	return 0
}

type mail struct {
	To string `json:"to"`
}

// through is the program that starts the plugins, where there is one.
var through []string

// newRunner returns a runner whose plugins are this binary in the role of the
// manifest's entry.
func newRunner(t testing.TB, opts process.Options) *process.Runner {
	t.Helper()
	opts.Scratch = t.TempDir()
	opts.Sandbox, opts.Reads = cage(t), reads
	if opts.Command == nil {
		opts.Command = func(_ context.Context, _ plugin.Package, m *plugin.Manifest) ([]string, error) {
			self, err := os.Executable()
			return append(slices.Clone(through), self, "plugin", m.Runner.Entry), err
		}
	}
	if opts.Handshake == 0 {
		opts.Handshake = time.Minute
	}
	r := process.New(opts)
	r.BePatient(time.Minute)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		left, err := filepath.Glob(filepath.Join(opts.Scratch, "*"))
		if err != nil || len(left) > 0 {
			t.Errorf("left in scratch: %v %v", left, err)
		}
	})
	return r
}

// cage returns what the plugins of a test run in: the best cage of this
// machine, or none where MORTISE_TEST_SANDBOX says off.
func cage(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(sandbox.Options{Dir: t.TempDir(), StartLimit: time.Minute, Mode: sandbox.Mode(os.Getenv("MORTISE_TEST_SANDBOX"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reads is what this binary needs to run.
func reads(context.Context, plugin.Package, *plugin.Manifest, []string) ([]string, error) {
	var there []string
	for _, dir := range []string{"/bin", "/usr/bin", "/lib", "/lib64", "/usr/lib"} {
		if _, err := os.Stat(dir); err == nil {
			there = append(there, dir)
		}
	}
	self, err := os.Executable()
	return append(there, self), err
}

// target returns an operation of the plugin that plays role.
func target(role, operation string, change ...func(*plugin.Manifest)) *plugin.Target {
	m := &plugin.Manifest{
		Name: "test.plugin", Version: "1.0.0", Isolation: plugin.IsolationTenant,
		Runner: plugin.Runner{Kind: "process", Entry: role, Protocol: protocol.Version2},
	}
	for _, f := range change {
		f(m)
	}
	op := &plugin.Operation{Name: operation, Kind: plugin.Tool, Timeout: time.Minute}
	m.Operations = []*plugin.Operation{op}
	return &plugin.Target{Manifest: m, Operation: op, Package: plugin.Package{Digest: "sha256:" + role}}
}

func call(input string) *plugin.Call {
	return &plugin.Call{ID: "call-1", Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "me"}, Input: json.RawMessage(input)}
}

// run runs one operation without services.
func run(t testing.TB, r *process.Runner, target *plugin.Target, c *plugin.Call) (plugin.Result, error) {
	t.Helper()
	ctx, cancel := limited(t)
	defer cancel()
	return r.Run(ctx, target, c, nil)
}

// limited returns a context that ends a hung call.
func limited(t testing.TB) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeoutCause(t.Context(), testwait.Limit, plugin.Errorf(plugin.CodeTimeout, "%v passed", testwait.Limit))
}

func wantCode(t testing.TB, err error, code plugin.Code, words ...string) {
	t.Helper()
	if got := plugin.CodeOf(err); got != code {
		t.Fatalf("got %q (%v), want %q", got, err, code)
	}
	for _, word := range words {
		if err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not mention %q", err, word)
		}
	}
}
