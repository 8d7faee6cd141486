package interpreter_test

import (
	"context"
	"encoding/json"
	"os"
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

// mill returns the manifest of an Event Mill tool in a tree.
func mill(dir string) *plugin.Manifest {
	m := manifest(filepath.ToSlash(filepath.Join(dir, "tool.py")))
	m.Name, m.Contract, m.Dir, m.Runner.Class = "echoes", plugin.Contract{Shim: "eventmill", SharesProcess: true}, dir, "Echoes"
	return m
}

const echoes = `
from framework.plugins.protocol import ToolResult, ValidationResult
from plugins.log_analysis.other import shared

class Echoes:
    def metadata(self):
        return {"tool_name": "echoes", "version": "1.0.0"}
    def validate_inputs(self, payload):
        return ValidationResult(ok=True)
    def execute(self, payload, context):
        return ToolResult(ok=True, result={"echo": payload["text"] + shared.MARK})
    def summarize_for_llm(self, result):
        return "echoed"
`

// millTree writes a tree with one tool and a module of another.
func millTree(t *testing.T, files map[string]string) (tree string) {
	t.Helper()
	all := map[string]string{
		"plugins/log_analysis/echoes/manifest.json": `{"tool_name":"echoes","version":"1.0.0","pillar":"log_analysis","display_name":"E","description_short":"e","entry_point":"tool.py","class_name":"Echoes"}`,
		"plugins/log_analysis/echoes/tool.py":       echoes,
		"plugins/log_analysis/other/shared.py":      "MARK = '!'\n",
	}
	for name, text := range files {
		all[name] = text
	}
	return filepath.Join(write(t, all), "plugins")
}

func TestCommandOfEventMill(t *testing.T) {
	need(t, "python3")
	dir, tree := t.TempDir(), millTree(t, nil)
	i := interpreter.New(interpreter.Options{Dir: dir})
	pkg := plugin.Package{Dir: tree}
	argv, err := i.Command(t.Context(), pkg, mill("log_analysis/echoes"))
	if err != nil {
		t.Fatal(err)
	}
	where, err := i.SDK("python")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-I", "-X", "pycache_prefix=" + filepath.Join(dir, "pycache"), "-S", filepath.Join(where, "eventmill", "_boot.py"), tree}
	if !filepath.IsAbs(argv[0]) || !slices.Equal(argv[1:], want) {
		t.Errorf("the command is %q; want an absolute path and %q", argv, want)
	}
	if info, err := os.Stat(want[4]); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%s: %v", want[4], err)
	}
	reads, err := i.Reads(t.Context(), pkg, mill("log_analysis/echoes"), argv)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(reads, where) {
		t.Errorf("a cage does not show %s: %q", where, reads)
	}
	for _, path := range reads { // the neighbours of the package must stay hidden
		if path == filepath.Dir(tree) || path == "/" {
			t.Errorf("a cage shows %s", path)
		}
	}
	_, err = i.Command(t.Context(), pkg, mill("log_analysis/gone"))
	is(t, err, plugin.CodeLaunchFailed, "echoes: ", "log_analysis/gone/tool.py is not there")
}

// opener is the services of a call outside any session.
type opener struct{}

func (opener) Serve(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "session.open":
		return json.RawMessage(`{"session_id":"","pillar":"","artifacts":[],"config":{},"llm_enabled":false,"limits":{"timeout":30,"max_output_size":1048576,"max_artifact_size":1048576}}`), nil
	case "artifacts.register":
		return json.RawMessage(`{"artifact_id":"art_00000001","artifact_type":"text","file_path":"/x","storage_uri":null,"source_tool":null,"metadata":{}}`), nil
	default:
		return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s is not there", method)
	}
}

func TestAToolOfEventMillAnswers(t *testing.T) {
	need(t, "python3")
	t.Parallel()
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	r := process.New(process.Options{
		Handshake: time.Minute, Host: protocol.Peer{Name: "test", Version: "0"},
		Scratch: t.TempDir(), Command: i.Command, Services: []string{"session", "artifacts"},
	})
	defer r.Close()
	m := mill("log_analysis/echoes")
	m.Isolation, m.Capabilities = plugin.IsolationSession, []string{"artifacts", "session"}
	op := &plugin.Operation{Name: "echoes", Kind: plugin.Tool, Timeout: time.Minute}
	m.Operations = []*plugin.Operation{op}
	target := &plugin.Target{Manifest: m, Operation: op, Package: plugin.Package{Dir: millTree(t, nil), Digest: "sha256:1"}}
	got, err := r.Run(t.Context(), target, &plugin.Call{ID: "c1", Tenant: "local", Operation: target.Name(), Input: []byte(`{"text":"hey"}`)}, opener{})
	if want := `{"echo":"hey!"}`; string(got.Data) != want || got.Summary != "echoed" || err != nil {
		t.Errorf("it answers %s (%s), %v; want %s", got.Data, got.Summary, err, want)
	}
}

// The tests of a tool are written for pytest or unittest, and import the tool
// by itself or as one of its tree.
func TestTestsOfAToolOfEventMill(t *testing.T) {
	need(t, "python3")
	t.Parallel()
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	run := func(tests string) (string, error) {
		t.Helper()
		tree := millTree(t, map[string]string{"plugins/log_analysis/echoes/tests/test_contract.py": tests})
		argv, err := i.TestCommand(t.Context(), plugin.Package{Dir: tree, Dev: true}, mill("log_analysis/echoes"), "")
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = filepath.Join(tree, "log_analysis", "echoes")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	good := `
import unittest
from framework.plugins.protocol import ToolResult
from plugins.log_analysis.echoes.tool import Echoes
import tool

def test_as_a_function():
    assert Echoes().execute({"text": "a"}, None).result == {"echo": "a!"}

class Case(unittest.TestCase):
    def test_as_a_method(self):
        self.assertEqual(tool.Echoes().summarize_for_llm(None), "echoed")
`
	if out, err := run(good); err != nil || !strings.Contains(out, "2 ") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := run(good + "\ndef test_that_fails():\n    assert False\n"); err == nil {
		t.Errorf("a test that fails passes\n%s", out)
	}
	if out, err := run("x = 1\n"); err == nil {
		t.Errorf("no tests at all pass\n%s", out)
	}
	_, err := i.TestCommand(t.Context(), plugin.Package{Dir: millTree(t, nil), Dev: true}, mill("log_analysis/echoes"), "")
	is(t, err, plugin.CodeNotFound, "there is no test*.py in ", "log_analysis/echoes")
}
