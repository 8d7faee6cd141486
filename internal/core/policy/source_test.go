package policy_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/core/policy"
)

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"b.cedar": permitAll, "policies/a.cedar": forbidSend, "policies/c.cedar": "", "policies/notes.txt": "no policy"})
	documents, err := policy.Files(dir, "policies/*.cedar", "policies", filepath.Join(dir, "b.cedar"))()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range documents {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, " "); got != "policies/a.cedar policies/c.cedar b.cedar" {
		t.Errorf("%s", got)
	}
	if n, err := policy.Check(documents); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestAFileThatIsNotThereIsAnError: a set that was not found forbids nothing.
func TestAFileThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.cedar": permitAll})
	if err := os.MkdirAll(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"b.cedar", "*.cedr", "empty", "[", "a.cedar/b"} {
		if _, err := policy.Open(policy.Options{Sources: []policy.Source{policy.Files(dir, "a.cedar", pattern)}}); err == nil {
			t.Errorf("%s was taken", pattern)
		} else if pattern == "b.cedar" && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

func TestTwoDocumentsOfOneNameAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := policy.Open(policy.Options{Sources: append(texts(permitAll), texts(forbidSend)...)}); err == nil || !strings.Contains(err.Error(), "two documents of policies are called a.cedar") {
		t.Error(err)
	}
}

func TestTheVersionIsThatOfTheTexts(t *testing.T) {
	t.Parallel()
	versions := map[string]bool{}
	for _, documents := range [][]string{{permitAll}, {permitAll, ""}, {permitAll + "\n"}, {forbidSend}, {permitAll, forbidSend}, {permitAll + forbidSend}} {
		e := open(t, policy.Options{Sources: texts(documents...)})
		if versions[e.Version()] {
			t.Errorf("%q shares its version with another set", documents)
		}
		versions[e.Version()] = true
		if again := open(t, policy.Options{Sources: texts(documents...)}); again.Version() != e.Version() {
			t.Error("the same texts have two versions")
		}
	}
}
