package all_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/eventmill"
	"github.com/mortise-dev/mortise/plugin"
)

// toolKeys are the keys of a manifest that keeps to the contract.
func toolKeys() map[string]any {
	return map[string]any{
		"tool_name": "log_search", "version": "1.2.0", "pillar": "log_analysis", "display_name": "Log search",
		"description_short": "Find lines in a log.", "description_long": "Find the lines of a log that hold a text.", "author": "Ann",
		"entry_point": "tool.py", "class_name": "LogSearch", "artifacts_consumed": []string{"log_stream", "text"}, "artifacts_produced": []string{"json_events"},
		"capabilities": []string{"operation:search", "entity:ip"}, "input_schema": "schemas/input.schema.json", "output_schema": "schemas/output.schema.json",
		"timeout_class": "slow", "safe_for_auto_invoke": true, "stability": "core", "tags": []string{"logs"}, "cost_hint": "high",
		"requires_llm": true, "chains_to": []string{"log_report"}, "chains_from": []string{"log_fetch"},
	}
}

// toolFiles are the files of such a tool beside its manifest.
var toolFiles = []string{
	"tool.py", "class LogSearch: pass\n",
	"schemas/input.schema.json", `{"type": "object", "required": ["text"]}`,
	"schemas/output.schema.json", `{"type": "object", "properties": {"ok": {"type": "boolean"}, "result": {"$ref": "#/$defs/found"}}, "$defs": {"found": {"type": "object"}}}`,
}

// tool writes a tool into a directory called log_search of a pillar; change
// has the keys of its manifest.
func tool(t *testing.T, change func(keys map[string]any)) (dir string) {
	t.Helper()
	keys := toolKeys()
	if change != nil {
		change(keys)
	}
	raw, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	return toolOf(t, string(raw))
}

func toolOf(t *testing.T, manifest string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "plugins", "log_analysis", "log_search")
	write := append([]string{"manifest.json", manifest}, toolFiles...)
	for i := 0; i < len(write); i += 2 {
		path := filepath.Join(dir, write[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(write[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEventMillManifest(t *testing.T) {
	t.Parallel()
	reading, err := contract.Inspect(tool(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(reading.Notes) > 0 {
		t.Errorf("notes on a manifest that keeps to the contract:\n%v", reading.Notes)
	}
	want := &plugin.Manifest{
		Name: "log_search", Version: "1.2.0", DisplayName: "Log search", Owner: "Ann", Description: "Find lines in a log.",
		Dialect: eventmill.Name, Contract: plugin.Contract{Shim: "eventmill", SharesProcess: true, MaxSummary: 2000, Investigates: true, AnyRelease: true},
		Pillar: "log_analysis", Dir: "log_analysis/log_search",
		Runner:    plugin.Runner{Kind: "process", Entry: "log_analysis/log_search/tool.py", Class: "LogSearch", Protocol: "2"},
		Isolation: plugin.IsolationSession, Capabilities: []string{"artifacts", "llm", "reference_data", "session"},
		Operations: []*plugin.Operation{{
			Name: "log_search", Kind: plugin.Tool, Description: "Find the lines of a log that hold a text.", Timeout: 600 * time.Second,
			Input:  json.RawMessage(`{"type":"object","required":["text"]}`),
			Output: json.RawMessage(`{"$ref":"#/$defs/found","$defs":{"found":{"type":"object"}}}`),
			Facets: []string{"operation:search", "entity:ip"}, Tags: []string{"logs"}, Consumes: []string{"log_stream", "text"}, Produces: []string{"json_events"},
			ChainsTo: []string{"log_report"}, ChainsFrom: []string{"log_fetch"}, Stability: plugin.Core, Cost: "high",
			AutoInvoke: true, NeedsModel: true, Advisory: true,
		}},
	}
	if !reflect.DeepEqual(reading.Manifest, want) {
		got, _ := json.Marshal(reading.Manifest)
		wanted, _ := json.Marshal(want)
		t.Errorf("got  %s\nwant %s", got, wanted)
	}
	if contract.NeedsDescribe(reading.Manifest) {
		t.Error("the code of a tool is asked what it does")
	}
}

// What is required in practice is enough; the rest has defaults.
func TestEventMillManifestHasDefaults(t *testing.T) {
	t.Parallel()
	dir := tool(t, func(keys map[string]any) {
		for _, key := range slices.Collect(maps.Keys(keys)) {
			if !slices.Contains([]string{"tool_name", "version", "pillar", "display_name", "description_short", "entry_point", "class_name"}, key) {
				delete(keys, key)
			}
		}
	})
	reading, err := contract.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	op := reading.Manifest.Operations[0]
	if op.Timeout != 120*time.Second || op.Cost != "low" || op.AutoInvoke || op.NeedsModel || op.Stability != plugin.Experimental || op.Description != "Find lines in a log." {
		t.Errorf("%+v", op)
	}
	if len(op.Input) == 0 || len(op.Output) == 0 {
		t.Error("the schemas at their usual places are not read")
	}
	if got := places(reading.Notes); got != "/artifacts_consumed /artifacts_produced /author /capabilities /description_long /input_schema /output_schema /safe_for_auto_invoke /stability /tags /timeout_class" {
		t.Errorf("notes at %s", got)
	}
}

// places are where problems are, each once.
func places(ps contract.Problems) string {
	var at []string
	for _, p := range ps {
		at = append(at, p.Pointer)
	}
	return strings.Join(slices.Compact(at), " ")
}

// Published manifests depart from the contract; all of these load.
func TestPublishedDeparturesAreNotes(t *testing.T) {
	t.Parallel()
	set := func(key string, value any) func(map[string]any) {
		return func(keys map[string]any) { keys[key] = value }
	}
	timeout := func(want time.Duration) func(*plugin.Operation) bool {
		return func(op *plugin.Operation) bool { return op.Timeout == want }
	}
	for _, c := range []struct {
		name   string
		change func(keys map[string]any)
		at     string // pointer of the note
		row    string
		holds  func(op *plugin.Operation) bool
	}{
		{"an extra key", set("model_tier", "heavy"), "/model_tier", "EM-04", nil},
		{"description_llm", func(keys map[string]any) {
			delete(keys, "description_long")
			keys["description_llm"] = "for a model"
		}, "/description_llm /description_long", "EM-04", func(op *plugin.Operation) bool { return op.Description == "for a model" }},
		{"stability stable", set("stability", "stable"), "/stability", "EM-07", func(op *plugin.Operation) bool { return op.Stability == plugin.Verified }},
		{"an unknown stability", set("stability", "beta"), "/stability", "EM-07", func(op *plugin.Operation) bool { return op.Stability == plugin.Experimental }},
		{"timeout_class short", set("timeout_class", "short"), "/timeout_class", "EM-19", timeout(30 * time.Second)},
		{"timeout_class long", set("timeout_class", "long"), "/timeout_class", "EM-19", timeout(600 * time.Second)},
		{"an unknown timeout_class", set("timeout_class", "glacial"), "/timeout_class", "EM-19", timeout(120 * time.Second)},
		{"cost_hint medium", set("cost_hint", "medium"), "/cost_hint", "EM-19", func(op *plugin.Operation) bool { return op.Cost == "moderate" }},
		{"an unknown type of artifact", set("artifacts_produced", []string{"markdown", "pdf"}), "/artifacts_produced/0 /artifacts_produced/1", "EM-06",
			func(op *plugin.Operation) bool { return slices.Equal(op.Produces, []string{"markdown", "pdf"}) }},
		{"no type of artifact", set("artifacts_consumed", []string{}), "/artifacts_consumed", "EM-06", nil},
		{"none beside another type", set("artifacts_consumed", []string{"pcap", "none"}), "/artifacts_consumed/1", "EM-06", nil},
		{"a namespace with an underscore", set("capabilities", []string{"entity:ip", "data_source:dns"}), "/capabilities/1", "EM-05",
			func(op *plugin.Operation) bool {
				return slices.Equal(op.Facets, []string{"entity:ip", "data_source:dns"})
			}},
		{"a namespace of its own", set("capabilities", []string{"colour:red"}), "/capabilities/0", "EM-05", nil},
		{"a long short description", set("description_short", strings.Repeat("é", 241)), "/description_short", "EM-04", nil},
		{"a short version", set("version", "1.2"), "/version", "EM-23", nil},
		{"text for a truth", set("safe_for_auto_invoke", "true"), "/safe_for_auto_invoke", "EM-20", func(op *plugin.Operation) bool { return !op.AutoInvoke }},
		{"text for a list", set("tags", "logs"), "/tags", "EM-04", nil},
		{"hidden characters", set("description_long", "do\u202eit"), "/description_long", "EM-04", func(op *plugin.Operation) bool { return op.Description == "doit" }},
		{"a schema that is not there", set("input_schema", "schemas/other.json"), "/input_schema", "EM-17", func(op *plugin.Operation) bool { return op.Input == nil }},
		{"a schema that does not compile", set("output_schema", map[string]any{"type": "objekt"}), "/output_schema", "EM-17", func(op *plugin.Operation) bool { return op.Output == nil }},
		{"another directory", set("tool_name", "log_find"), "/tool_name", "EM-02", nil},
	} {
		dir := tool(t, c.change)
		reading, err := contract.Inspect(dir)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := places(reading.Notes); got != c.at {
			t.Errorf("%s: notes at %q, want %q", c.name, got, c.at)
		}
		for _, note := range reading.Notes {
			if note.Row != c.row {
				t.Errorf("%s: %s is of row %q, want %s", c.name, note, note.Row, c.row)
			}
		}
		if c.holds != nil && !c.holds(reading.Manifest.Operations[0]) {
			t.Errorf("%s: read as %+v", c.name, reading.Manifest.Operations[0])
		}
		refused, tolerated, err := eventmill.Strict(dir, "")
		if err != nil || len(refused) > 0 || !slices.Equal(tolerated, reading.Notes) {
			t.Errorf("%s: strictly %v, %v, %v", c.name, refused, tolerated, err)
		}
	}
}

func TestWhatNoEventMillManifestMayBe(t *testing.T) {
	t.Parallel()
	whole := func() string { raw, _ := json.Marshal(toolKeys()); return string(raw) }()
	with := func(old, new string) string { return strings.Replace(whole, old, new, 1) }
	for _, c := range []struct{ name, manifest, want string }{
		{"no JSON", `{"tool_name": `, "manifest.json: at /tool_name: it ends too early"},
		{"two objects", whole + "{}", "manifest.json: "},
		{"a key twice", with(`"author"`, `"tool_name":"b","author"`), "manifest.json: at /tool_name: "},
		{"too long", with(`"Ann"`, `"`+strings.Repeat("a", 1<<20)+`"`), "manifest.json: it is longer than 1048576 bytes"},
		{"no class", with(`"class_name":"LogSearch",`, ""), "manifest.json: at /class_name: it is missing"},
		{"no name of a class", with(`"LogSearch"`, `"os.system"`), `manifest.json: at /class_name: "os.system" is no name of a Python class`},
		{"a name in capitals", with(`"log_search"`, `"LogSearch"`), `manifest.json: at /tool_name: "LogSearch" is no name here`},
		{"another pillar", with(`"log_analysis"`, `"threat_modeling"`), "manifest.json: at /pillar: it stands in the directory of the pillar log_analysis"},
		{"no version at all", with(`"1.2.0"`, `"new"`), `manifest.json: at /version: "new" is no semantic version`},
		{"an entry that is not there", with(`"tool.py"`, `"main.py"`), "manifest.json: at /entry_point: main.py: no such file"},
		{"an entry outside", with(`"tool.py"`, `"../tool.py"`), "manifest.json: at /entry_point: ../tool.py: a path inside the package belongs here"},
		{"an entry that is a link", with(`"tool.py"`, `"link.py"`), "manifest.json: at /entry_point: link.py: symbolic links are not followed"},
		{"an entry that is no Python", with(`"tool.py"`, `"schemas/input.schema.json"`), "manifest.json: at /entry_point: schemas/input.schema.json is no Python file"},
	} {
		dir := toolOf(t, c.manifest)
		if err := os.Symlink("tool.py", filepath.Join(dir, "link.py")); err != nil {
			t.Fatal(err)
		}
		_, err := contract.Read(dir)
		var problems contract.Problems
		if !errors.As(err, &problems) || len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		refused, _, err := eventmill.Strict(dir, "")
		if err != nil || !slices.Equal(refused, problems) {
			t.Errorf("%s: strictly %v, %v", c.name, refused, err)
		}
	}
	// All that is wrong is said at once, what would be tolerated as well.
	refused, tolerated, err := eventmill.Strict(toolOf(t, `{"tool_name": "x", "model_tier": 1}`), "")
	if err != nil || places(refused) != "/class_name /description_short /display_name /entry_point /pillar /version" || !strings.Contains(places(tolerated), "/model_tier") {
		t.Errorf("%v, %v, %v", refused, tolerated, err)
	}
	if _, _, err := eventmill.Strict(dir(t, "manifest.yaml", native, "plugin.py", "", "schemas/send.json", "{}"), ""); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("a manifest of another contract: %v", err)
	}
}

func TestTreeOfATool(t *testing.T) {
	t.Parallel()
	known := tool(t, nil)
	top := filepath.Dir(filepath.Dir(known))
	own := filepath.Join(top, "my_pillar", "log_search")
	alone := filepath.Join(t.TempDir(), "somewhere", "log_search")
	raw, _ := os.ReadFile(filepath.Join(known, "manifest.json"))
	for dir, manifest := range map[string]string{own: strings.NewReplacer(`"log_analysis"`, `"my_pillar"`, `"log_search"`, `"my_search"`).Replace(string(raw)), alone: string(raw)} {
		if err := os.CopyFS(dir, os.DirFS(known)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hidden := filepath.Join(top, "log_analysis", "_draft")
	if err := os.CopyFS(hidden, os.DirFS(known)); err != nil {
		t.Fatal(err)
	}
	plain := dir(t, "log_analysis/p/manifest.yaml", "name: p\nversion: 1.0.0\noperations: {x: {}}\n", "log_analysis/p/plugin.py", "") + "/log_analysis/p"
	for _, c := range []struct{ name, dir, tree, place string }{
		{"a known pillar", known, top, "log_analysis/log_search"},
		{"the pillar that the manifest names", own, top, "my_pillar/log_search"},
		{"no pillar above", alone, alone, ""},
		{"a directory that no tree counts", hidden, hidden, ""},
		{"a plugin of another contract", plain, plain, ""},
	} {
		tree, place := contract.Tree(c.dir)
		if tree != c.tree || place != c.place {
			t.Errorf("%s: %s, %s", c.name, tree, place)
		}
		m, err := contract.ReadIn(tree, place)
		if err != nil || m.Dir != c.place || !strings.HasPrefix(m.Runner.Entry, c.place) {
			t.Errorf("%s: %+v, %v", c.name, m, err)
		}
	}
	// Of two tools of one name, the last in the order of their directories has it.
	twin := filepath.Join(top, "log_analysis", "log_search_2")
	if err := os.CopyFS(twin, os.DirFS(known)); err != nil {
		t.Fatal(err)
	}
	refused, _, err := eventmill.Strict(known, "")
	if err != nil || len(refused) != 1 || refused[0].Row != "EM-03" || !strings.Contains(refused[0].String(), "/tool_name: the tool in log_analysis/log_search_2 of the same tree is called so too") {
		t.Errorf("%v, %v", refused, err)
	}
	if _, err := contract.Read(twin); err != nil {
		t.Error(err)
	}
	if _, err := contract.ReadIn(top, "../elsewhere"); err == nil {
		t.Error("a place outside the package is read")
	}
}
