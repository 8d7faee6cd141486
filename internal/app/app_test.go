package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/surface/cli"
	"github.com/mortise-dev/mortise/plugin"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// The test binary is a plugin in Go too: started with the argument "plugin".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "plugin" {
		p := mortise.New("upper", "1.0.0")
		mortise.Tool(p, "upper", "Make a text upper case.", func(_ *mortise.Call, in struct {
			Text string `json:"text"`
		}) (string, error) {
			return strings.ToUpper(in.Text), nil
		})
		p.Run()
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "gate":
			gatePlugin(os.Args[2], os.Args[3])
		case "mortise":
			os.Exit(cli.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case "mortise-blind": // without what takes secrets out
			os.Exit(cli.Run(secret.Blind(), os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
		case "fetcher":
			fetcherPlugin()
		case "caller":
			callerPlugin()
		case "chat":
			chatPlugin()
		case "planner":
			plannerPlugin()
		case "guardian":
			guardianPlugin()
		case "runner":
			concurrency, _ := strconv.Atoi(os.Args[3])
			runnerPlugin(os.Args[2], concurrency)
		case "reader":
			readerPlugin(os.Args[2])
		case "shower":
			showerPlugin()
		case "mcp-server":
			mcpServer(os.Args[2])
		case "mcp-fetcher":
			mcpFetcher()
		case "passer":
			passerPlugin()
		}
	}
	goleak.VerifyTestMain(m)
}

var quiet = slog.New(slog.DiscardHandler)

// open opens a host and closes it when the test ends.
func open(t *testing.T, home string) *app.App {
	t.Helper()
	a, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// write writes files below dir: their names and texts in turn.
func write(t *testing.T, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// upper writes the plugin that this binary is.
func upper(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", fmt.Sprintf("name: upper\nversion: 1.0.0\nowner: test\ndescription: Upper.\nrunner: {kind: process, command: [%q, plugin]}\n", self))
	return dir
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("this test needs python3, which is not installed; install it to run the test")
	}
}

func register(t *testing.T, a *app.App, dir string, dev bool) registry.Registered {
	t.Helper()
	report, err := a.Registry.Register(t.Context(), dir, registry.RegisterOptions{Dev: dev, Enable: true})
	if err != nil {
		t.Fatal(err)
	}
	if r := report.Registered[0]; r.NotEnabled != nil {
		t.Fatal(r.NotEnabled)
	}
	return report.Registered[0]
}

func call(t *testing.T, a *app.App, operation, input string) (plugin.Result, error) {
	t.Helper()
	return a.Kernel.Call(t.Context(), plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Operation: operation, Input: json.RawMessage(input), Fresh: true,
	})
}

// entries are the kinds and subjects in the ledger, the oldest first.
func entries(t *testing.T, a *app.App) []string {
	t.Helper()
	all, err := a.Ledger.List(t.Context(), ledger.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range slices.Backward(all) {
		lines = append(lines, string(e.Kind)+" "+e.Subject)
	}
	return lines
}

func TestOpenAndCloseAgainAndAgain(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "new", "home")
	for range 3 {
		a, err := app.Open(t.Context(), app.Options{Home: home, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.Close(), a.Close()); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(home); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestTwoHostsShareAHome(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	one, two := open(t, home), open(t, home)
	register(t, one, upper(t), false)
	if err := two.Registry.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res, err := call(t, two, "upper", `{"text":"seen"}`); err != nil || string(res.Data) != `"SEEN"` {
		t.Errorf("%s, %v", res.Data, err)
	}
}

// What was opened before the failure is closed again: goleak sees to it.
func TestAFailedOpenLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(home string) app.Options{
		"home is a file": func(home string) app.Options { return app.Options{Home: filepath.Join(home, "file")} },
		"config is wrong": func(home string) app.Options {
			return app.Options{Home: home, Config: filepath.Join(home, "wrong.yaml")}
		},
		"config names a binding that cannot be": func(home string) app.Options {
			return app.Options{Home: home, Config: filepath.Join(home, "binding.yaml")}
		},
		"database is none": func(home string) app.Options { return app.Options{Home: filepath.Join(home, "damaged")} },
		"a directory is taken": func(home string) app.Options {
			return app.Options{Home: filepath.Join(home, "taken")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			write(t, home, "file", "", "wrong.yaml", "polcy: {}", "binding.yaml", "bindings: [{plugin_id: a}]",
				"damaged/mortise.db", strings.Repeat("no database ", 1000), "taken/packages", "")
			o := spoil(home)
			o.Log = quiet
			a, err := app.Open(t.Context(), o)
			if err == nil {
				_ = a.Close()
				t.Fatal("it opened")
			}
			if a != nil {
				t.Error("there is a host beside the error")
			}
			if again, second := app.Open(t.Context(), o); second == nil || second.Error() != err.Error() {
				_ = again.Close()
				t.Errorf("the second time: %v, the first: %v", second, err)
			}
		})
	}
}

func TestAConfigurationThatIsNamedMustExist(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	_, err := app.Open(t.Context(), app.Options{Home: home, Config: filepath.Join(home, "missing.yaml"), Log: quiet})
	var setup *setup.Error
	if !errors.As(err, &setup) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(home); len(left) > 0 {
		t.Errorf("%s was made all the same", left)
	}
	if a := open(t, home); a.Config.Tenant != "local" || a.ConfigPath != filepath.Join(home, "mortise.yaml") {
		t.Errorf("%q, %q", a.Config.Tenant, a.ConfigPath)
	}
}

func TestACallThroughAllParts(t *testing.T) {
	t.Parallel()
	a := open(t, t.TempDir())
	register(t, a, upper(t), false)
	res, err := call(t, a, "upper", `{"text":"héllo"}`)
	if err != nil || string(res.Data) != `"HÉLLO"` || res.Operation != "upper/upper" || res.Version != "1.0.0" || res.CallID == "" {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := call(t, a, "upper", `{"txt":"x"}`); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("%v", err)
	}
	if _, err := call(t, a, "lower", `{}`); plugin.CodeOf(err) != plugin.CodeNotFound {
		t.Errorf("%v", err)
	}
	if got := entries(t, a); !slices.Contains(got, "call.succeeded "+res.CallID) || len(got) != 17 { // fourteen of plugins, twelve of which come along, and three of calls
		t.Errorf("%q", got)
	}
	key, err := store.ReadKey(a.Home)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := ledger.Verify(t.Context(), a.Store, key, nil); err != nil || report.Fault != nil {
		t.Errorf("%+v, %v", report.Fault, err)
	}
}

func TestACallOfAPluginInPython(t *testing.T) {
	t.Parallel()
	needPython(t)
	a := open(t, t.TempDir())
	dir := t.TempDir()
	write(t, dir, "count.py", `
from mortise import Context, Plugin

plugin = Plugin("count", version="1.0.0")
plugin.capabilities = ["cache"]

@plugin.tool
def words(text: str, ctx: Context) -> int:
    """Count the words in a text."""
    ctx.log.info("counting")
    return len(text.split())

plugin.run()
`)
	register(t, a, filepath.Join(dir, "count.py"), true)
	var heard []plugin.Event
	res, err := a.Kernel.Call(t.Context(), plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "u", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Operation: "count", Input: json.RawMessage(`{"text":"to be or"}`), Observe: func(e plugin.Event) { heard = append(heard, e) },
	})
	if err != nil || string(res.Data) != "3" {
		t.Errorf("%s, %v", res.Data, err)
	}
	if len(heard) == 0 || heard[0].Message != "counting" {
		t.Errorf("%+v", heard)
	}
}

// What the author installed is what runs: changed behind the host's back, it
// is held at the launch, before a line of it runs.
func TestAChangedPackageIsNotLaunched(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	a := open(t, home)
	dir := upper(t)
	write(t, dir, "data.txt", "as it was")
	one := register(t, a, dir, false)
	if err := os.Chmod(one.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(one.Path, "data.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(one.Path, "data.txt"), []byte("as it is"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := open(t, home) // a host that has not launched it yet
	for range 2 {
		if _, err := call(t, b, "upper", `{"text":"x"}`); plugin.CodeOf(err) != plugin.CodeQuarantined {
			t.Errorf("%v", err)
		}
	}
	held := 0
	for _, line := range entries(t, b) {
		if line == "plugin.quarantined upper@1.0.0" {
			held++
		}
	}
	if held != 1 {
		t.Errorf("%d entries say so: %q", held, entries(t, b))
	}
	if shown, err := b.Registry.Show(t.Context(), "upper"); err != nil || shown.State != registry.Quarantined {
		t.Errorf("%+v, %v", shown.Info, err)
	}
}

func TestAPluginCallsAnother(t *testing.T) {
	t.Parallel()
	needPython(t)
	a := open(t, t.TempDir())
	register(t, a, upper(t), false)
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", `
name: asking
version: 1.0.0
owner: test
description: Ask others.
runner: {kind: process, entry: asking.py}
requires: {tools: ["upper@^1"]}
`, "asking.py", `
from mortise import Context, Plugin, ServiceError

plugin = Plugin("asking", version="1.0.0")

@plugin.tool
def shout(text: str, ctx: Context) -> dict:
    """Ask upper."""
    res = ctx.call("upper", {"text": text})
    return {"said": res["data"], "call": res["call_id"]}

@plugin.tool
def wrong(operation: str, input: dict, ctx: Context) -> str:
    """Ask for what is refused."""
    try:
        ctx.call(operation, input)
    except ServiceError as e:
        return e.code
    return "nothing was refused"

@plugin.tool
def deeper(ctx: Context) -> dict:
    """Ask oneself."""
    return ctx.call("asking/deeper", {})

plugin.run()
`)
	register(t, a, dir, true)
	res, err := call(t, a, "asking/shout", `{"text":"hi"}`)
	var data struct{ Said, Call string }
	if err != nil || json.Unmarshal(res.Data, &data) != nil || data.Said != "HI" {
		t.Fatalf("%s, %v", res.Data, err)
	}
	inner, err := a.Ledger.Show(t.Context(), "", data.Call)
	var rec plugin.CallRecord
	if err != nil || json.Unmarshal(inner[0].Body, &rec) != nil {
		t.Fatal(err)
	}
	if rec.Operation != "upper/upper" || rec.Parent != res.CallID || rec.Principal != "local:owner" || rec.Actor != "plugin:asking" ||
		rec.Origin != plugin.OriginCall || rec.Correlation != res.Correlation || rec.Status != plugin.Succeeded {
		t.Errorf("%+v", rec)
	}
	for input, want := range map[string]string{
		`{"operation":"pattern_extractor","input":{}}`: "service_denied",
		`{"operation":"upper@^2","input":{}}`:          "service_denied",
		`{"operation":"upper/lower","input":{}}`:       "not_found",
		`{"operation":"upper","input":{"txt":1}}`:      "invalid_input",
	} {
		if res, err := call(t, a, "asking/wrong", input); err != nil || string(res.Data) != `"`+want+`"` {
			t.Errorf("%s: %s, %v; want %s", input, res.Data, err, want)
		}
	}
}

func TestAPluginCannotNestForEver(t *testing.T) {
	t.Parallel()
	needPython(t)
	a := open(t, t.TempDir())
	dir := t.TempDir()
	write(t, dir, "manifest.yaml", `
name: nesting
version: 1.0.0
owner: test
description: Ask itself.
runner: {kind: process, entry: nesting.py}
requires: {tools: [nesting]}
`, "nesting.py", `
from mortise import Context, Plugin

plugin = Plugin("nesting", version="1.0.0", concurrency=32)

@plugin.tool
def nest(ctx: Context) -> int:
    """Ask oneself."""
    return 1 + ctx.call("nesting", {})["data"]

plugin.run()
`)
	register(t, a, dir, true)
	_, err := call(t, a, "nesting", `{}`)
	if err == nil || !strings.Contains(err.Error(), "nested") {
		t.Errorf("%v", err)
	}
	calls := 0
	for _, line := range entries(t, a) {
		if strings.HasPrefix(line, "call.") {
			calls++
		}
	}
	if calls != plugin.MaxDepth+1 {
		t.Errorf("%d calls are on record, want %d", calls, plugin.MaxDepth+1)
	}
}

// A host is asked to end by a signal while it ends by itself: both wait for one end.
func TestAHostIsClosedFromTwoSidesAtOnce(t *testing.T) {
	t.Parallel()
	for range 3 {
		a, err := app.Open(t.Context(), app.Options{Home: t.TempDir(), Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		var closing sync.WaitGroup
		for range 4 {
			closing.Go(func() {
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		closing.Wait()
	}
}
