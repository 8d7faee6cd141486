package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/contract/eventmill"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
)

// The checks of an Event Mill tool: the points of its acceptance checklist. The
// ten contract tests are in eventmill_contract.go.
const (
	millLayout       = "layout"
	millManifest     = "manifest"
	millPillar       = "pillar"
	millSchemas      = "schemas"
	millExamples     = "examples"
	millSummary      = "summary"
	millReadme       = "README"
	millTests        = "tests"
	millCapabilities = "capabilities"
	millModel        = "requires_llm"
	millArtifacts    = "artifacts"
	millOverrides    = "overrides"
	millMigration    = "migration note"
)

// A mill is one Event Mill tool on trial.
type mill struct {
	*checker
	name     string // how the report calls it: its name, or its path
	dir      string
	root     *os.Root
	manifest map[string]any // as it stands there; nil where it is no object
	source   string         // its code, without comments and texts
	refused  bool           // the host does not take it
}

// A finding is one thing that is wrong, and where.
type finding struct {
	outcome Outcome
	row     string // of the requirements; "" is that of the check
	place   string // a file, or "file: at /pointer"
	says    string
}

func (f finding) String() string {
	if f.place == "" {
		return f.says
	}
	return f.place + ": " + f.says
}

func bad(place, format string, args ...any) finding {
	return finding{Fail, "", place, fmt.Sprintf(format, args...)}
}

func doubtful(place, format string, args ...any) finding {
	return finding{Warn, "", place, fmt.Sprintf(format, args...)}
}

// at names a place in a JSON file.
func at(file, pointer string) string {
	if pointer == "" {
		return file
	}
	return file + ": at " + pointer
}

// eventMill makes all checks of one tool. registered is nil where the host does
// not take it; failure says why, or why it could not be enabled.
func (c *checker) eventMill(ctx context.Context, dir string, registered *registry.Registered, failure error) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := &mill{checker: c, name: dir, dir: dir, root: root, refused: registered == nil}
	if raw, err := t.read("manifest.json"); err == nil {
		_ = json.Unmarshal(raw, &t.manifest)
	}
	if registered != nil {
		t.name = registered.Name
	}
	t.source = t.code()
	t.point(millLayout, "EM-01", t.layout())
	departures, err := t.departures()
	if err != nil {
		return err
	}
	var problems contract.Problems
	if failure != nil && !errors.As(failure, &problems) { // those are among the departures
		departures[millManifest] = append(departures[millManifest], finding{Fail, "EM-03", "manifest.json", messageOf(failure)})
	}
	for _, check := range []string{millManifest, millPillar, millCapabilities, millArtifacts} {
		found := departures[check]
		switch check {
		case millCapabilities:
			found = append(found, t.capabilities()...)
		case millArtifacts:
			found = append(found, t.artifacts()...)
		}
		t.point(check, departureRows[check], found)
	}
	schemas := t.schemas()
	if len(schemas.invalid) == 0 { // otherwise they say the same
		schemas.found = append(schemas.found, departures[millSchemas]...)
	}
	t.point(millSchemas, "EM-17", schemas.found)
	examples := t.examples(schemas)
	t.point(millExamples, "EM-17", slices.Concat(examples.request, examples.response))
	manifest := slices.Concat(departures[millManifest], departures[millPillar], departures[millCapabilities], departures[millArtifacts])
	t.contractTests(ctx, registered, manifest, schemas, examples)
	t.point(millTests, "EM-21", t.ownTests())
	t.point(millReadme, "EM-22", t.readme())
	t.point(millModel, "EM-24", t.model())
	t.point(millOverrides, "EM-24", t.overrides())
	if registered == nil {
		return ctx.Err()
	}
	shown, err := c.host.Registry.Show(ctx, registered.Name+"@"+registered.Version)
	if err != nil {
		return err
	}
	if err := c.compatible(ctx, shown); err != nil {
		return err
	}
	return t.migration(ctx, shown)
}

// point reports one point of the checklist: all that is wrong, or that nothing is.
func (t *mill) point(check, row string, found []finding) {
	for _, f := range found {
		t.result(Result{t.name, check, f.outcome, f.String(), cmp.Or(f.row, row)})
	}
	if len(found) == 0 {
		t.result(Result{Plugin: t.name, Check: check, Outcome: Pass, Row: row})
	}
}

// read returns a file of the tool, by its slash path. What leads out of the
// directory is not there.
func (t *mill) read(name string) ([]byte, error) {
	return readIn(t.root, name)
}

// text returns what the manifest has under a key, if that is text.
func (t *mill) text(key string) string {
	text, _ := t.manifest[key].(string)
	return text
}

// words returns the texts of the list that the manifest has under a key.
func (t *mill) words(key string) []string {
	var words []string
	list, _ := t.manifest[key].([]any)
	for _, item := range list {
		if word, ok := item.(string); ok {
			words = append(words, word)
		}
	}
	return words
}

// layout looks for the files that every package has (Plugin Packaging
// Requirements).
func (t *mill) layout() []finding {
	var found []finding
	names := []string{
		"manifest.json", "tool.py", "README.md", "schemas/input.schema.json", "schemas/output.schema.json",
		"examples/request.example.json", "examples/response.example.json", "tests/test_contract.py",
	}
	if entry := t.text("entry_point"); entry != "" && entry != "tool.py" {
		found = append(found, doubtful(at("manifest.json", "/entry_point"), "the contract calls the module tool.py"))
		names[1] = entry
	}
	for _, name := range names {
		if _, err := t.read(name); err != nil {
			found = append(found, bad(name, "%v, and every package has one", err))
		}
	}
	return found
}

// departureRows are the rows of those checks whose findings come from the manifest.
var departureRows = map[string]string{millManifest: "EM-04", millPillar: "EM-02", millCapabilities: "EM-05", millArtifacts: "EM-06"}

// departures returns where the manifest departs from its schema, by check.
func (t *mill) departures() (map[string][]finding, error) {
	refused, tolerated, err := eventmill.Strict(t.dir, t.named)
	if err != nil {
		return nil, err
	}
	by := map[string][]finding{}
	add := func(outcome Outcome, p contract.Problem) {
		check := millManifest
		switch key, _, _ := strings.Cut(strings.TrimPrefix(p.Pointer, "/"), "/"); key {
		case "pillar":
			check = millPillar
		case "capabilities":
			check = millCapabilities
		case "artifacts_consumed", "artifacts_produced":
			check = millArtifacts
		case "input_schema", "output_schema":
			if p.Row == "EM-17" { // of the file, not of the key
				check = millSchemas
			}
		}
		by[check] = append(by[check], finding{outcome, p.Row, at(p.File, p.Pointer), p.Reason})
	}
	for _, p := range refused {
		add(Fail, p)
	}
	for _, p := range tolerated {
		if t.published(p.Pointer) {
			add(Warn, p)
		} else {
			add(Fail, p)
		}
	}
	if len(refused) == 0 && len(by[millPillar]) == 0 {
		if _, place := contract.TreeIn(t.dir, t.named); place == "" {
			by[millPillar] = append(by[millPillar], doubtful("", "it stands in no tree; the contract has it in plugins/%s/%s", t.text("pillar"), t.text("tool_name")))
		}
	}
	return by, nil
}
