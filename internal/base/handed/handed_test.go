package handed_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/handed"
)

// Handing on opens the file and reads nothing of it, however large it is; what is
// no regular file cannot be handed on, and does not keep anyone waiting.
func TestHandingOnReadsNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	big := filepath.Join(dir, "big.log")
	if err := os.WriteFile(big, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 1<<36); err != nil {
		t.Fatal(err)
	}
	f, err := handed.Open(big)
	if err != nil || f.Size != 1<<36 || f.Path != big || !strings.HasPrefix(f.Handle, "art_") {
		t.Errorf("%+v, %v", f, err)
	}
	if again, err := handed.Open(big); err != nil || again.Handle != f.Handle {
		t.Errorf("the same file has another handle: %+v, %v", again, err)
	}
	for _, path := range []string{dir, "/dev/zero", filepath.Join(dir, "missing")} {
		if f, err := handed.Open(path); err == nil {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

// What a package names is beneath its directory, and no link leads out.
func TestWhatAPackageNamesIsBeneathIt(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(dir, "in.log"), filepath.Join(outside, "out.log")} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": filepath.Join(outside, "out.log"), "dir": outside, "up": "..", "own": "in.log"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{
		"in.log": true, "own": true, "link": false, "dir/out.log": false, "../" + filepath.Base(outside) + "/out.log": false,
		"up/" + filepath.Base(outside) + "/out.log": false, filepath.Join(outside, "out.log"): false,
	} {
		if f, err := handed.OpenBeneath(dir, path); (err == nil) != want {
			t.Errorf("%s: %+v, %v", path, f, err)
		}
	}
}
