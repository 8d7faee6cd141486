package process_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Whatever a plugin of protocol 2 does, the call fails with the right code and
// the host goes on.
func TestLiesOfProtocol2(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	impatient := map[string]*process.Runner{ // only the host's patience ends these
		"opens/never":           newRunner(t, process.Options{PerTenant: 1, Handshake: 300 * time.Millisecond}),
		"answers/closes stdout": newRunner(t, process.Options{PerTenant: 1}),
	}
	impatient["answers/closes stdout"].SetExitGrace(300 * time.Millisecond)
	want := func(role string) plugin.Code {
		switch {
		case role == "opens/not json", role == "opens/an array":
			return plugin.CodeMalformedResponse
		case role == "opens/another version", role == "opens/no version":
			return plugin.CodeProtocolVersionMismatch
		case role == "opens/never":
			return plugin.CodeTimeout
		case role == "opens/exits":
			return plugin.CodeCrashed
		case role == "opens/twice":
			return "" // the first call may be answered before the second opening is seen
		case strings.HasPrefix(role, "opens/"):
			return plugin.CodeHandshakeFailed
		case strings.HasPrefix(role, "answers/exits"), role == "answers/is killed", role == "answers/closes stdout":
			return plugin.CodeCrashed
		case role == "answers/no newline", role == "answers/two", role == "answers/a bad emit":
			return "" // see below
		case strings.HasPrefix(role, "answers/"):
			return plugin.CodeMalformedResponse
		default:
			return ""
		}
	}
	for role := range liars {
		code := want(role)
		if code == "" {
			continue
		}
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			_, err := run(t, cmp.Or(impatient[role], r), target(role, "echo"), call(`{}`))
			wantCode(t, err, code, "test.plugin")
		})
	}
}

func TestBadMannersDoNoHarm(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	for role := range liars {
		if !strings.HasPrefix(role, "manners/") && role != "answers/no newline" {
			continue
		}
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			if res, err := run(t, r, target(role, "echo"), call(`{}`)); err != nil || string(res.Data) != "1" {
				t.Errorf("%s, %v", res.Data, err)
			}
		})
	}
}

// A second answer to one request ends the process; the call it belonged to may
// have been answered by then, and the next finds a new process.
func TestASecondAnswerEndsTheProcess(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	for range 3 {
		_, err := run(t, r, target("answers/two", "echo"), call(`{}`))
		if code := plugin.CodeOf(err); code != "" && code != plugin.CodeMalformedResponse {
			t.Errorf("%v", err)
		}
	}
	_, err := run(t, r, target("answers/a bad emit", "echo"), call(`{}`))
	wantCode(t, err, plugin.CodeMalformedResponse)
}

// A plugin that never reads blocks no caller: each has its own deadline.
func TestAPluginThatNeverReadsBlocksNoCaller(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1, CancelGrace: 100 * time.Millisecond})
	big := `"` + strings.Repeat("a", 1<<20) + `"`
	for range 3 {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, plugin.Errorf(plugin.CodeTimeout, "too slow"))
		_, err := r.Run(ctx, target("lives/never reads", "echo"), call(big), nil)
		cancel()
		wantCode(t, err, plugin.CodeTimeout)
	}
}

// How long a call waits for a plugin that never reads is up to its caller alone.
func TestCallsOfAPluginThatNeverReadsEndAtTheirDeadline(t *testing.T) {
	if testing.Short() {
		t.Skip("make test-long: measures how long after its deadline a call of a plugin that never reads ends, and how long Close takes")
	}
	r := newRunner(t, process.Options{PerTenant: 1, CancelGrace: 100 * time.Millisecond})
	big := `"` + strings.Repeat("a", 1<<20) + `"`
	for range 3 {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := r.Run(ctx, target("lives/never reads", "echo"), call(big), nil)
		cancel()
		wantCode(t, err, plugin.CodeTimeout)
		if took := time.Since(start); took > 700*time.Millisecond {
			t.Errorf("a call of 200 ms took %v, want at most 700 ms", took)
		}
	}
	for _, role := range []string{"lives/ignores sigterm", "lives/leaves a child"} {
		stubborn := newRunner(t, process.Options{PerTenant: 1})
		_, _ = run(t, stubborn, target(role, "echo"), call(`{}`))
		start := time.Now()
		if err := stubborn.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s: closing took %v, want at most 3 s", role, took)
		}
	}
}

func TestAPluginThatIgnoresSIGTERMIsKilled(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{self, "plugin", "lives/ignores sigterm", t.TempDir()} // the last one tells it from those of other runs
	r := newRunner(t, process.Options{PerTenant: 1, Command: func(context.Context, plugin.Package, *plugin.Manifest) ([]string, error) {
		return slices.Concat(through, argv), nil
	}})
	if _, err := run(t, r, target("lives/ignores sigterm", "echo"), call(`{}`)); err != nil {
		t.Fatal(err)
	}
	if !running(t, argv...) {
		t.Fatal("the process is not to be found")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if running(t, argv...) {
		t.Error("the process lives on")
	}
}

// A child of the plugin that holds its pipes open neither holds up the call
// nor outlives the plugin.
func TestAPluginsChildrenEndWithIt(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{PerTenant: 1})
	if _, err := run(t, r, target("lives/leaves a child", "echo"), call(`{}`)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the child has ended", func() bool { return !running(t, "/bin/sleep", orphan) }) // init reaps it in its own time
}

// running reports whether a process with these arguments is there, alone or behind
// the program that started it.
func running(t *testing.T, argv ...string) bool {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines { // that of a zombie is empty
		if text, err := os.ReadFile(line); err == nil && strings.HasSuffix("\x00"+string(text), "\x00"+strings.Join(argv, "\x00")+"\x00") {
			return true
		}
	}
	return false
}

// bound is a target of protocol 1 with an allow-list.
func bound(role string, capabilities ...string) *plugin.Target {
	return target(role, "echo", func(m *plugin.Manifest) {
		m.Isolation = plugin.IsolationCall
		m.Runner.Protocol = protocol.Version1
		m.Runner.Binding = &plugin.Binding{ProtocolVersion: protocol.RuntimeVersion, Capabilities: capabilities, Context: map[string]string{"workspace_id": "ws-1"}}
	})
}

// Each of the nine codes of the runtime protocol, provoked by a real process.
func TestLiesOfProtocol1(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	impatient := map[string]*process.Runner{ // only the host's patience ends these
		"v1/silent":                newRunner(t, process.Options{}),
		"v1/stays after answering": newRunner(t, process.Options{}),
	}
	impatient["v1/silent"].SetOnceGraces(300*time.Millisecond, testwait.Limit)
	impatient["v1/stays after answering"].SetOnceGraces(testwait.Limit, 300*time.Millisecond)
	codes := map[plugin.Code][]string{
		plugin.CodeHandshakeFailed: {
			"v1/opens not json", "v1/opens an array", "v1/opens as a response", "v1/opens without a type", "v1/no manifest", "v1/no plugin_id",
			"v1/no plugin_version", "v1/no exposed_tools", "v1/exposed_tools a text", "v1/duplicate tools", "v1/another id", "v1/another plugin_version", "v1/duplicate keys",
			"v1/padded capability", "v1/duplicate capability", "v1/blank capability", "v1/a long handshake",
		},
		plugin.CodeProtocolVersionMismatch: {"v1/another version", "v1/no version"},
		plugin.CodeToolNotExposed:          {"v1/another tool"},
		plugin.CodeCapabilityNotDeclared:   {"v1/no capabilities", "v1/empty capabilities"},
		plugin.CodeCapabilityNotAllowed:    {"v1/more capabilities", "v1/look-alike capability"},
		plugin.CodeMalformedResponse: {
			"v1/answers not json", "v1/answers an array", "v1/answers half a line", "v1/another request_id", "v1/another type", "v1/another status",
			"v1/ok with an error", "v1/error without error", "v1/error without code", "v1/error without message", "v1/two answers", "v1/bad utf-8",
			"v1/a long answer", "v1/two handshakes",
		},
		plugin.CodeCrashed: {
			"v1/closes at once", "v1/dies before answering", "v1/fails after answering", "v1/stays after answering",
		},
		plugin.CodeTimeout: {"v1/silent", "v1/never answers"},
	}
	tested := map[string]bool{"v1/good": true, "v1/no newline": true, "v1/extra members": true, "v1/refuses": true, "v1/refuses and fails": true, "v1/never reads the request": true, "v1/exits in the handshake": true}
	for code, roles := range codes {
		for _, role := range roles {
			tested[role] = true
			t.Run(role, func(t *testing.T) {
				t.Parallel()
				limit := testwait.Limit
				if role == "v1/never answers" { // only the caller's patience ends it
					limit = time.Second
				}
				ctx, cancel := context.WithTimeoutCause(t.Context(), limit, plugin.Errorf(plugin.CodeTimeout, "%v passed", limit))
				defer cancel()
				_, err := cmp.Or(impatient[role], r).Run(ctx, bound(role, "tool.execute"), call(`{"text":"hi"}`), nil)
				wantCode(t, err, code)
			})
		}
	}
	for role := range liars {
		if strings.HasPrefix(role, "v1/") && !tested[role] {
			t.Errorf("no test runs %s", role)
		}
	}
}

func TestProtocol1(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	for _, role := range []string{"v1/good", "v1/no newline", "v1/extra members", "v1/never reads the request"} {
		if res, err := run(t, r, bound(role, "tool.execute"), call(`{"text":"hi"}`)); err != nil || string(res.Data) != `{"a":1}` {
			t.Errorf("%s: %s, %v", role, res.Data, err)
		}
	}
	_, err := run(t, r, bound("v1/good"), call(`{}`))
	wantCode(t, err, plugin.CodeCapabilityNotAllowed, "tool.execute")

	// A line that ends in the middle of the handshake is no handshake.
	_, err = run(t, r, bound("v1/exits in the handshake", "tool.execute"), call(`{}`))
	wantCode(t, err, plugin.CodeHandshakeFailed)

	// A plugin's own error counts whatever its exit says.
	_, err = run(t, r, bound("v1/refuses", "tool.execute"), call(`{}`))
	wantCode(t, err, plugin.CodePluginError, "invalid_input", "text is required")
	_, err = run(t, r, bound("v1/refuses and fails", "tool.execute"), call(`{}`))
	wantCode(t, err, plugin.CodePluginError, "NOPE")
}

// What a plugin says in an error of its own is passed on as it said it, without a name before it:
// callers match on the message.
func TestTheErrorOfAPluginHasItsOwnMessage(t *testing.T) {
	t.Parallel()
	r := newRunner(t, process.Options{})
	for i, message := range ownWords {
		_, err := run(t, r, bound(fmt.Sprintf("own words %d", i), "tool.execute"), call(`{}`))
		if e := plugin.AsError(err); e.Code != plugin.CodePluginError || e.PluginCode != "NO" || e.Message != message {
			t.Errorf("%q: got %q %q %q", message, e.Code, e.PluginCode, e.Message)
		}
	}
}

func TestAProgramThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "absent"), dir, text, "/dev/null"} {
		r := newRunner(t, process.Options{Command: func(context.Context, plugin.Package, *plugin.Manifest) ([]string, error) { return []string{path}, nil }})
		_, err := run(t, r, bound("v1/good"), call(`{}`))
		wantCode(t, err, plugin.CodeLaunchFailed, path)
		_, err = run(t, r, target("good", "echo"), call(`{}`))
		wantCode(t, err, plugin.CodeLaunchFailed, path)
	}
}

func TestProtocol1EndsWithItsCaller(t *testing.T) {
	t.Parallel()
	var out lockedBuffer
	r := newRunner(t, process.Options{Log: slog.New(slog.NewJSONHandler(&out, nil))})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out.when(t, "the request came", cancel)
	_, err := r.Run(ctx, bound("v1/never answers", "tool.execute"), call(`{}`), nil)
	wantCode(t, err, plugin.CodeCancelled)
}
