package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/process"
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
	p := mortise.New("test.plugin", "1.0.0")
	switch role {
	case "serial":
		p.Concurrency = 1
	case "broad":
		p.Concurrency = 256
	}
	mortise.Tool(p, "echo", "", func(_ *mortise.Call, in jsontext.Value) (jsontext.Value, error) { return in, nil })
	mortise.Tool(p, "pid", "", func(*mortise.Call, struct{}) (int, error) { return os.Getpid(), nil })
	mortise.Tool(p, "sleep", "", func(c *mortise.Call, in struct {
		MS int `json:"ms"`
	}) (string, error) {
		select {
		case <-time.After(time.Duration(in.MS) * time.Millisecond):
			return "slept", nil
		case <-c.Done():
			return "", c.Err()
		}
	})
	mortise.Tool(p, "nap", "", func(_ *mortise.Call, in struct {
		MS int `json:"ms"`
	}) (int, error) {
		time.Sleep(time.Duration(in.MS) * time.Millisecond)
		return os.Getpid(), nil
	})
	mortise.Tool(p, "deaf", "", func(_ *mortise.Call, in struct {
		MS int `json:"ms"`
	}) (string, error) {
		time.Sleep(time.Duration(in.MS) * time.Millisecond)
		return "heard nothing", nil
	})
	mortise.Tool(p, "exit", "", func(_ *mortise.Call, in struct {
		Status int `json:"status"`
	}) (string, error) {
		fmt.Fprintln(os.Stderr, "these are my last words")
		os.Exit(in.Status)
		return "", nil
	})
	mortise.Tool(p, "environment", "", func(*mortise.Call, struct{}) ([]string, error) { return os.Environ(), nil })
	mortise.Tool(p, "pour", "", func(c *mortise.Call, in struct {
		N int `json:"n"`
	}) (string, error) {
		for i := range in.N {
			c.Emit(i)
		}
		return "poured", nil
	})
	mortise.Tool(p, "ask", "", func(c *mortise.Call, in struct {
		Method string `json:"method"`
	}) (value jsontext.Value, err error) {
		err = c.Service(in.Method, map[string]int{"a": 1}, &value)
		return value, err
	})
	mortise.Tool(p, "talk", "", func(c *mortise.Call, _ struct{}) (string, error) {
		c.Log("warning", "a record", map[string]any{"n": 1})
		fmt.Fprintln(os.Stderr, "a line \x1b[31mof stderr")
		time.Sleep(50 * time.Millisecond) // two pipes keep no common order
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
				<-c.Done()
			}
			return mortise.Reconciled{Outcome: mortise.Succeeded, Data: effects, Evidence: os.Getpid()}, nil
		}))
	p.Run()
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
	if opts.Command == nil {
		opts.Command = func(_ context.Context, _ plugin.Package, m *plugin.Manifest) ([]string, error) {
			self, err := os.Executable()
			return append(slices.Clone(through), self, "plugin", m.Runner.Entry), err
		}
	}
	r := process.New(opts)
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

// run runs one operation with ten seconds to spare.
func run(t testing.TB, r *process.Runner, target *plugin.Target, c *plugin.Call) (plugin.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, plugin.Errorf(plugin.CodeTimeout, "ten seconds passed"))
	defer cancel()
	return r.Run(ctx, target, c, nil)
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

func alive(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}
