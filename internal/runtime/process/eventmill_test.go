package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// Two tools of one tree: the second uses what the first left in its module, on
// sys and as an artifact, and the class of the first itself.
var mill = map[string]string{
	"__init__.py":              "",
	"log_analysis/__init__.py": "",
	"log_analysis/collect/tool.py": `
import os, sys, time
from framework.plugins.protocol import ToolResult, ValidationResult

FOUND = []

class Collect:
    def metadata(self):
        return {"tool_name": "collect", "version": "1.0.0"}
    def validate_inputs(self, payload):
        return ValidationResult(ok="text" in payload, errors=[] if "text" in payload else ["text is missing"])
    def execute(self, payload, context):
        if "sleep" in payload:
            print("it sleeps", file=sys.stderr, flush=True)
            time.sleep(payload["sleep"])
        FOUND.append(payload["text"])
        sys.collected = len(FOUND)
        if context is not None:
            path = os.path.join("workspace", "artifacts", "found.txt")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as out:
                out.write("\n".join(FOUND))
            context.register_artifact(artifact_type="text", file_path=path, source_tool="collect", metadata={"n": len(FOUND)})
        return ToolResult(ok=True, result={"n": len(FOUND)}, message="collected")
    def summarize_for_llm(self, result):
        return "collected %d" % result.result["n"]
`,
	"log_analysis/report/tool.py": `
import sys
from framework.plugins.protocol import ToolResult, ValidationResult
from plugins.log_analysis.collect import tool as collect

class Report:
    def metadata(self):
        return {"tool_name": "report", "version": "1.0.0"}
    def validate_inputs(self, payload):
        return ValidationResult(ok=True)
    def execute(self, payload, context):
        found = list(collect.FOUND)
        if "more" in payload:
            collect.Collect().execute({"text": payload["more"]}, None)
        texts = {a.artifact_id: open(a.file_path).read() for a in context.artifacts}
        return ToolResult(ok=True, result={"found": found, "on_sys": getattr(sys, "collected", 0), "texts": texts})
    def summarize_for_llm(self, result):
        return ""
`,
}

// A desk is the services of one session: the least that tools ask for. What
// they register is copied into the session's view.
type desk struct {
	session, view string
	scratch       fs.FS
	dir           string

	mu        *sync.Mutex
	artifacts *[]map[string]any
}

func (d *desk) Attach(scratch fs.FS, dir string) { d.scratch, d.dir = scratch, dir }

func (d *desk) Serve(_ context.Context, method string, args json.RawMessage) (json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch method {
	case "session.open":
		return json.Marshal(map[string]any{
			"session_id": d.session, "pillar": "log_analysis", "artifacts": *d.artifacts, "config": map[string]any{}, "llm_enabled": false,
			"limits": map[string]any{"timeout": 30, "max_output_size": 1 << 20, "max_artifact_size": 1 << 20},
		})
	case "artifacts.register":
		var in struct {
			FilePath string `json:"file_path"`
		}
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(strings.TrimPrefix(in.FilePath, d.dir), "/")
		text, err := fs.ReadFile(d.scratch, path.Clean(name))
		if err != nil {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", in.FilePath, err)
		}
		id := fmt.Sprintf("art_%08x", len(*d.artifacts)+1)
		place := filepath.Join(d.view, id, path.Base(name))
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(place, text, 0o644); err != nil {
			return nil, err
		}
		ref := map[string]any{"artifact_id": id, "artifact_type": "text", "file_path": place, "storage_uri": nil, "source_tool": nil, "metadata": map[string]any{}}
		*d.artifacts = append(*d.artifacts, ref)
		return json.Marshal(ref)
	default:
		return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s is not there", method)
	}
}

// A floor is a runner with the tools of the mill, for several sessions.
type floor struct {
	*process.Runner
	t     *testing.T
	tree  string
	views string
	mu    sync.Mutex
	files map[string]*[]map[string]any // artifacts by session
	log   lockedBuffer
}

func openFloor(t *testing.T) *floor {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs python3: install it")
	}
	f := &floor{t: t, tree: filepath.Join(t.TempDir(), "plugins"), views: t.TempDir(), files: map[string]*[]map[string]any{}}
	files := map[string]string{}
	for name, text := range mill {
		files[name] = text
	}
	for name, class := range map[string]string{"collect": "Collect", "report": "Report"} {
		files["log_analysis/"+name+"/manifest.json"] = fmt.Sprintf(`{"tool_name":%q,"version":"1.0.0","pillar":"log_analysis","display_name":"T","description_short":"t","entry_point":"tool.py","class_name":%q}`, name, class)
		files["log_analysis/"+name+"/__init__.py"] = ""
	}
	for name, text := range files {
		place := filepath.Join(f.tree, name)
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(place, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	box := cage(t)
	known := interpreter.New(interpreter.Options{Dir: t.TempDir(), Caged: func() bool { return box.Report().Level != sandbox.None }})
	f.Runner = process.New(process.Options{
		Handshake: time.Minute, // two cores start many interpreters at a time
		Scratch:   t.TempDir(), Command: known.Command, Reads: known.Reads, Sandbox: box, Hide: []string{f.views},
		Services: []string{"session", "artifacts", "reference_data", "llm"},
		View: func(_ context.Context, _, session string) (string, error) {
			dir := filepath.Join(f.views, session)
			return dir, os.MkdirAll(dir, 0o755)
		},
		Log: slog.New(slog.NewJSONHandler(&f.log, nil)),
	})
	f.Runner.BePatient(time.Minute)
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// run calls a tool of the tree in a session.
func (f *floor) run(ctx context.Context, session, tool, input string) (plugin.Result, error) {
	f.t.Helper()
	tree, place := contract.Tree(filepath.Join(f.tree, "log_analysis", tool))
	m, err := contract.ReadIn(tree, place)
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	if f.files[session] == nil {
		f.files[session] = &[]map[string]any{}
	}
	d := &desk{session: session, view: filepath.Join(f.views, session), mu: &f.mu, artifacts: f.files[session]}
	f.mu.Unlock()
	target := &plugin.Target{Manifest: m, Operation: m.Operations[0], Package: plugin.Package{Digest: "sha256:mill", Dir: tree}}
	c := call(input)
	c.Session, c.Operation = session, target.Name()
	return f.Run(ctx, target, c, d)
}

// ask is run for a call that must succeed.
func (f *floor) ask(session, tool, input string) plugin.Result {
	f.t.Helper()
	res, err := f.run(f.t.Context(), session, tool, input)
	if err != nil {
		f.t.Fatalf("%s in session %s: %v", tool, session, err)
	}
	return res
}

// The tools of a tree work in one interpreter of their session: they share
// modules, sys and artifacts. Another session shares none of it.
func TestToolsOfATreeShareTheirSession(t *testing.T) {
	t.Parallel()
	f := openFloor(t)
	res := f.ask("sess_a", "collect", `{"text":"one"}`)
	if string(res.Data) != `{"n":1}` || res.Message != "collected" || res.Summary != "collected 1" {
		t.Errorf("%s, %q, %q", res.Data, res.Message, res.Summary)
	}
	_, err := f.run(t.Context(), "sess_a", "collect", `{}`)
	var refused *plugin.Error
	if refused = plugin.AsError(err); refused.PluginCode != "INPUT_VALIDATION_FAILED" {
		t.Errorf("%v", err)
	}
	res = f.ask("sess_a", "report", `{"more":"two"}`)
	if string(res.Data) != `{"found":["one"],"on_sys":2,"texts":{"art_00000001":"one"}}` || res.Summary != "" { // an empty summary is one, too
		t.Errorf("%s, %q", res.Data, res.Summary)
	}
	res = f.ask("sess_a", "report", `{}`)
	var got struct {
		Found []string
		OnSys int `json:"on_sys"`
	}
	if err := json.Unmarshal(res.Data, &got); err != nil || strings.Join(got.Found, " ") != "one two" || got.OnSys != 2 {
		t.Errorf("%s, %v", res.Data, err)
	}
	if res := f.ask("sess_b", "report", `{}`); string(res.Data) != `{"found":[],"on_sys":0,"texts":{}}` {
		t.Errorf("another session has %s", res.Data)
	}
}

// A tool that takes too long is ended with its interpreter. The next one has
// another, says so, and still has what was registered.
func TestAToolThatTakesTooLongEndsItsInterpreter(t *testing.T) {
	t.Parallel()
	f := openFloor(t)
	f.ask("sess_a", "collect", `{"text":"one"}`)
	ctx, expire := expiring(t)
	f.log.when(t, "it sleeps", expire)
	_, err := f.run(ctx, "sess_a", "collect", `{"text":"two","sleep":3600}`)
	wantCode(t, err, plugin.CodeTimeout)
	res := f.ask("sess_a", "report", `{}`)
	if string(res.Data) != `{"found":[],"on_sys":0,"texts":{"art_00000001":"one"}}` || res.Metrics["fresh_process"] != true {
		t.Errorf("%s, %v", res.Data, res.Metrics)
	}
	if res := f.ask("sess_a", "report", `{}`); res.Metrics["fresh_process"] != nil {
		t.Errorf("told twice: %v", res.Metrics)
	}
}
