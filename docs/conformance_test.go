package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// required are all rows of the requirements.
var required = []string{
	"RT-01", "RT-02", "RT-03", "RT-04", "RT-05", "RT-06", "RT-07", "RT-08", "RT-09",
	"KN-01", "KN-02", "KN-03", "KN-04", "KN-05", "KN-06", "KN-07", "KN-08", "KN-09", "KN-10", "KN-11", "KN-12",
	"KN-13", "KN-14", "KN-15", "KN-16", "KN-17", "KN-18", "KN-19", "KN-20", "KN-21", "KN-22",
	"EM-01", "EM-02", "EM-03", "EM-04", "EM-05", "EM-06", "EM-07", "EM-08", "EM-09", "EM-10", "EM-11", "EM-12",
	"EM-13", "EM-14", "EM-15", "EM-16", "EM-17", "EM-18", "EM-19", "EM-20", "EM-21", "EM-22", "EM-23", "EM-24",
	"EM-25", "EM-26", "EM-27",
	"SH-01", "SH-02", "SH-03", "SH-04", "SH-05", "SH-06", "SH-07", "SH-08", "SH-09", "SH-10", "SH-11", "SH-12",
	"SH-13", "SH-14", "SH-15", "SH-16", "SH-17", "SH-18", "SH-19", "SH-20", "SH-21", "SH-22", "SH-23", "SH-24",
	"SH-25", "SH-26", "SH-27", "SH-28", "SH-29", "SH-30", "SH-31", "SH-32", "SH-33",
	"HK-01", "HK-02", "HK-03", "HK-04", "HK-05", "HK-06", "HK-07", "HK-08", "HK-09", "HK-10", "HK-11", "HK-12",
	"HK-13", "HK-14", "HK-15",
	"PL-01", "PL-02", "PL-03", "PL-04", "PL-05", "PL-06", "PL-07", "PL-08", "PL-09", "PL-10", "PL-11", "PL-12",
	"PL-13", "PL-14", "PL-15", "PL-16", "PL-17", "PL-18", "PL-19", "PL-20", "PL-21", "PL-22",
}

var rowID = regexp.MustCompile(`^(EM|SH|RT|KN|HK|PL)-\d{2}$`)

// TestConformance reads docs/conformance.md: every row names code that is there
// and tests that exist.
func TestConformance(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, cells := range tables(t, "conformance.md", "row") {
		if len(cells) != 4 {
			t.Errorf("%q has not four cells", cells)
			continue
		}
		id := cells[0]
		if !rowID.MatchString(id) || seen[id] {
			t.Errorf("%q is no row, or stands here twice", id)
		}
		seen[id] = true
		where, tests := spans(cells[2]), spans(cells[3])
		if len(where) == 0 || len(tests) == 0 {
			t.Errorf("%s names no code, or no test", id)
		}
		for _, path := range where {
			if _, err := os.Stat(filepath.Join("..", path)); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		for _, test := range tests {
			if problem := missing(test); problem != "" {
				t.Errorf("%s: %s", id, problem)
			}
		}
	}
	for _, id := range required {
		if !seen[id] {
			t.Errorf("%s has no row", id)
		}
	}
	raw, err := os.ReadFile("conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(raw), "## Not yet")
	if !found {
		t.Fatal("the page does not say what is not there yet")
	}
	for _, id := range regexp.MustCompile(`\b[A-Z]{2}-\d{2}\b`).FindAllString(rest, -1) {
		if seen[id] {
			t.Errorf("%s is both met and not yet met", id)
		}
	}
}

// TestPagesNameTestsThatExist reads the pages that say which test shows what.
// There ::name stands for a test of the package named before it.
func TestPagesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	for _, row := range tables(t, "threat-model.md", "promise") {
		if len(row) != 4 || len(spans(row[3])) == 0 {
			t.Errorf("threat-model.md: no test shows that %s", row[0])
		}
	}
	for _, page := range []string{"threat-model.md", "sandbox.md"} {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named, within := 0, ""
		for _, test := range spans(string(raw)) {
			path, name, is := strings.Cut(test, "::")
			if !is || strings.ContainsAny(test, " \n") {
				continue
			}
			if path != "" {
				within = path
			}
			if named++; missing(within+"::"+name) != "" {
				t.Errorf("%s: %s", page, missing(within+"::"+name))
			}
		}
		if named == 0 {
			t.Errorf("%s names no test", page)
		}
	}
}

// attempts are those at who asks that the threat model has to have.
var attempts = []string{
	"login CSRF", "session fixation", "cookie tossing from a sibling port", "`next=//evil`", "OIDC mix-up", "code replay", "nonce replay", "clock skew", "a stolen setup link",
	"token brute force", "timing", "a revoked token or an ended session keeps its stream", "reading tokens where they were left",
}

// TestEveryAttemptHasATest reads the table of attempts in the threat model.
func TestEveryAttemptHasATest(t *testing.T) {
	t.Parallel()
	rows := tables(t, "threat-model.md", "attempt")
	for _, row := range rows {
		if len(row) != 3 || len(spans(row[2])) == 0 {
			t.Errorf("threat-model.md: no test makes the attempt %s", row[0])
			continue
		}
		for _, test := range spans(row[2]) {
			if problem := missing(test); problem != "" {
				t.Errorf("threat-model.md: %s: %s", row[0], problem)
			}
		}
	}
	for _, attempt := range attempts {
		if !slices.ContainsFunc(rows, func(row []string) bool { return strings.HasPrefix(row[0], attempt) }) {
			t.Errorf("threat-model.md does not have %s", attempt)
		}
	}
}

// missing says what is wrong with the name of a test: path::name, where the
// path is a Go package's directory, or a file of Python, TypeScript or JavaScript. A story
// of the command line is a test of TestStories, which is named TestStories/story.
func missing(test string) string {
	path, name, named := strings.Cut(test, "::")
	if !named {
		return test + " is not of the form path::name"
	}
	files := []string{filepath.Join("..", path)}
	form := ""
	switch filepath.Ext(path) {
	case ".py":
		form = `(?m)^ +(?:async )?def ` + regexp.QuoteMeta(name) + `\(`
	case ".ts", ".mjs":
		form = `(?m)^ *test\([` + "`" + `"]` + regexp.QuoteMeta(name) + `( \$\{|["` + "`" + `])` // a name may end in what a table fills in
	default:
		if test, story, is := strings.Cut(name, "/"); is {
			if _, err := os.Stat(filepath.Join("..", path, "testdata", "script", story+".txtar")); err != nil || test != "TestStories" {
				return "there is no story " + name + " in " + path
			}
			name = test
		}
		files, _ = filepath.Glob(filepath.Join("..", path, "*_test.go"))
		form = `(?m)^func ` + regexp.QuoteMeta(name) + `\([a-z]+ \*testing\.[TF]\)`
	}
	found := slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		return err == nil && regexp.MustCompile(form).Match(source)
	})
	if !found {
		return "there is no test " + name + " in " + path
	}
	return ""
}
