package registry_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

func TestDigestCoversWhatAPackageIs(t *testing.T) {
	t.Parallel()
	b := open(t)
	digest := func(change func(dir string)) string {
		dir := author(t, "p", "1.0.0", "x")
		write(t, dir+"/lib/a.txt", "a")
		change(dir)
		one := b.register(dir, registry.RegisterOptions{})
		if _, err := b.Delete(context.Background(), "p"); err != nil {
			t.Fatal(err)
		}
		return one.Digest
	}
	base := digest(func(string) {})
	for _, c := range []struct {
		name   string
		same   bool
		change func(dir string)
	}{
		{"another directory, other times", true, func(string) {}},
		{"what tools leave behind", true, func(dir string) {
			for _, name := range []string{".git/config", "lib/__pycache__/a.pyc", "b.pyc", ".DS_Store", "node_modules/.cache/x", "node_modules/.bin/x"} {
				write(t, filepath.Join(dir, name), "x")
			}
		}},
		{"content", false, func(dir string) { write(t, dir+"/lib/a.txt", "b") }},
		{"name", false, func(dir string) { _ = os.Rename(dir+"/lib/a.txt", dir+"/lib/b.txt") }},
		{"place", false, func(dir string) { _ = os.Rename(dir+"/lib/a.txt", dir+"/a.txt") }},
		{"executable bit", false, func(dir string) { _ = os.Chmod(dir+"/lib/a.txt", 0o755) }},
		{"another file", false, func(dir string) { write(t, dir+"/lib/empty", "") }},
	} {
		if got := digest(c.change); (got == base) != c.same {
			t.Errorf("%s: digest %s, before %s", c.name, got, base)
		}
	}
	if len(base) != len("sha256:")+64 {
		t.Errorf("digest %q", base)
	}
}

func TestInstalledPackageIsAReadOnlyCopy(t *testing.T) {
	t.Parallel()
	b := open(t)
	dir := author(t, "p", "1.0.0", "x")
	write(t, dir+"/bin/run", "#!/bin/sh\n")
	_ = os.Chmod(dir+"/bin/run", 0o700)
	write(t, dir+"/__pycache__/x.pyc", "x")
	one := b.install(dir)
	if one.Path != filepath.Join(b.options.Dir, strings.TrimPrefix(one.Digest, "sha256:")) || one.Source != dir {
		t.Errorf("%+v", one)
	}
	modes := map[string]fs.FileMode{".": 0o555, "bin": 0o555, "bin/run": 0o555, "manifest.yaml": 0o444, "plugin.py": 0o444}
	seen := 0
	err := fs.WalkDir(os.DirFS(one.Path), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, _ := entry.Info()
		if want, known := modes[name]; !known || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
		seen++
		return nil
	})
	if err != nil || seen != len(modes) {
		t.Errorf("%d files, %v", seen, err)
	}
	if left, _ := filepath.Glob(b.options.Dir + "/.tmp-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}

	again := b.register(dir, registry.RegisterOptions{})
	if !again.Unchanged || again.State != registry.Active {
		t.Errorf("registering again: %+v", again)
	}
	write(t, dir+"/plugin.py", "changed")
	if other := b.register(dir, registry.RegisterOptions{}); !other.Held || other.Digest == one.Digest {
		t.Errorf("other files under an approved version: %+v", other)
	}
	b.expect("p", "p/x@1.0.0")
	if target, _ := b.Resolve(context.Background(), "p"); target.Package.Digest != one.Digest {
		t.Error("other files took the place of those that were approved")
	}

	// Where nothing was approved, a version stands for its files.
	dir = author(t, "q", "1.0.0", "x")
	b.register(dir, registry.RegisterOptions{})
	write(t, dir+"/plugin.py", "changed")
	_, err = b.Register(context.Background(), dir, registry.RegisterOptions{})
	want := "invalid_input: q@1.0.0 is registered with other files: bump the version, or replace it with --force, or `plugins delete q@1.0.0` first"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if got, want := b.catalog.entries(), "plugin.registered p@1.0.0, plugin.enabled p@1.0.0, plugin.registered p@1.0.0 beside, plugin.registered q@1.0.0"; got != want {
		t.Errorf("ledger %s, want %s", got, want)
	}
}

func TestWhatCannotBeRegistered(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.install(author(t, "taken", "1.0.0", "x"))
	for _, c := range []struct {
		name string
		make func(dir string) (path string, o registry.RegisterOptions)
		want string
	}{
		{"nothing there", func(dir string) (string, registry.RegisterOptions) {
			return dir + "/none", registry.RegisterOptions{}
		}, "invalid_input: there is no DIR/none"},
		{"no manifest", func(dir string) (string, registry.RegisterOptions) { return dir, registry.RegisterOptions{} },
			"invalid_input: there is no manifest.yaml, manifest.yml, manifest.json, manifest.py in DIR or below"},
		{"an empty package file", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/p.tar.gz", "")
			return dir + "/p.tar.gz", registry.RegisterOptions{}
		}, "invalid_input: DIR/p.tar.gz is refused: it is no gzip: EOF"},
		{"a bare file", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/p.py", "")
			return dir + "/p.py", registry.RegisterOptions{}
		}, "invalid_input: a single file is registered with --dev; give it a manifest to install it"},
		{"another file", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/p.rb", "")
			return dir + "/p.rb", registry.RegisterOptions{Dev: true}
		}, "invalid_input: DIR/p.rb is neither a plugin's directory, nor a package file (.zip, .tar, .tar.gz, .tgz), nor a source file (.py, .ts, .js, .mjs)"},
		{"a bad manifest", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", "name: x\ntype: tool\n")
			return dir, registry.RegisterOptions{}
		}, "invalid_input: the plugin is not acceptable\nmanifest.yaml: at /runner: it does not say what to run, and there is no plugin.py, plugin.ts, plugin.js, plugin.mjs: give an entry or a command\nmanifest.yaml: at /version: it is missing"},
		{"a symbolic link", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", manifest("x", "1.0.0", "x"))
			_ = os.Symlink("/etc/passwd", dir+"/passwd")
			return dir, registry.RegisterOptions{}
		}, "invalid_input: passwd is a symbolic link: a package holds files only"},
		{"a pipe", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", manifest("x", "1.0.0", "x"))
			_ = syscall.Mkfifo(dir+"/pipe", 0o600)
			return dir, registry.RegisterOptions{}
		}, "invalid_input: pipe is neither a file nor a directory"},
		{"too much", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", manifest("x", "1.0.0", "x"))
			write(t, dir+"/data", "")
			_ = os.Truncate(dir+"/data", 1<<29)
			return dir, registry.RegisterOptions{}
		}, "invalid_input: a package is at most 512 MiB large"},
		{"a schema through a link", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", "name: x\nversion: 1.0.0\nrunner: {command: [sh]}\noperations: {x: {input: s.json}}\n")
			_ = os.Symlink("/etc/hostname", dir+"/s.json")
			return dir, registry.RegisterOptions{Dev: true}
		}, "invalid_input: s.json is a symbolic link: a package holds files only"},
		{"file names by letter case", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", manifest("x", "1.0.0", "x"))
			write(t, dir+"/lib/a", "")
			write(t, dir+"/Lib/b", "")
			return dir, registry.RegisterOptions{}
		}, "invalid_input: the file names Lib and lib differ in letter case only"},
		{"a file name with a line break", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", manifest("x", "1.0.0", "x"))
			write(t, dir+"/a\nb", "")
			return dir, registry.RegisterOptions{}
		}, "invalid_input: the file name \"a\\nb\" does not work everywhere"},
		{"plugin names by letter case", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", manifest("Taken", "2.0.0", "x"))
			write(t, dir+"/plugin.py", "")
			return dir, registry.RegisterOptions{}
		}, "invalid_input: Taken differs in letter case only from taken, which is registered"},
		{"another id", func(dir string) (string, registry.RegisterOptions) {
			write(t, dir+"/manifest.yaml", manifest("x", "2.0.0", "x"))
			write(t, dir+"/plugin.py", "")
			return dir, registry.RegisterOptions{ID: "y"}
		}, "invalid_input: the plugin is called x, not y"},
	} {
		dir := t.TempDir()
		path, options := c.make(dir)
		report, err := b.Register(context.Background(), path, options)
		if err == nil || err.Error() != strings.ReplaceAll(c.want, "DIR", dir) || len(report.Registered) > 0 {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
	if left, _ := filepath.Glob(b.options.Dir + "/*"); len(left) != 1 {
		t.Errorf("packages left behind: %v", left)
	}
	if got, want := b.catalog.entries(), "plugin.registered taken@1.0.0, plugin.enabled taken@1.0.0"; got != want {
		t.Errorf("ledger %s, want %s", got, want)
	}
}

// A directory that is named by a link counts as if it were named itself.
func TestADirectoryBehindALink(t *testing.T) {
	t.Parallel()
	b := open(t)
	dir, err := filepath.EvalSymlinks(author(t, "p", "1.0.0", "x"))
	if err != nil {
		t.Fatal(err)
	}
	link, round := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "round")
	for from, to := range map[string]string{link: dir, link + "2": "link", round: round} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	if one := b.install(link); one.Source != dir || one.Dev {
		t.Errorf("installed: %+v", one)
	}
	if one := b.register(link+"2", registry.RegisterOptions{}); !one.Unchanged {
		t.Errorf("installed again: %+v", one)
	}
	if _, err := b.Delete(context.Background(), "p"); err != nil {
		t.Fatal(err)
	}

	if one := b.register(link+"2", registry.RegisterOptions{Dev: true}); one.Path != dir || one.Source != dir {
		t.Errorf("linked: %+v", one)
	}
	b.clock.Add(1)
	write(t, dir+"/manifest.yaml", manifest("p", "1.1.0", "y"))
	b.expect("p", "p/y@1.1.0")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	b.clock.Add(1)
	write(t, dir+"/manifest.yaml", manifest("p", "1.2.0", "z"))
	b.expect("p", "p/z@1.2.0")

	for path, want := range map[string]string{link + "2": "there is no", round: "cannot be read"} {
		_, err := b.Register(context.Background(), path, registry.RegisterOptions{})
		if plugin.CodeOf(err) != plugin.CodeInvalidInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTreeWithOneBrokenPlugin(t *testing.T) {
	t.Parallel()
	b := open(t)
	root := t.TempDir()
	for dir, text := range map[string]string{
		"a": manifest("a", "1.0.0", "x"), "group/b": manifest("b", "1.0.0", "x"), "group/bad": "name: 7\n",
		"a/inner": manifest("inner", "1.0.0", "x"), "1/2/3/4/5/6": manifest("deep", "1.0.0", "x"), "1/2/3/4/5/too/deep": manifest("deeper", "1.0.0", "x"),
		".git/c": manifest("c", "1.0.0", "x"), "node_modules/d": manifest("d", "1.0.0", "x"), "zz": manifest("A", "1.0.0", "x"),
	} {
		write(t, filepath.Join(root, dir, "manifest.yaml"), text)
		write(t, filepath.Join(root, dir, "plugin.py"), "")
	}
	report, err := b.Register(context.Background(), root, registry.RegisterOptions{Enable: true})
	if err != nil {
		t.Fatal(err)
	}
	var names, failed []string
	for _, one := range report.Registered {
		names = append(names, one.Name+" "+string(one.State))
	}
	for _, one := range report.Failed {
		failed = append(failed, strings.TrimPrefix(one.Path, root))
	}
	if got, want := strings.Join(names, ", "), "deep active, a active, b active"; got != want {
		t.Errorf("registered %s, want %s", got, want)
	}
	if got, want := strings.Join(failed, ", "), "/group/bad, /zz"; got != want {
		t.Errorf("failed %s, want %s", got, want)
	}
	var problems contract.Problems
	if !errors.As(report.Failed[0].Err, &problems) || len(problems) != 1 {
		t.Errorf("the failure is %v", report.Failed[0].Err)
	}
	if _, err := b.Register(context.Background(), root, registry.RegisterOptions{ID: "a"}); plugin.CodeOf(err) != plugin.CodeInvalidInput {
		t.Errorf("an id for several: %v", err)
	}
}

func TestOverridesAndOnlyOneRecordOnFailure(t *testing.T) {
	t.Parallel()
	b := open(t)
	one := b.register(author(t, "p", "1.0.0", "x"), registry.RegisterOptions{ID: "p", DisplayName: "The P", Description: "Does x.", Enable: true})
	if one.DisplayName != "The P" || one.Description != "Does x." {
		t.Errorf("%+v", one)
	}
	b.catalog.fail = errors.New("the disk is full")
	_, err := b.Register(context.Background(), author(t, "q", "1.0.0", "x"), registry.RegisterOptions{})
	if plugin.CodeOf(err) != plugin.CodeInternal || !errors.Is(err, b.catalog.fail) {
		t.Errorf("got %v", err)
	}
	b.catalog.fail = nil
	b.expect("q", "not_found: no plugin is called q")
}
