package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/service/egress"
	"github.com/mortise-dev/mortise/plugin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A forgetful server is one of the official SDK with sessions, which it may end at any time. It
// answers requests of a session that has ended with 404.
type forgetful struct {
	*httptest.Server
	body  string // of that 404
	calls atomic.Int32
	took  func(n int32) // is told of each call that the server took; may be nil

	mu    sync.Mutex
	known map[string]bool // sessions, and whether they go on
	dead  bool            // no session goes on
}

func newForgetful(t *testing.T, body string) *forgetful {
	t.Helper()
	f := &forgetful{body: body, known: map[string]bool{}}
	server := func(*http.Request) *sdk.Server {
		s := sdk.NewServer(&sdk.Implementation{Name: "bank", Version: "1"}, nil)
		s.AddTool(&sdk.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			n := f.calls.Add(1)
			if f.took != nil {
				f.took(n)
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "paid"}}}, nil
		})
		return s
	}
	handler := sdk.NewStreamableHTTPHandler(server, nil)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodDelete && f.ended(r.Header.Get(sessionHeader)) { // the SDK forgets what is deleted
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, f.body)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

// ended reports whether a session has ended; one that is new goes on.
func (f *forgetful) ended(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == "" {
		return false
	}
	goesOn, seen := f.known[id]
	if !seen {
		f.known[id], goesOn = true, true
	}
	return !goesOn || f.dead
}

// forget ends all sessions.
func (f *forgetful) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.known {
		f.known[id] = false
	}
}

// mounted returns a runner that calls the tools of a server, and the target of pay.
func mounted(t *testing.T, url string, recheck time.Duration) (*Runner, *plugin.Target) {
	t.Helper()
	r := New(Options{
		Check:  func(context.Context, plugin.Package) error { return nil },
		Egress: egress.Grants{Loopback: []string{"bank"}}, Recheck: recheck,
	})
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	op := &plugin.Operation{Name: "pay", Kind: plugin.Operator, Effects: []string{"mcp_call"}}
	m := &plugin.Manifest{Name: "bank", Version: "1.0.0", Isolation: plugin.IsolationTenant, Operations: []*plugin.Operation{op}}
	m.Runner.Kind, m.Runner.URL = "mcp", url
	m.HTTP.Hosts = []string{strings.TrimPrefix(url, "http://")}
	pkg := plugin.Package{Dir: t.TempDir(), Digest: "sha256:bank"}
	definition, err := r.Define(t.Context(), "local", pkg, m)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pkg.Dir, File), definition, 0o600); err != nil {
		t.Fatal(err)
	}
	return r, &plugin.Target{Manifest: m, Operation: op, Package: pkg}
}

func pay(ctx context.Context, r *Runner, t *plugin.Target, id string) error {
	res, err := r.Run(ctx, t, &plugin.Call{ID: id, Tenant: "local", Input: json.RawMessage(`{}`)}, nil)
	if err == nil && res.Status != plugin.Succeeded {
		err = fmt.Errorf("it is %q", res.Status)
	}
	return err
}

// lost are the bodies of the 404 of servers that are in use.
var lost = map[string]string{
	"no body":            "",
	"text":               "session not found\n",
	"an error":           `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`,
	"an error of a call": `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad session"},"id":3}`,
	"a page":             "<html>Not Found</html>",
}

// TestACallMeetsASessionThatTheServerHasEnded: the server did not take the call, so it is sent once
// more in a new session, and is paid once. That holds whichever request meets the end first, in
// whatever words the server says it, and for calls that meet it together.
func TestACallMeetsASessionThatTheServerHasEnded(t *testing.T) {
	t.Parallel()
	for name, body := range lost {
		for at, recheck := range map[string]time.Duration{"the call": time.Hour, "the list of tools": time.Nanosecond} {
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				f := newForgetful(t, body)
				r, target := mounted(t, f.URL, recheck)
				want := int32(0)
				for round := range 3 {
					f.forget()
					if err := pay(t.Context(), r, target, fmt.Sprint(round)); err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
					if want++; f.calls.Load() != want {
						t.Fatalf("round %d: %d payments, want %d", round, f.calls.Load(), want)
					}
				}
				f.forget()
				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() {
						if err := pay(t.Context(), r, target, fmt.Sprint("together", i)); err != nil {
							t.Errorf("one of several: %v", err)
						}
					})
				}
				all.Wait()
				if want += 8; f.calls.Load() != want {
					t.Errorf("%d payments, want %d", f.calls.Load(), want)
				}
			})
		}
	}
}

// TestAServerThatKeepsNoSessionIsNotSaidToHaveHadTheCall: it is tried once more and no further,
// and the call is free to be made again.
func TestAServerThatKeepsNoSessionIsNotSaidToHaveHadTheCall(t *testing.T) {
	t.Parallel()
	for name, body := range lost {
		f := newForgetful(t, body)
		r, target := mounted(t, f.URL, time.Hour)
		if err := pay(t.Context(), r, target, "first"); err != nil {
			t.Fatal(err)
		}
		f.mu.Lock()
		f.dead = true
		f.mu.Unlock()
		err := pay(t.Context(), r, target, "second")
		var said interface{ Sent() bool }
		if plugin.CodeOf(err) != plugin.CodeUnavailable || !errors.As(err, &said) || said.Sent() {
			t.Errorf("%s: %v", name, err)
		}
		if n := f.calls.Load(); n != 1 {
			t.Errorf("%s: %d payments, want 1", name, n)
		}
	}
}

// TestACallThatIsAtWorkOutlivesTheSessionOfTheNext: a server that ends a session may still answer
// the calls that it took in it. The host waits for them while others begin a new session.
func TestACallThatIsAtWorkOutlivesTheSessionOfTheNext(t *testing.T) {
	t.Parallel()
	f := newForgetful(t, "")
	r, target := mounted(t, f.URL, time.Hour)
	began, goOn := make(chan struct{}), make(chan struct{})
	f.took = func(n int32) {
		if n == 1 {
			close(began)
			<-goOn
		}
	}
	first := make(chan error, 1)
	go func() { first <- pay(t.Context(), r, target, "first") }()
	<-began
	f.forget()
	if err := pay(t.Context(), r, target, "second"); err != nil {
		t.Error(err)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("the call that was at work: %v", err)
	}
	if n := f.calls.Load(); n != 2 {
		t.Errorf("%d payments, want 2", n)
	}
}
