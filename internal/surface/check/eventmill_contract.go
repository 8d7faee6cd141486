package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/core/schema"
	"github.com/mortise-dev/mortise/plugin"
)

// contractNames are the ten contract tests (Tests), in their order.
var contractNames = [...]string{
	"contract test 1: the manifest is valid",
	"contract test 2: the schemas are JSON Schema",
	"contract test 3: the module can be imported",
	"contract test 4: the class can be instantiated",
	"contract test 5: validate_inputs accepts the example request",
	"contract test 6: validate_inputs rejects a malformed request",
	"contract test 7: the example request fits its schema",
	"contract test 8: the example response fits its schema",
	"contract test 9: summarize_for_llm gives text of under 2000 characters",
	"contract test 10: metadata has tool_name and version",
}

// A verdict is what a contract test came to.
type verdict struct {
	N       int    `json:"n"`
	OK      *bool  `json:"ok"` // absent where it was left to the host, or could not be made
	Message string `json:"message"`
	Pointer string `json:"pointer"`
}

// A verdicts is what the interpreter says of all of them.
type verdicts struct {
	Tests         []verdict `json:"tests"`
	Summary       string    `json:"summary"`
	SummaryLength int       `json:"summary_length"`
}

// contractTests makes the ten contract tests, and looks at the summary.
func (t *mill) contractTests(ctx context.Context, registered *registry.Registered, manifest []finding, s schemaPair, e examplePair) {
	// The rest need the tool's code: they are made in its interpreter, behind the
	// walls that its calls have.
	own := map[int][]finding{1: manifest, 2: s.invalid, 7: e.request, 8: e.response}
	said, err := t.interpreted(ctx, registered)
	for i, name := range contractNames {
		n := i + 1
		if found, here := own[n]; here {
			t.result(t.hosted(name, found))
			continue
		}
		t.result(t.coded(n, name, said, err))
	}
	t.result(t.summary(said, err))
}

// summary judges what summarize_for_llm made of the example response.
func (t *mill) summary(said verdicts, err error) Result {
	r := Result{Plugin: t.name, Check: millSummary, Row: "EM-10"}
	switch {
	case err != nil || said.SummaryLength == 0:
		r.Outcome, r.Detail = Skip, "there is none: see contract test 9"
	case said.SummaryLength >= maxSummary:
		r.Outcome, r.Detail = Fail, fmt.Sprintf("summarize_for_llm: it has %d characters, and may have less than %d", said.SummaryLength, maxSummary)
	case t.repeats(said.Summary):
		r.Outcome, r.Detail = Fail, "summarize_for_llm: it repeats the whole result"
	default:
		r.Outcome, r.Detail = Pass, fmt.Sprintf("%d characters", said.SummaryLength)
	}
	return r
}

// repeats reports whether a summary holds the whole result of the example, if
// that is more than a few words.
func (t *mill) repeats(summary string) bool {
	raw, err := t.read(responseFile)
	if err != nil {
		return false
	}
	var response struct {
		Result jsontext.Value `json:"result"`
	}
	if json.Unmarshal(raw, &response) != nil || response.Result.Kind() != '{' {
		return false
	}
	dense := func(text string) string { return strings.Join(strings.Fields(strings.ReplaceAll(text, "'", `"`)), "") }
	whole := dense(string(response.Result))
	return len(whole) > 40 && strings.Contains(dense(summary), whole)
}

// maxSummary is where a summary is too long.
const maxSummary = 2000

// hosted returns the result of a test that needs no code: the first failure of
// what was found, and how many there are.
func (t *mill) hosted(name string, found []finding) Result {
	r := Result{Plugin: t.name, Check: name, Outcome: Pass, Row: "EM-21"}
	failures := slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.outcome != Fail })
	if len(failures) == 0 {
		return r
	}
	r.Outcome, r.Detail = Fail, failures[0].String()
	if more := len(failures) - 1; more > 0 {
		r.Detail += fmt.Sprintf(" (and %d more)", more)
	}
	return r
}

// coded returns the result of a test that needed the tool's code.
func (t *mill) coded(n int, name string, said verdicts, err error) Result {
	r := Result{Plugin: t.name, Check: name, Row: "EM-21"}
	if err != nil {
		r.Outcome, r.Detail = Fail, messageOf(err)
		if code := plugin.CodeOf(err); code == plugin.CodeDependencyMissing || code == plugin.CodeIsolationUnavailable || t.refused {
			r.Outcome = Skip
		}
		return r
	}
	i := slices.IndexFunc(said.Tests, func(v verdict) bool { return v.N == n })
	switch {
	case i < 0:
		r.Outcome, r.Detail = Fail, "the interpreter ended before it"
	case said.Tests[i].OK == nil:
		r.Outcome, r.Detail = Skip, said.Tests[i].Message
	case !*said.Tests[i].OK:
		r.Outcome, r.Detail = Fail, said.Tests[i].Message
		if place := strings.Replace(said.Tests[i].Pointer, "#/", ": at /", 1); place != "" && !strings.HasPrefix(r.Detail, place) {
			r.Detail = place + ": " + r.Detail
		}
	default:
		r.Outcome, r.Detail = Pass, said.Tests[i].Message
	}
	return r
}

// interpreted runs the tests that need the tool's code.
func (t *mill) interpreted(ctx context.Context, registered *registry.Registered) (verdicts, error) {
	var said verdicts
	if registered == nil {
		return said, errors.New("it is refused, so that nothing of it is run")
	}
	shown, err := t.host.Registry.Show(ctx, registered.Name+"@"+registered.Version)
	if err != nil {
		return said, err
	}
	raw, err := t.host.Contract(ctx, treeOf(shown), shown.Manifest)
	if err != nil {
		return said, err
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return said, plugin.Errorf(plugin.CodeMalformedResponse, "its contract tests printed no verdict: %w", err)
	}
	for i := range said.Tests {
		said.Tests[i].Message = clip([]byte(said.Tests[i].Message))
	}
	return said, nil
}

// treeOf returns the package of an Event Mill tool: the tree that it stands in.
func treeOf(s registry.Shown) plugin.Package {
	pkg := packageOf(s)
	if dir, inside := strings.CutSuffix(pkg.Dir, "/"+s.Manifest.Dir); inside && s.Manifest.Dir != "" {
		pkg.Dir = dir
	}
	return pkg
}

// migration asks for a note in the README or CHANGELOG.md where a new major
// version breaks what an earlier one promised (Versioning; EM-23).
func (t *mill) migration(ctx context.Context, s registry.Shown) error {
	if t.options.Earlier == nil {
		return nil
	}
	earlier, err := t.options.Earlier(ctx, s.Manifest, s.Digest)
	if err != nil {
		return ctx.Err() // compatible has told
	}
	for _, old := range earlier {
		how, err := stepOf(old.Version, s.Version)
		if err != nil || how != major {
			continue
		}
		found, err := differences(old, s.Manifest)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(found, func(d difference) bool { return d.impact == schema.Breaking }) {
			continue
		}
		var wrong []finding
		if !t.mentions("migrat") && !t.mentions("upgrad") {
			wrong = append(wrong, bad("README.md", "%s breaks what %s promised, and neither this nor CHANGELOG.md says how to migrate", s.Version, old.Version))
		}
		t.point(millMigration, "EM-23", wrong)
	}
	return nil
}

// mentions reports whether the README or the change log has a word.
func (t *mill) mentions(word string) bool {
	for _, name := range []string{"README.md", "CHANGELOG.md"} {
		if raw, err := t.read(name); err == nil && strings.Contains(strings.ToLower(string(raw)), word) {
			return true
		}
	}
	return false
}
