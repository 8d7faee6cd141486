package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAViewHasWhatWasAskedAndTheLinksToIt(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"real/lib", "scratch", "other"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"real/lib/a.so", "other/b"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"lib": "real/lib", "real/lib/c.so": "a.so", "round": "round"} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	nodes, read, err := viewOf(Spec{Read: []string{at("lib"), at("lib/c.so")}, Artifacts: []File{{Path: at("other/b")}}, Scratch: at("scratch")}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for i, n := range nodes {
		kinds[n.Path] = n.Kind
		for _, later := range nodes[i+1:] {
			if n.Path != later.Path && len(later.Path) < len(n.Path) && n.Path[:len(later.Path)+1] == later.Path+"/" {
				t.Errorf("%s comes before %s, which it is in", n.Path, later.Path)
			}
		}
	}
	for path, want := range map[string]string{
		at("lib"): "link", at("real/lib"): "bind", at("real/lib/c.so"): "", at("other/b"): "bind", at("other"): "", at("scratch"): "work",
		"/tmp": "work", "/proc": "proc", "/dev": "dev", "/etc/passwd": "text", "/etc/hosts": "text",
	} {
		if kinds[path] != want {
			t.Errorf("%s is %q, want %q", path, kinds[path], want)
		}
	}
	for _, want := range []string{at("real/lib"), at("real/lib/a.so"), at("other/b")} {
		found := false
		for _, path := range read {
			found = found || path == want
		}
		if !found {
			t.Errorf("%s may not be read: %q", want, read)
		}
	}
	for _, path := range []string{"/", "/proc/1", "/dev", "/sys", at("missing"), at("round"), "relative"} {
		if _, _, err := viewOf(Spec{Read: []string{path}, Scratch: at("scratch")}, 1, 1); err == nil {
			t.Errorf("%s was shown", path)
		}
	}
}

// What a plugin's own files named is not shown where it lies in a hidden
// directory, by its name or by its links, but for what the host keeps there.
func TestWhatIsNamedInAHiddenPlaceIsRefused(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"home/runtime", "scratch", "user/.ssh", "user/papers"} {
		if err := os.MkdirAll(at(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"home/key", "home/runtime/sdk", "user/.ssh/id", "user/papers/a"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(at("home/key"), at("user/papers/link")); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Hide: []string{at("home"), at("user/.ssh"), at("nowhere")}, Own: []string{at("home/runtime"), at("home")}, Scratch: at("scratch")}
	for path, shown := range map[string]bool{
		at("home/key"): false, at("home"): false, at("user/.ssh/id"): false, at("user/.ssh"): false, at("user/papers/link"): false,
		at("home/runtime/../key"): false, at("home/runtime/sdk"): true, at("user/papers/a"): true, at("user"): true,
	} {
		spec.Named = []string{path}
		nodes, _, err := viewOf(spec, 1, 1)
		if (err == nil) != shown {
			t.Errorf("%s: %v", path, err)
		}
		covered := false
		for _, n := range nodes {
			covered = covered || n.Kind == "empty" && n.Path == at("user/.ssh")
		}
		if covered != (path == at("user")) {
			t.Errorf("%s: the keys in it are covered: %v", path, covered)
		}
	}
}
