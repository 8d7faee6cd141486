package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/service/session"
	"github.com/mortise-dev/mortise/plugin"
)

// millTree writes a tree of two Event Mill tools, of which the second uses the
// module, the class and the artifacts of the first.
func millTree(t *testing.T) (tree string) {
	t.Helper()
	tree = filepath.Join(t.TempDir(), "plugins")
	manifest := func(name, class, more string) string {
		return fmt.Sprintf(`{"tool_name":%q,"version":"1.0.0","pillar":"log_analysis","display_name":"T","description_short":"A tool.","entry_point":"tool.py","class_name":%q%s}`, name, class, more)
	}
	write(t, tree,
		"__init__.py", "", "log_analysis/__init__.py", "", "log_analysis/collect/__init__.py", "", "log_analysis/report/__init__.py", "",
		"log_analysis/collect/manifest.json", manifest("collect", "Collect", ""),
		// Its schemas fit nothing that it takes or gives: they are advice.
		"log_analysis/collect/schemas/input.schema.json", `{"type":"object","required":["nothing_has_this"]}`,
		"log_analysis/collect/schemas/output.schema.json", `{"type":"array"}`,
		"log_analysis/collect/tool.py", `
import os, sys
from framework.plugins.protocol import ToolResult, ValidationResult

FOUND = []

class Collect:
    def metadata(self):
        return {"tool_name": "collect", "version": "1.0.0"}
    def validate_inputs(self, payload):
        return ValidationResult(ok="text" in payload, errors=["text is missing"])
    def execute(self, payload, context):
        FOUND.append(payload["text"])
        sys.collected = len(FOUND)
        if payload["text"] == "die":
            os._exit(7)
        if context is None:
            return ToolResult(ok=True, result={})
        with open("found.txt", "w") as out:
            out.write(" ".join(FOUND))
        ref = context.register_artifact(artifact_type="text", file_path="found.txt", source_tool="collect", metadata={"n": len(FOUND)})
        return ToolResult(ok=True, result={"artifact": ref.artifact_id, "pillar": context.selected_pillar}, details={"n": len(FOUND)})
    def summarize_for_llm(self, result):
        return "collected"
`,
		"log_analysis/report/manifest.json", manifest("report", "Report", `,"timeout_class":"short"`),
		"log_analysis/report/tool.py", `
import sys, time
from framework.plugins.protocol import ToolResult, ValidationResult
from plugins.log_analysis.collect.tool import Collect, FOUND

class Report:
    def metadata(self):
        return {"tool_name": "report", "version": "1.0.0"}
    def validate_inputs(self, payload):
        return ValidationResult(ok=True)
    def execute(self, payload, context):
        time.sleep(payload.get("sleep", 0))
        found = list(FOUND)
        Collect().execute({"text": "nested"}, None)
        texts = sorted(open(a.file_path).read() for a in context.artifacts if a.source_tool == "collect")
        return ToolResult(ok=True, result={"found": found, "on_sys": sys.collected, "texts": texts})
    def summarize_for_llm(self, result):
        return "reported"
`)
	return tree
}

func callIn(t *testing.T, a *app.App, session, operation, input string) (plugin.Result, error) {
	t.Helper()
	return a.Kernel.Call(t.Context(), plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Session: session, Operation: operation, Input: json.RawMessage(input), Fresh: true,
	})
}

// A tree of Event Mill is installed as one package, and its tools work in one
// interpreter of their session: what one leaves in a module, on sys or as an
// artifact the next one has, and no other session. What is lost with an
// interpreter is told.
func TestATreeOfEventMillWorksInASession(t *testing.T) {
	t.Parallel()
	needPython(t)
	a := open(t, t.TempDir())
	report, err := a.Registry.Register(t.Context(), millTree(t), registry.RegisterOptions{Enable: true})
	if err != nil || len(report.Registered) != 2 || len(report.Failed) > 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	s, err := a.Sessions.Create(t.Context(), "local", session.Open{Name: "an investigation", Pillar: "log_analysis"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := a.Sessions.Create(t.Context(), "local", session.Open{Name: "another"})
	if err != nil {
		t.Fatal(err)
	}

	res, err := callIn(t, a, s.ID, "collect", `{"text":"one"}`)
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ Artifact, Pillar string }
	if err := json.Unmarshal(res.Data, &made); err != nil || made.Pillar != "log_analysis" || string(res.Details) != `{"n":1}` || res.Summary != "collected" {
		t.Errorf("%s, %s, %q, %v", res.Data, res.Details, res.Summary, err)
	}
	if kept, err := a.Sessions.Artifact(t.Context(), "local", s.ID, made.Artifact); err != nil || kept.Name != "found.txt" || kept.SourceTool != "collect" || kept.SourceCall != res.CallID {
		t.Errorf("%+v, %v", kept, err)
	}
	_, err = callIn(t, a, s.ID, "collect", `{}`)
	var refused *plugin.Error
	if !errors.As(err, &refused) || refused.PluginCode != "INPUT_VALIDATION_FAILED" || !strings.Contains(string(refused.Details), "text is missing") {
		t.Errorf("%v", err)
	}
	res, err = callIn(t, a, s.ID, "report", `{}`)
	if err != nil || string(res.Data) != `{"found":["one"],"on_sys":2,"texts":["one"]}` || res.Metrics["fresh_process"] != nil {
		t.Errorf("%s, %v, %v", res.Data, res.Metrics, err)
	}
	if res, err = callIn(t, a, other.ID, "report", `{}`); err != nil || string(res.Data) != `{"found":[],"on_sys":1,"texts":[]}` {
		t.Errorf("another session: %s, %v", res.Data, err)
	}

	_, err = callIn(t, a, s.ID, "collect", `{"text":"die"}`)
	if plugin.CodeOf(err) != plugin.CodeCrashed || !strings.HasPrefix(err.Error(), "crashed: collect: ") {
		t.Errorf("%v", err)
	}
	res, err = callIn(t, a, s.ID, "report", `{}`)
	if err != nil || string(res.Data) != `{"found":[],"on_sys":1,"texts":["one"]}` || res.Metrics["fresh_process"] != true {
		t.Errorf("after a crash: %s, %v, %v", res.Data, res.Metrics, err)
	}
	res, err = callIn(t, a, s.ID, "report", `{}`)
	if err != nil || res.Metrics["fresh_process"] != nil {
		t.Errorf("told twice: %v, %v", res.Metrics, err)
	}
}

// The time of a tool is its class's, and the host's to enforce.
func TestATimedOutToolLosesItsInterpreter(t *testing.T) {
	t.Parallel()
	needPython(t)
	a := open(t, t.TempDir())
	tree := millTree(t)
	register(t, a, filepath.Join(tree, "log_analysis", "collect"), true)
	register(t, a, filepath.Join(tree, "log_analysis", "report"), true)
	s, err := a.Sessions.Create(t.Context(), "local", session.Open{Name: "an investigation"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := callIn(t, a, s.ID, "collect", `{"text":"one"}`); err != nil {
		t.Fatal(err)
	}
	target, err := a.Registry.Resolve(t.Context(), "report")
	if err != nil || target.Operation.Timeout.Seconds() != 30 {
		t.Fatalf("%+v, %v", target, err)
	}
	_, err = a.Kernel.Call(t.Context(), plugin.Call{
		Tenant: "local", Principal: plugin.Principal{Type: "user", ID: "local:owner", Scopes: []string{"*"}}, Origin: plugin.OriginCLI,
		Session: s.ID, Operation: "report", Input: json.RawMessage(`{"sleep":3600}`), Timeout: 500e6,
	})
	if plugin.CodeOf(err) != plugin.CodeTimeout {
		t.Errorf("%v", err)
	}
	res, err := callIn(t, a, s.ID, "report", `{}`)
	if err != nil || string(res.Data) != `{"found":[],"on_sys":1,"texts":["one"]}` || res.Metrics["fresh_process"] != true {
		t.Errorf("%s, %v, %v", res.Data, res.Metrics, err)
	}
}
