package plugin_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/plugin"
)

// The codes that docs/architecture.md calls transient are those that pass, and no other.
func TestTheCodesThatPassAreThoseOfTheTableOfEnds(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(raw), "Transient are ")
	if !found {
		t.Fatal(`docs/architecture.md has no sentence that begins with "Transient are"`)
	}
	text, _, _ = strings.Cut(text, ";")
	var said, pass []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(text, -1) {
		said = append(said, m[1])
	}
	for _, code := range plugin.Codes {
		if code.Passes() {
			pass = append(pass, string(code))
		}
	}
	slices.Sort(said)
	slices.Sort(pass)
	if len(pass) == 0 || !slices.Equal(said, pass) {
		t.Errorf("docs/architecture.md calls %v transient, and these pass: %v", said, pass)
	}
}

// No package keeps a list of its own of codes that pass: two lists differ sooner or
// later.
func TestThereIsOneListOfTheCodesThatPass(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir("../internal", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(raw)) {
			// A list with these two names what passes; a table that gives each code a
			// value of its own does not.
			if strings.Contains(line, "CodeOverloaded,") && strings.Contains(line, "CodeUnavailable") && strings.Contains(line, "CodeRateLimited") {
				t.Errorf("%s lists codes that pass: use plugin.Code.Passes: %s", path, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
