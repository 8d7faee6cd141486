package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// caged opens a host with this configuration, and one plugin, on a machine that
// reaches a full cage.
func caged(t *testing.T, config, manifest, code string) *app.App {
	t.Helper()
	needPython(t)
	home, dir := t.TempDir(), t.TempDir()
	write(t, home, "mortise.yaml", config)
	write(t, dir, "manifest.yaml", manifest, "plugin.py", code)
	a := open(t, home)
	needsFullSandbox(t, a)
	register(t, a, dir, false)
	return a
}

// needsFullSandbox skips the test on a machine that lacks a wall, and says which.
func needsFullSandbox(t *testing.T, a *app.App) {
	t.Helper()
	if r := a.Sandbox.Report(); r.Level != sandbox.Full {
		t.Skipf("this test needs the full sandbox; this machine reaches level %s and lacks %+v: 'mortise doctor' says how to get it", r.Level, r.Missing())
	}
}

// A plugin has no network of its own, and the host's for what it was granted:
// both in one call, to one address.
func TestTheOnlyNetworkIsTheHosts(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("hello"))
	}))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	a := caged(t, "egress: {loopback: [two_ways]}\n", fmt.Sprintf(`
name: two_ways
version: 1.0.0
owner: test
description: Two ways.
runner: {kind: process, entry: plugin.py}
capabilities: [http]
http: {hosts: [%q]}
`, address), `
import socket
from mortise import Context, Plugin

plugin = Plugin("two_ways", version="1.0.0", capabilities=["http"])

@plugin.tool
def go(host: str, port: int, ctx: Context) -> dict:
    """Try both."""
    own = "connected"
    try:
        socket.create_connection((host, port), 2).close()
    except OSError as error:
        own = type(error).__name__
    return {"own": own, "hosts": ctx.http.get(f"http://{host}:{port}/")["status_code"]}

plugin.run()
`)
	host, port, _ := strings.Cut(address, ":")
	res, err := call(t, a, "two_ways", fmt.Sprintf(`{"host":%q,"port":%s}`, host, port))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Own   string
		Hosts int
	}
	if err := json.Unmarshal(res.Data, &got); err != nil {
		t.Fatal(err)
	}
	if got.Own != "PermissionError" || got.Hosts != http.StatusOK || asked.Load() != 1 {
		t.Errorf("%s, and the server was asked %d times", res.Data, asked.Load())
	}
}

// What mortise.yaml says of plugins bounds them, and the next call finds a plugin
// that works.
func TestTheLimitsOfTheConfigurationHold(t *testing.T) {
	t.Parallel()
	a := caged(t, "plugins: {memory: 96MiB, processes: 16, file_size: 1MiB, scratch: 8MiB}\n", `
name: greedy
version: 1.0.0
owner: test
description: Takes what it is told to.
runner: {kind: process, entry: plugin.py}
`, `
import os, pathlib, threading, time
from mortise import Plugin

plugin = Plugin("greedy", version="1.0.0")

@plugin.tool
def take(what: str) -> str:
    """Take it."""
    if what == "memory":
        kept = [os.urandom(1 << 20) for _ in range(400)]
        return f"{len(kept)} MiB"
    if what == "processes":
        for _ in range(64):
            threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    if what == "file_size":
        pathlib.Path("large").write_bytes(bytes(4 << 20))
    if what == "scratch":
        for n in range(32):
            pathlib.Path(f"f{n}").write_bytes(bytes(1 << 19))
    return what

plugin.run()
`)
	for what, want := range map[string]string{ // what the host says, or the program itself in its own words
		"memory": "limit_exceeded: .*plugins.memory", "processes": "can't start new thread",
		"file_size": "File too large", "scratch": "No space left on device",
	} {
		res, err := call(t, a, "greedy", fmt.Sprintf(`{"what":%q}`, what))
		if err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("%s: %s, %v", what, res.Data, err)
		}
		if res, err := call(t, a, "greedy", `{"what":"little"}`); err != nil || string(res.Data) != `"little"` {
			t.Errorf("after %s: %s, %v", what, res.Data, err)
		}
	}
}

// A file of evidence looks as any file does, so that a copy of it can be worked
// on, and cannot be changed: neither one beside its row nor a larger one.
func TestEvidenceIsCopiedAndNotChanged(t *testing.T) {
	t.Parallel()
	a := caged(t, "", `
name: editor
version: 1.0.0
owner: test
description: Changes what it can.
isolation: session
runner: {kind: process, entry: plugin.py}
capabilities: [artifacts]
`, `
import os, shutil
from mortise import Context, Plugin

plugin = Plugin("editor", version="1.0.0", capabilities=["artifacts"])

@plugin.tool
def edit(ctx: Context) -> list:
    """Work on a copy of each artifact, and try the artifact."""
    said = []
    for n, (folder, _, names) in enumerate((f, d, n) for f, d, n in os.walk(ctx.artifacts_dir) if n):
        path = os.path.join(folder, names[0])
        shutil.copy(path, f"copy{n}")
        with open(f"copy{n}", "r+b") as file:
            file.write(b"X")
        for change in (lambda: open(path, "r+b"), lambda: os.truncate(path, 0), lambda: os.chmod(path, 0o777), lambda: os.unlink(path)):
            try:
                change()
                said.append("changed")
            except OSError:
                said.append("refused")
    return said

plugin.run()
`)
	s, err := a.Sessions.Create(t.Context(), "local", session.Open{})
	if err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"small.log": 10, "large.log": 200_000} {
		if _, err := a.Sessions.Add(t.Context(), "local", s.ID, strings.NewReader(strings.Repeat("a", size)), session.Add{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	res, err := a.Kernel.Call(t.Context(), plugin.Call{Tenant: "local", Principal: a.Principal, Origin: plugin.OriginCLI, Operation: "editor", Session: s.ID, Input: []byte("{}")})
	if want := `["refused","refused","refused","refused","refused","refused","refused","refused"]`; err != nil || string(res.Data) != want {
		t.Errorf("%s, %v", res.Data, err)
	}
}
