package check_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract/eventmill"
	"github.com/mortise-dev/mortise/internal/catalog/router"
	"github.com/mortise-dev/mortise/internal/surface/check"
)

// A brokenCopy of the good tool departs from its contract in one place. The
// check turns to the outcome and names the row and the place.
type brokenCopy struct {
	name    string // of the copy
	change  func(t *testing.T, dir string)
	check   string
	outcome check.Outcome
	row     string
	detail  string // begins with it
}

// replaced returns what changes a text in a file of a copy.
func replaced(file, old, new string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(file))
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(raw, []byte(old)) {
			t.Fatalf("%s has no %q", file, old)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(raw, []byte(old), []byte(new)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// member returns what sets a member of the copy's manifest; nil takes it out.
func member(key string, value any) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		path := filepath.Join(dir, "manifest.json")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if m[key] = value; value == nil {
			delete(m, key)
		}
		if raw, err = json.Marshal(m); err == nil {
			err = os.WriteFile(path, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func removed(file string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, filepath.FromSlash(file))); err != nil {
			t.Fatal(err)
		}
	}
}

func both(first, second func(*testing.T, string)) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		first(t, dir)
		second(t, dir)
	}
}

func list(words ...any) []any { return append([]any{}, words...) }

// brokenCopies are at least one for each check.
var brokenCopies = []brokenCopy{
	{"no_readme", removed("README.md"), "layout", check.Fail, "EM-01", "README.md: there is no such file"},
	{"no_input_schema", removed("schemas/input.schema.json"), "layout", check.Fail, "EM-01", "schemas/input.schema.json: "},
	{"no_test", removed("tests/test_contract.py"), "layout", check.Fail, "EM-01", "tests/test_contract.py: "},
	{"no_request", removed("examples/request.example.json"), "layout", check.Fail, "EM-01", "examples/request.example.json: "},

	{"unknown_key", member("colour", "red"), "manifest", check.Fail, "EM-04", "manifest.json: at /colour: "},
	{"no_author", member("author", nil), "manifest", check.Fail, "EM-04", "manifest.json: at /author: "},
	{"no_version", member("version", nil), "manifest", check.Fail, "EM-04", "manifest.json: at /version: "},
	{"wordy", member("description_short", strings.Repeat("long ", 60)), "manifest", check.Fail, "EM-04", "manifest.json: at /description_short: "},
	{"odd_name", member("tool_name", "Odd-Name"), "manifest", check.Fail, "EM-03", "manifest.json: at /tool_name: "},
	{"odd_stability", member("stability", "perfect"), "manifest", check.Fail, "EM-07", "manifest.json: at /stability: "},
	{"odd_timeout", member("timeout_class", "eternal"), "manifest", check.Fail, "EM-19", "manifest.json: at /timeout_class: "},
	{"odd_version", member("version", "one"), "manifest", check.Fail, "EM-23", "manifest.json: at /version: "},
	{"other_pillar", member("pillar", "risk_assessment"), "pillar", check.Fail, "EM-02", "manifest.json: at /pillar: "},
	{"odd_capability", member("capabilities", list("searches")), "capabilities", check.Fail, "EM-05", "manifest.json: at /capabilities/0: "},
	{"odd_namespace", member("capabilities", list("colour:red")), "capabilities", check.Fail, "EM-05", "manifest.json: at /capabilities/0: "},
	{"other_artifact", member("capabilities", list("artifact:pcap")), "capabilities", check.Warn, "EM-05", "manifest.json: at /capabilities/0: pcap is neither"},
	{"odd_artifact", member("artifacts_consumed", list("scroll")), "artifacts", check.Fail, "EM-06", "manifest.json: at /artifacts_consumed/0: "},
	{"none_and_more", member("artifacts_produced", list("none", "json_events")), "artifacts", check.Fail, "EM-06", "manifest.json: at /artifacts_produced/0: "},
	{"makes_nothing", member("artifacts_produced", list("none")), "artifacts", check.Warn, "EM-06", "manifest.json: at /artifacts_produced: the code calls"},
	{"registers_nothing", replaced("tool.py", "context.register_artifact(", "print("), "artifacts", check.Warn, "EM-06", "manifest.json: at /artifacts_produced: tool.py calls no"},
	{"reads_nothing", member("artifacts_consumed", list("none")), "artifacts", check.Warn, "EM-06", "manifest.json: at /artifacts_consumed: "},

	{"other_draft", replaced("schemas/input.schema.json", "2020-12", "2019-09"), "schemas", check.Fail, "EM-17", "schemas/input.schema.json: "},
	{"no_draft", replaced("schemas/output.schema.json", `"$schema": "https://json-schema.org/draft/2020-12/schema",`, ""), "schemas", check.Fail, "EM-17", "schemas/output.schema.json: at /$schema: it is missing"},
	{"undescribed", replaced("schemas/input.schema.json", "The log whose lines are counted.", ""), "schemas", check.Fail, "EM-17", "schemas/input.schema.json: at /properties/artifact_id: "},
	{"undescribed_within", replaced("schemas/output.schema.json", `, "description": "How many lines the log has."`, ""), "schemas", check.Fail, "EM-17", "schemas/output.schema.json: at /properties/result/properties/lines: "},
	{"unlisted", replaced("schemas/input.schema.json", `["artifact_id"]`, `["artifact_id", "depth"]`), "schemas", check.Fail, "EM-17", "schemas/input.schema.json: at /required/1: "},
	{"no_envelope", replaced("schemas/output.schema.json", `"error_code"`, `"fault"`), "schemas", check.Fail, "EM-17", "schemas/output.schema.json: at /properties/error_code: "},
	{"odd_example", replaced("examples/request.example.json", "artifact_id", "artefact"), "examples", check.Fail, "EM-17", "examples/request.example.json: "},
	{"odd_answer", replaced("examples/response.example.json", "1204", `"many"`), "examples", check.Fail, "EM-17", "examples/response.example.json: "},

	{"unread", replaced("manifest.json", `"LineCounter",`, `"LineCounter", "class": 1,`), "contract test 1: ", check.Fail, "EM-21", "manifest.json: at /class: "},
	{"no_schema", replaced("schemas/output.schema.json", `"boolean"`, `"truth"`), "contract test 2: ", check.Fail, "EM-21", "schemas/output.schema.json: "},
	{"no_import", replaced("tool.py", "import json", "import no_such_module_at_all"), "contract test 3: ", check.Fail, "EM-21", "manifest.json: at /entry_point: "},
	{"syntax", replaced("tool.py", "class LineCounter:", "class LineCounter"), "contract test 3: ", check.Fail, "EM-21", "manifest.json: at /entry_point: "},
	{"exiting", replaced("tool.py", "import json\n", "import json, os\n\nos._exit(3)\n"), "contract test 3: ", check.Fail, "EM-21", "crashed: exiting: its contract tests ended without a word (exit status 3)"},
	{"no_class", replaced("tool.py", "class LineCounter:", "class Counter2:"), "contract test 4: ", check.Fail, "EM-21", "manifest.json: at /class_name: "},
	{"raising", replaced("tool.py", "    def metadata", "    def __init__(self):\n        raise OSError(5)\n\n    def metadata"), "contract test 4: ", check.Fail, "EM-21", "manifest.json: at /class_name: "},
	{"refuses_all", replaced("tool.py", "return ValidationResult(ok=True)", "return ValidationResult(ok=False, errors=['no'])"), "contract test 5: ", check.Fail, "EM-21", "examples/request.example.json: "},
	{"accepts_all", replaced("tool.py", "ok=False, errors=[", "ok=True, errors=["), "contract test 6: ", check.Fail, "EM-21", "examples/request.example.json: "},
	{"misfit", replaced("examples/request.example.json", `{"`, `{"more": 1, "`), "contract test 7: ", check.Fail, "EM-21", "examples/request.example.json: "},
	{"misfit_answer", replaced("examples/response.example.json", `"ok": true`, `"ok": "yes"`), "contract test 8: ", check.Fail, "EM-21", "examples/response.example.json: "},
	{"silent", replaced("tool.py", `return f"{counted`, `return "" and f"{counted`), "contract test 9: ", check.Fail, "EM-21", "examples/response.example.json: "},
	{"talkative", replaced("tool.py", `return f"{counted`, `return "word " * 500 + f"{counted`), "contract test 9: ", check.Fail, "EM-21", "examples/response.example.json: "},
	{"anonymous", replaced("tool.py", `return {"tool_name":`, `return {"name":`), "contract test 10: ", check.Fail, "EM-21", "manifest.json: at /tool_name: "},

	{"long_summary", replaced("tool.py", `return f"{counted`, `return "word " * 500 + f"{counted`), "summary", check.Fail, "EM-10", "summarize_for_llm: it has 25"},
	{"repeating", replaced("tool.py", `return f"{counted`, `return json.dumps(counted) + f"{counted`), "summary", check.Fail, "EM-10", "summarize_for_llm: it repeats"},
	{"no_test_within", replaced("tests/test_contract.py", "def test_", "def look_"), "tests", check.Fail, "EM-21", "tests/test_contract.py: "},
	{"own_client", replaced("tool.py", "        levels = context", "        import openai\n        levels = context"), "requires_llm", check.Fail, "EM-16", "the code imports openai"},
	{"undeclared_model", both(member("requires_llm", false), replaced("tool.py", "context.llm_query is not None", "True")), "requires_llm", check.Warn, "EM-24", "manifest.json: at /requires_llm: the code uses"},
	{"unused_model", both(replaced("tool.py", "context.llm_query", "context.model"), replaced("tool.py", "query_text", "ask")), "requires_llm", check.Warn, "EM-24", "manifest.json: at /requires_llm: it says true"},
	{"undocumented", member("reference_data_overrides", nil), "overrides", check.Fail, "EM-24", "manifest.json: at /reference_data_overrides: "},
	{"no_data", removed("data/log_levels.json"), "overrides", check.Fail, "EM-24", "manifest.json: at /reference_data_overrides: it names log_levels"},
	{"unexplained", replaced("README.md", "`log_levels`", "The levels"), "overrides", check.Fail, "EM-24", "README.md: it does not say what the override log_levels"},
	{"empty_section", replaced("README.md", "1204 lines: 31 ERROR, 118 WARN.", ""), "README", check.Fail, "EM-22", `README.md: nothing stands in its section "sample summary"`},
}

// sectionCopies are one for each section that a README has.
func sectionCopies() []brokenCopy {
	var copies []brokenCopy
	for i, c := range [][2]string{
		{"Purpose", "purpose"}, {"Artifact types", "artifact types"}, {"LLM status", "LLM status"}, {"Example request", "example request"}, {"Example response", "example response"},
		{"Sample summary", "sample summary"}, {"Limitations", "limitations"}, {"Safety notes", "safety notes"}, {"Dependencies", "dependencies"}, {"Reference data overrides", "reference data overrides"},
	} {
		copies = append(copies, brokenCopy{
			fmt.Sprintf("section_%d", i), replaced("README.md", "## "+c[0]+"\n", ""), "README", check.Fail, "EM-22", fmt.Sprintf("README.md: it has no section %q", c[1]),
		})
	}
	return copies
}

// harmless are departures that are none: nothing turns.
var harmless = []brokenCopy{
	{name: "model_if_there", change: member("requires_llm", false)},
	{name: "model_by_name", change: both(member("requires_llm", false), replaced("tool.py", "if context.llm_query is not None", `if getattr(context, "llm_enabled", False)`))},
	{name: "bold_headings", change: func(t *testing.T, dir string) {
		replaced("README.md", "## Purpose", "**Purpose**")(t, dir)
		replaced("README.md", "## Example request\n", "## Example request and response\n")(t, dir)
		replaced("README.md", "## Example response\n", "")(t, dir)
	}},
	{name: "only_spoken_of", change: replaced("tool.py", "        levels = context", "        # import openai, and context.model\n        levels = context")},
	{name: "referred", change: both(replaced("schemas/input.schema.json", `"type": "string", "minLength": 1, "description": "The log whose lines are counted."`, `"$ref": "#/$defs/id"`),
		replaced("schemas/input.schema.json", `"required"`, `"$defs": {"id": {"type": "string", "minLength": 1, "description": "A log."}}, "required"`))},
	{name: "own_extension", change: both(member("reference_data_overrides", list(map[string]any{"key": "log_levels", "why": "fewer"})), member("license", "MIT"))},
}

// TestEventMillWhatIsAllowedFailsNothing: nor is there a warning.
func TestEventMillWhatIsAllowedFailsNothing(t *testing.T) {
	t.Parallel()
	report := mill(t, harmless, check.Options{})
	for _, c := range harmless {
		results := of(report, c.name)
		if len(results) < 20 {
			t.Errorf("%s has %d results", c.name, len(results))
		}
		if text := shownAs(results); text != "" {
			t.Errorf("%s:\n%s", c.name, text)
		}
	}
}

// published are departures that published tools have: the host runs them, and
// the check warns.
var published = []brokenCopy{
	{"model_tier", member("model_tier", "light"), "manifest", check.Warn, "EM-04", "manifest.json: at /model_tier: "},
	{"for_models", replaced("manifest.json", `"description_long"`, `"description_llm"`), "manifest", check.Warn, "EM-04", "manifest.json: at /description_l"},
	{"stable", member("stability", "stable"), "manifest", check.Warn, "EM-07", "manifest.json: at /stability: "},
	{"short", member("timeout_class", "short"), "manifest", check.Warn, "EM-19", "manifest.json: at /timeout_class: "},
	{"medium_cost", member("cost_hint", "medium"), "manifest", check.Warn, "EM-19", "manifest.json: at /cost_hint: "},
	{"no_class_of_time", member("timeout_class", nil), "manifest", check.Warn, "EM-04", "manifest.json: at /timeout_class: "},
	{"underscores", member("capabilities", list("log_format:syslog")), "capabilities", check.Warn, "EM-05", "manifest.json: at /capabilities/0: "},
	{"log_file", member("artifacts_consumed", list("log_file")), "artifacts", check.Warn, "EM-06", "manifest.json: at /artifacts_consumed/0: "},
	{"no_types", member("artifacts_produced", list()), "artifacts", check.Warn, "EM-06", "manifest.json: at /artifacts_produced: "},
}

// goodTool is a package that keeps its contract.
const goodTool = "line_counter"

// mill writes a tree with the good tool and the copies, and checks it.
func mill(t *testing.T, copies []brokenCopy, o check.Options) check.Report {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "plugins")
	good := filepath.Join(tree, "log_analysis", goodTool)
	if err := os.CopyFS(good, os.DirFS(filepath.Join("testdata", "eventmill", goodTool))); err != nil {
		t.Fatal(err)
	}
	for _, c := range copies {
		dir := filepath.Join(tree, "log_analysis", c.name)
		if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"manifest.json", "tool.py"} {
			replaced(file, goodTool, c.name)(t, dir)
		}
		c.change(t, dir)
	}
	report, err := check.Run(t.Context(), tree, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// of returns the results of a tool, which a report calls by its name, or by its
// path where it is refused.
func of(report check.Report, name string) []check.Result {
	return slices.DeleteFunc(slices.Clone(report.Results), func(r check.Result) bool { return filepath.Base(r.Plugin) != name })
}

// TestEventMillEachBrokenCopyIsNamed: each departure from the contract turns
// its check red, with the row and the place, and each check can turn.
func TestEventMillEachBrokenCopyIsNamed(t *testing.T) {
	t.Parallel()
	copies := append(slices.Clone(brokenCopies), sectionCopies()...)
	report := mill(t, copies, check.Options{})
	turned := map[string]bool{}
	for _, c := range copies {
		results := of(report, c.name)
		if !slices.ContainsFunc(results, func(r check.Result) bool {
			return strings.HasPrefix(r.Check, c.check) && r.Outcome == c.outcome && r.Row == c.row && strings.HasPrefix(r.Detail, c.detail)
		}) {
			t.Errorf("%s: no %s of %q (%s) that begins with %q:\n%s", c.name, c.outcome, c.check, c.row, c.detail, shownAs(results))
		}
		for _, r := range results {
			if r.Outcome == check.Fail || r.Outcome == check.Warn {
				turned[r.Check] = true
			}
			if r.Row == "" {
				t.Errorf("%s: %s names no row", c.name, r.Check)
			}
		}
	}
	all := map[string]bool{}
	for _, r := range of(report, goodTool) {
		all[r.Check] = true
		if r.Outcome != check.Pass || r.Row == "" {
			t.Errorf("the good tool: %s: %s %s (%s)", r.Check, r.Outcome, r.Detail, r.Row)
		}
	}
	if len(all) < 20 {
		t.Errorf("the good tool had only the checks %v", slices.Sorted(maps.Keys(all)))
	}
	for name := range all {
		if !turned[name] {
			t.Errorf("no copy turns %q", name)
		}
	}
}

// TestEventMillPublishedDeparturesAreWarnings: what published tools have in
// place of the contract's words fails nothing.
func TestEventMillPublishedDeparturesAreWarnings(t *testing.T) {
	t.Parallel()
	report := mill(t, published, check.Options{})
	for _, c := range published {
		results := of(report, c.name)
		warned := false
		for _, r := range results {
			warned = warned || r.Check == c.check && r.Outcome == c.outcome && r.Row == c.row && strings.HasPrefix(r.Detail, c.detail)
			if r.Outcome == check.Fail {
				t.Errorf("%s: %s fails: %s", c.name, r.Check, r.Detail)
			}
		}
		if !warned {
			t.Errorf("%s: no warning of %s (%s) that begins with %q:\n%s", c.name, c.check, c.row, c.detail, shownAs(results))
		}
	}
}

func shownAs(results []check.Result) string {
	var b strings.Builder
	for _, r := range results {
		if r.Outcome != check.Pass {
			fmt.Fprintf(&b, "  %s %s (%s): %s\n", r.Outcome, r.Check, r.Row, r.Detail)
		}
	}
	return b.String()
}

// TestEventMillReport: the acceptance checklist is one report, as JSON and as
// JUnit, with the row of each failure.
func TestEventMillReport(t *testing.T) {
	t.Parallel()
	report := mill(t, []brokenCopy{{name: "broken", change: removed("README.md")}}, check.Options{})
	for _, point := range []string{"layout", "manifest", "pillar", "schemas", "examples", "contract test ", "summary", "README", "capabilities", "requires_llm", "artifacts", "overrides"} {
		if !slices.ContainsFunc(of(report, "broken"), func(r check.Result) bool { return strings.HasPrefix(r.Check, point) }) {
			t.Errorf("the report has nothing of %s", point)
		}
	}
	var out bytes.Buffer
	if err := report.WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<testsuite name="broken"`, `name="README"`, `type="EM-22"`, "README.md: there is no such file"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report as JUnit has no %s:\n%s", want, &out)
		}
	}
}

// TestEventMillNamesAreUnique: of two tools with one name in a tree, the first is
// refused, with the row and the one that takes its name.
func TestEventMillNamesAreUnique(t *testing.T) {
	t.Parallel()
	report := mill(t, []brokenCopy{{name: "twice", change: both(replaced("manifest.json", "twice", goodTool), replaced("tool.py", "twice", goodTool))}}, check.Options{})
	if !slices.ContainsFunc(report.Results, func(r check.Result) bool {
		return r.Check == "manifest" && r.Row == "EM-03" && r.Outcome == check.Fail && strings.HasSuffix(r.Plugin, goodTool) && strings.Contains(r.Detail, "log_analysis/twice")
	}) {
		t.Errorf("nothing says that a name stands there twice:\n%s", shownAs(report.Results))
	}
}

// TestEventMillVersions: what a tool promised may break in a new major version
// alone, and then there is a note for those who upgrade (EM-23).
func TestEventMillVersions(t *testing.T) {
	t.Parallel()
	narrower := func(version string, more ...func(*testing.T, string)) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			replaced("schemas/input.schema.json", `"minLength": 1`, `"minLength": 9`)(t, dir)
			member("version", version)(t, dir)
			for _, change := range more {
				change(t, dir)
			}
		}
	}
	old := filepath.Join(t.TempDir(), "plugins", "log_analysis")
	copies := []brokenCopy{
		{name: "minor", change: narrower("1.1.0")},
		{name: "major", change: narrower("2.0.0")},
		{name: "noted", change: narrower("2.0.0", replaced("README.md", "## Limitations\n", "## Migration\n\nIds are longer now.\n\n## Limitations\n"))},
	}
	for _, c := range copies {
		dir := filepath.Join(old, c.name)
		if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "eventmill", goodTool))); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"manifest.json", "tool.py"} {
			replaced(file, goodTool, c.name)(t, dir)
		}
	}
	report := mill(t, copies, check.Options{Against: filepath.Dir(old)})
	for _, want := range []struct {
		name, check string
		outcome     check.Outcome
		detail      string
	}{
		{"minor", "keeps what earlier versions promised", check.Fail, "raise the major version"},
		{"major", "migration note", check.Fail, "README.md: 2.0.0 breaks what 1.0.0 promised"},
		{"noted", "migration note", check.Pass, ""},
	} {
		if !slices.ContainsFunc(of(report, want.name), func(r check.Result) bool {
			return r.Check == want.check && r.Outcome == want.outcome && strings.Contains(r.Detail, want.detail) && r.Row == "EM-23"
		}) {
			t.Errorf("%s: no %s of %s (EM-23) with %q:\n%s", want.name, want.outcome, want.check, want.detail, shownAs(of(report, want.name)))
		}
	}
}

// TestEventMillKnowsTheRoutersPillars: a pillar has to be added to both lists.
func TestEventMillKnowsTheRoutersPillars(t *testing.T) {
	t.Parallel()
	a, b := slices.Sorted(slices.Values(router.Pillars())), slices.Sorted(slices.Values(eventmill.Pillars))
	if !slices.Equal(a, b) {
		t.Errorf("the router has the pillars %v, manifests %v", a, b)
	}
}
