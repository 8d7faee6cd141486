package check_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/surface/check"
)

// TestSemver: what a new version may change, by how far it is from the earlier one.
func TestSemver(t *testing.T) {
	t.Parallel()
	const (
		inputs  = `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`
		wider   = `{"type":"object","properties":{"n":{"type":"integer"},"m":{}},"additionalProperties":false}`
		tighter = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
		odd     = `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false,"not":{"required":["m"]}}`
		told    = `{"type":"object","title":"What to do","properties":{"n":{"type":"integer"}},"additionalProperties":false}`
	)
	for _, c := range []struct {
		name, from, to string
		change         func(files map[string]string)
		want           string // of the check, as "outcome: detail"
	}{
		{"patch that changes nothing", "1.0.0", "1.0.1", nothing, "pass: on.trial@1.0.0"},
		{"patch that changes a title", "1.0.0", "1.0.1", replace("in.json", told), "pass: "},
		{"patch that adds an input", "1.0.0", "1.0.1", replace("in.json", wider), "fail: do input at /properties/m: a new member that may be given; a patch of on.trial@1.0.0 may change no schema: raise the minor version"},
		{"minor that adds an input", "1.0.0", "1.1.0", replace("in.json", wider), "pass: on.trial@1.0.0"},
		{"minor that wants an input", "1.0.0", "1.1.0", replace("in.json", tighter), `fail: do input at /required: "n" must be given now; on.trial@1.0.0 promised otherwise: raise the major version`},
		{"minor that cannot be judged", "1.0.0", "1.1.0", replace("in.json", odd), "warn: do input at /not: cannot be judged"},
		{"patch that cannot be judged", "1.0.0", "1.0.1", replace("in.json", odd), "fail: do input at /not: cannot be judged"},
		{"major that wants an input", "1.0.0", "2.0.0", replace("in.json", tighter), "pass: on.trial@1.0.0: 1 changes, and it is a new major version"},
		{"minor that promises less", "1.0.0", "1.1.0", replace("out.json", `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`), "fail: do output at /required: \"n\" was always there"},
		{"minor that returns more", "1.0.0", "1.1.0", replace("out.json", `{"type":"object","properties":{"n":{"type":"integer"},"m":{}},"required":["n"],"additionalProperties":false}`), "pass: "},
		{"minor without an operation", "1.0.0", "1.1.0", replaceIn("manifest.yaml", "  do: {", "  undo: {"), "fail: do at /operations/do: the operation is gone"},
		{"minor with another operation", "1.0.0", "1.1.0", add("manifest.yaml", "  more: {description: More., kind: tool}\n"), "pass: "},
		{"patch with another operation", "1.0.0", "1.0.1", add("manifest.yaml", "  more: {description: More., kind: tool}\n"), "fail: more at /operations/more: the operation is new"},
		{"minor of another kind", "1.0.0", "1.1.0", replaceIn("manifest.yaml", "kind: operator", "kind: tool"), "fail: do at /operations/do/kind: it was of kind operator, and is of kind tool"},
		{"minor with effects", "1.0.0", "1.1.0", replaceIn("manifest.yaml", "kind: operator", "kind: operator, effects: [db_write]"), "fail: do at /operations/do/effects: its effects were [], and are [db_write]"},
		{"minor with a permission", "1.0.0", "1.1.0", replaceIn("manifest.yaml", "kind: operator", "kind: operator, permissions: ['do:it']"), "fail: do at /operations/do/permissions: it asks for the permission do:it now"},
		{"the same version with other schemas", "1.0.0", "1.0.0", replace("in.json", wider), "fail: do input at /properties/m: a new member that may be given; on.trial@1.0.0 stands for other schemas already: raise the version"},
		{"a lower version", "1.1.0", "1.0.0", nothing, "fail: 1.0.0 is lower than 1.1.0"},
		{"before 1.0.0 a minor is a major", "0.1.0", "0.2.0", replace("in.json", tighter), "pass: on.trial@0.1.0: 1 changes"},
		{"before 1.0.0 a patch is a minor no less", "0.1.0", "0.1.1", replace("in.json", tighter), "fail: do input at /required: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := func(version string) map[string]string {
				files := onTrial("echo", "kind: operator", "")
				files["in.json"] = inputs
				files["out.json"] = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
				replaceIn("manifest.yaml", "1.0.0", version)(files)
				return files
			}
			dir := t.TempDir()
			was, is := filepath.Join(dir, "was"), filepath.Join(dir, "is")
			write(t, was, base(c.from))
			files := base(c.to)
			c.change(files)
			write(t, is, files)
			report, err := check.Run(t.Context(), is, check.Options{Against: was})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, r := range report.Results {
				if r.Check == "keeps what earlier versions promised" {
					got = append(got, fmt.Sprintf("%s: %s", r.Outcome, r.Detail))
					if r.Row != "KN-17" {
						t.Errorf("it proves %q", r.Row)
					}
				}
			}
			if len(got) == 0 || !strings.HasPrefix(got[0], c.want) {
				t.Errorf("%q, want %q among %+v", got, c.want, report.Results)
			}
		})
	}
}

func TestAgainstSomethingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), files("good"))
	write(t, filepath.Join(dir, "b"), onTrial("echo", "kind: tool", ""))
	got := strings.Join(outcomes(t, filepath.Join(dir, "a"), check.Options{Against: filepath.Join(dir, "b")}), "\n")
	if !strings.Contains(got, "fail text.count: keeps what earlier versions promised: not_found: there is no text.count in ") {
		t.Error(got)
	}
	if _, err := check.Run(t.Context(), filepath.Join(dir, "a"), check.Options{Against: filepath.Join(dir, "c")}); err == nil {
		t.Error("it was held against nothing")
	}
}

// TestJUnit: a report reads back as XML with the same counts, whatever stands in it.
func TestJUnit(t *testing.T) {
	t.Parallel()
	report := check.Report{Results: []check.Result{
		{"a", "one", check.Pass, "", ""},
		{"a", "two", check.Fail, "at /x: <no> & \"never\"\x1b[31m", "KN-20"},
		{"b", "three", check.Skip, "because", ""},
		{"a", "four", check.Warn, "hm", ""},
	}}
	var out bytes.Buffer
	if err := report.WriteJUnit(&out); err != nil {
		t.Fatal(err)
	}
	var read struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Skipped  int `xml:"skipped,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Text string `xml:"message,attr"`
					Type string `xml:"type,attr"`
				} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &read); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if read.Tests != 4 || read.Failures != 1 || read.Skipped != 1 || len(read.Suites) != 2 || len(read.Suites[0].Cases) != 3 {
		t.Fatalf("%+v", read)
	}
	if f := read.Suites[0].Cases[1].Failure; f == nil || f.Type != "KN-20" || !strings.Contains(f.Text, `at /x: <no> & "never"`) || read.Suites[1].Cases[0].Skipped == nil {
		t.Errorf("%+v", read)
	}
}
