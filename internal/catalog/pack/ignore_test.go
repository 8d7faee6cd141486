package pack_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/budget"
	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/internal/catalog/pack"
	"github.com/mortise-dev/mortise/plugin"
)

func TestWhatIsIgnored(t *testing.T) {
	t.Parallel()
	rules, err := pack.ParseIgnored("# built\n*.log\n!keep.log\nbuild/\n/top.txt\ndocs/**/*.png\n\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"a.log": true, "deep/a.log": true, "keep.log": false, "deep/keep.log": false,
		"build/x": true, "deep/build/x/y": true, "build": false, // a file of that name
		"top.txt": true, "deep/top.txt": false,
		"docs/a.png": true, "docs/a/b/c.png": true, "other/a.png": false, "docs/a.txt": false,
		".mortiseignore": true,
	} {
		if got := rules.Has(budget.NewSteps(t.Context(), 1000), name); got != want {
			t.Errorf("%s is ignored: %t; want %t", name, got, want)
		}
	}
	for _, bad := range []string{"!", "[", "a//b"} {
		if _, err := pack.ParseIgnored(bad); plugin.CodeOf(err) != plugin.CodeInvalidInput {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Rules with many ** take no more work than their length times that of a path; what many
// rules take together is bounded by the steps.
func TestRulesDoNotMultiply(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("a/", 60) + "b"
	rules, err := pack.ParseIgnored(strings.Repeat("**/", 10) + "x\n" + strings.Repeat("**/*a*/", 10) + "x\n")
	if err != nil {
		t.Fatal(err)
	}
	work := budget.NewSteps(t.Context(), 100_000)
	if rules.Has(work, deep) || work.Err() != nil {
		t.Errorf("%v; want that %s is not ignored", work.Err(), deep)
	}
	if rules, err = pack.ParseIgnored(strings.Repeat("**/*a*/x\n", 900)); err != nil {
		t.Fatal(err)
	}
	work = budget.NewSteps(t.Context(), 10_000)
	if rules.Has(work, deep); !errors.Is(work.Err(), budget.ErrSpent) {
		t.Errorf("%v; want ErrSpent", work.Err())
	}
	long := strings.Repeat("a", pattern.MaxGlob+1)
	if _, err := pack.ParseIgnored(long); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("a rule of %d bytes: %v", len(long), err)
	}
}

// TestWrittenPackagesAreRead: what a Writer makes is a package, and the same twice.
func TestWrittenPackagesAreRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.tar.gz", "a.tgz", "a.tar"} {
		made := func() []byte {
			var out bytes.Buffer
			w, err := pack.NewWriter(name, &out)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []pack.File{{Name: "p/manifest.yaml"}, {Name: "p/run.sh", Executable: true}} {
				content, err := w.Add(f, 2)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := content.Write([]byte("hi")); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			return out.Bytes()
		}
		first := made()
		if !bytes.Equal(first, made()) {
			t.Errorf("%s is another one the second time", name)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, first, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkRead(t, path, map[string]bool{"p/manifest.yaml": false, "p/run.sh": true}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pack.NewWriter("a.zip", nil); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("a zip: %v", err)
	}
}

// checkRead reads a package file and compares which files are executable.
func checkRead(t *testing.T, path string, want map[string]bool) error {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	err = pack.Read(t.Context(), path, file, info.Size(), func(f pack.File, content io.Reader) error {
		got[f.Name] = f.Executable
		_, err := io.Copy(io.Discard, content)
		return err
	})
	if !maps.Equal(got, want) {
		t.Errorf("it holds %v; want %v", got, want)
	}
	return err
}
