package interpreter_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

const notes = `
from plugins.notes.words import GREETING

class NotesPlugin:
    async def execute(self, params, context, host):
        found = await host.cache.get("name")
        return {"status": "success", "data": {"said": GREETING + found, "op": params["op"], "user": context["user_id"]}}
`

// notesPackage writes a Shu plugin and returns its directory and manifest.
func notesPackage(t *testing.T, files map[string]string) (string, *plugin.Manifest) {
	t.Helper()
	all := map[string]string{"pack/plugin.py": notes, "pack/words.py": "GREETING = 'hello '\n"}
	for name, text := range files {
		all["pack/"+name] = text
	}
	m := manifest("plugin.py")
	m.Name, m.Version, m.Contract = "notes_sync", "1.0.0", plugin.Contract{Shim: "shu", ShimManifest: true}
	m.Runner.Module, m.Runner.Class = "plugins.notes.plugin", "NotesPlugin"
	m.Isolation, m.Capabilities = plugin.IsolationTenant, []string{"cache"}
	m.Operations = []*plugin.Operation{{Name: "list", Kind: plugin.Operator, Timeout: time.Minute}}
	return filepath.Join(write(t, all), "pack"), m
}

func TestCommandOfShu(t *testing.T) {
	need(t, "python3")
	dir := t.TempDir()
	i := interpreter.New(interpreter.Options{Dir: dir})
	pack, m := notesPackage(t, nil)
	argv, err := i.Command(t.Context(), plugin.Package{Dir: pack}, m)
	if err != nil {
		t.Fatal(err)
	}
	where, err := i.SDK("python")
	if err != nil {
		t.Fatal(err)
	}
	about := `{"name":"notes_sync","version":"1.0.0","entry":"plugin.py","module":"plugins.notes.plugin","class":"NotesPlugin","capabilities":["cache"],"operations":["list"]}`
	want := []string{"-I", "-X", "pycache_prefix=" + filepath.Join(dir, "pycache"), "-S", filepath.Join(where, "shu", "_boot.py"), pack, about}
	if !slices.Equal(argv[1:], want) {
		t.Errorf("the command is %q; want %q", argv, want)
	}
	reads, err := i.Reads(t.Context(), plugin.Package{Dir: pack}, m, argv)
	if err != nil || !slices.Contains(reads, where) {
		t.Errorf("a cage does not show %s: %q, %v", where, reads, err)
	}
	m.Runner.Entry = "gone.py"
	_, err = i.Command(t.Context(), plugin.Package{Dir: pack}, m)
	is(t, err, plugin.CodeLaunchFailed, "notes_sync: ", "gone.py is not there")
}

// cached is the services of a call: a cache that holds one name.
type cached string

func (c cached) Serve(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	if method != "cache.get" {
		return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s is not there", method)
	}
	return json.Marshal(map[string]any{"found": true, "value": string(c)})
}

func TestAShuPluginAnswers(t *testing.T) {
	need(t, "python3")
	t.Parallel()
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	r := process.New(process.Options{
		Handshake: time.Minute, Host: protocol.Peer{Name: "test", Version: "0"},
		Scratch: t.TempDir(), Command: i.Command, Services: []string{"cache"},
	})
	defer r.Close()
	pack, m := notesPackage(t, nil)
	target := &plugin.Target{Manifest: m, Operation: m.Operations[0], Package: plugin.Package{Dir: pack, Digest: "sha256:1"}}
	call := &plugin.Call{ID: "c1", Tenant: "local", Operation: target.Name(), Input: []byte(`{}`), Principal: plugin.Principal{Type: "user", ID: "ada"}}
	got, err := r.Run(t.Context(), target, call, cached("Ada"))
	if want := `{"said":"hello Ada","op":"list","user":"ada"}`; string(got.Data) != want || err != nil {
		t.Errorf("it answers %s, %v; want %s", got.Data, err, want)
	}
	_, err = r.Run(t.Context(), target, &plugin.Call{ID: "c2", Tenant: "local", Operation: target.Name(), Input: []byte(`{}`)}, opener{})
	e := plugin.AsError(err)
	if e.Code != plugin.CodePluginError || e.PluginCode != "plugin_execute_error" || !strings.Contains(e.Message, "NoneType") { // a cache that is refused has nothing, and raises nothing
		t.Errorf("a refused service ends in %v (%s)", e, e.PluginCode)
	}
}

// Tests of a Shu plugin import it by the name in its manifest, and run it
// against the fake host of shu_plugin_sdk.
func TestTestsOfAShuPlugin(t *testing.T) {
	need(t, "python3")
	t.Parallel()
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	tests := `
import unittest
from plugins.notes.plugin import NotesPlugin
from shu_plugin_sdk.testing import FakeHost, run

class Case(unittest.TestCase):
    def test_it_greets(self):
        host = FakeHost(["cache"])
        run(host.cache.set("name", "Ada"))
        result = run(NotesPlugin().execute({"op": "list"}, host.context, host))
        self.assertEqual(result["data"]["said"], "hello WORD")
`
	relative := strings.ReplaceAll(tests, "from plugins.notes.plugin", "from ..plugin")
	for _, c := range []struct {
		tests, word string
		passes      bool
		more        string
	}{
		{tests, "Ada", true, "readme.txt"}, {tests, "Bob", false, "readme.txt"},
		{relative, "Ada", true, "readme.txt"}, {relative, "Ada", true, "tests/__init__.py"}, {relative, "Bob", false, "tests/__init__.py"},
	} {
		word, passes := c.word, c.passes
		pack, m := notesPackage(t, map[string]string{"tests/test_notes.py": strings.ReplaceAll(c.tests, "WORD", word), c.more: ""})
		argv, err := i.TestCommand(t.Context(), plugin.Package{Dir: pack, Dev: true}, m, "")
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
		if (err == nil) != passes || !strings.Contains(string(out), "Ran 1 test") {
			t.Errorf("%s: %v\n%s", word, err, out)
		}
	}
}
