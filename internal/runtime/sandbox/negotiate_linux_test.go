package sandbox

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// A launcher that ends before it was told everything has mostly said why.
func TestWhatALauncherThatEndedHadSaidIsRead(t *testing.T) {
	t.Parallel()
	ended := exec.Command("/bin/true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	groups := newCgroups()
	t.Cleanup(func() { _ = groups.close() })
	group, why := groups.take(Limits{})
	for _, c := range []struct {
		name    string
		said    string
		hears   bool // it is still there when the order comes
		grouped bool // and is not when it is to be put into its cgroup
		want    string
	}{
		{"before the order", `{"error":"landlock: permission denied","stage":"walls"}`, false, false, "landlock: permission denied"},
		{"before its cgroup", `{"error":"landlock: permission denied","stage":"walls"}`, true, true, "landlock: permission denied"},
		{"without a word", ``, false, false, "the launcher ended without a word"},
		{"without a word to its cgroup", ``, true, true, "the launcher ended without a word"},
		{"as if all were well", `{"layers":[]}`, false, false, "the launcher ended without a word"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.grouped && group == nil {
				t.Skip("needs a cgroup that the host may use: " + why)
			}
			lifeline, theirs, err := socketPair()
			if err != nil {
				t.Fatal(err)
			}
			defer lifeline.Close()
			defer theirs.Close()
			report, reports, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer report.Close()
			if !c.hears {
				_ = theirs.Close()
			}
			if _, err := reports.WriteString(c.said); err != nil {
				t.Fatal(err)
			}
			_ = reports.Close()
			k := &caged{cage: &cage{opts: Options{StartLimit: testwait.Limit}}, cmd: ended, lifeline: lifeline, report: report}
			k.reports = json.NewDecoder(io.LimitReader(report, 2*maxReport))
			if c.grouped {
				k.group = group
			}
			started, err := k.negotiate(t.Context(), &wire.Spec{}, nil)
			if err == nil && started.Error != "" {
				err = refusal(started)
			}
			if err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestWhyACageCannotBeBuiltIsSaid(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to show a plugin what it may not look into: run the test as root")
	}
	s, _ := forkServerOf(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "plugin.py")
	const other = 65534
	err = errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(dir, 0o700), os.Chown(file, other, 0), os.Chown(dir, other, 0))
	if err != nil {
		t.Fatal(err)
	}
	want := "landlock: allowing " + file + ": permission denied"
	for range 5 { // the host may be early or late with the cgroup
		spec := Spec{Argv: []string{"/bin/true"}, Read: []string{dir, file}, Scratch: t.TempDir()}
		if _, err := s.Start(t.Context(), spec, Files{null, null, null}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("it says %v, want %s", err, want)
		}
	}
}

// To try whether the host is out of sight, a cage looks for something that it
// was not to be shown.
func TestWhatIsShownIsNotLookedFor(t *testing.T) {
	t.Parallel()
	usual, err := hidden(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]string{
		"the path itself":     usual,
		"a directory above":   filepath.Dir(usual),
		"something inside it": usual + "/of/another",
	} {
		if got, err := hidden([]wire.Node{{Kind: "bind", Path: shown}}); err != nil || within(got, shown) || within(shown, got) {
			t.Errorf("%s: with %s in sight, %q is looked for: %v", name, shown, got, err)
		}
	}
	top, err := os.ReadDir("/")
	if err != nil {
		t.Fatal(err)
	}
	var all []wire.Node
	for _, entry := range top {
		all = append(all, wire.Node{Kind: "bind", Path: "/" + entry.Name()})
	}
	if got, err := hidden(all); err == nil {
		t.Errorf("with everything in sight, %q is looked for", got)
	}
}

func TestWhatNoPluginSeesCanBeShownByName(t *testing.T) {
	t.Parallel()
	s, _ := forkServerOf(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	there := func(path string) bool { _, err := os.Stat(path); return err == nil }
	read := slices.DeleteFunc([]string{"/bin", "/lib", "/lib64", "/usr/lib"}, func(path string) bool { return !there(path) })
	for _, path := range []string{"/etc/shadow", "/boot", "/root", "/home"} {
		if !there(path) {
			continue
		}
		spec := Spec{Argv: []string{"/bin/true"}, Read: read, Artifacts: []File{{Path: path}}, Scratch: t.TempDir()}
		p, err := s.Start(t.Context(), spec, Files{null, null, null})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if end := p.Wait(); !end.OK() {
			t.Errorf("%s: %v", path, end)
		}
		p.Release()
	}
}
