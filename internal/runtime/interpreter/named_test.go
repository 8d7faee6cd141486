package interpreter_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/plugin"
)

// A scene is a machine with what a package must not reach: files of the data
// directory and of another hidden place, files elsewhere, and programs that
// leave a mark when anything runs them.
type scene struct {
	home, hide, elsewhere string
	pkg                   string
	canary                string
}

func newScene(t *testing.T) scene {
	t.Helper()
	library := string(forged{}.bytes())
	s := scene{canary: filepath.Join(t.TempDir(), "canary")}
	python := "#!/bin/sh\necho ran >> " + s.canary + "\necho prefix:/usr\necho path:/\necho /usr/bin/python3\necho 3.12.0\n"
	files := map[string]string{"key": "secret", "lib.so": library, "bin/python3": python, "bin/node": python, "x.py": "secret"}
	for _, dir := range []*string{&s.home, &s.hide, &s.elsewhere} {
		*dir = write(t, files)
	}
	files["python3"], files["node"], files["python3.11"] = python, python, python
	files["plugin.py"], files["main"] = "", "#!/bin/sh\n"
	s.pkg = write(t, files)
	for _, dir := range []string{s.home, s.hide, s.elsewhere, s.pkg} {
		for _, name := range []string{"bin/python3", "bin/node", "key", "python3", "node", "python3.11", "main"} {
			_ = os.Chmod(filepath.Join(dir, name), 0o755)
		}
	}
	for name, to := range map[string]string{"link": s.home + "/key", "linked": s.hide, "linkpy": s.elsewhere + "/bin/python3"} {
		if err := os.Symlink(to, filepath.Join(s.pkg, name)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// put makes an executable file of the package.
func (s scene) put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.pkg, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(s.pkg, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// reads returns what a cage would show.
func (s scene) reads(t *testing.T, m *plugin.Manifest) ([]string, error) {
	t.Helper()
	i := interpreter.New(interpreter.Options{Dir: filepath.Join(s.home, "runtime"), Home: s.home, Hide: []string{s.hide}})
	pkg := plugin.Package{Dir: s.pkg}
	argv, err := i.Command(t.Context(), pkg, m)
	if err != nil {
		return nil, err
	}
	return i.Reads(t.Context(), pkg, m, argv)
}

// holds makes sure that nothing ran and that nothing is shown of the places given.
func (s scene) holds(t *testing.T, reads []string, places ...string) {
	t.Helper()
	if _, err := os.Stat(s.canary); err == nil {
		t.Error("the host ran what the package names")
		_ = os.Remove(s.canary)
	}
	for _, path := range reads {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || strings.HasPrefix(real, filepath.Join(s.home, "runtime")) {
			continue
		}
		for _, place := range places {
			if below, err := filepath.Rel(place, real); err == nil && filepath.IsLocal(below) || real == "/" {
				t.Errorf("%s is shown, which is %s", path, real)
			}
		}
	}
}

// Whatever a package names, and in whatever way, the host runs none of it to
// find out what it is, and shows none of it but what the system has.
func TestWhatAPackageNamesIsNeitherRunNorShown(t *testing.T) {
	need(t, "python3")
	s := newScene(t)
	shebangs := []string{
		"#!%s/bin/python3\n", "#!%s/bin/node\n", "#! %s/bin/python3 -u\n", "#!%s/key\n", "#!%s/bin/../bin/python3\n",
	}
	for place, dir := range map[string]string{"data directory": s.home, "hidden place": s.hide, "elsewhere": s.elsewhere} {
		up := strings.Repeat("../", 12) + strings.TrimPrefix(dir, "/")
		for _, form := range shebangs {
			s.put(t, "main", fmt.Sprintf(form, dir))
			reads, _ := s.reads(t, command("./main"))
			s.holds(t, reads, s.home, s.hide, s.elsewhere)
		}
		for name, argv := range map[string][]string{
			"program": {dir + "/bin/python3"}, "program node": {dir + "/bin/node", "x"}, "key as program": {dir + "/key"},
			"argument": {"python3", dir + "/key"}, "argument of sh": {"/bin/sh", dir + "/x.py"},
			"argument with dots": {"sh", s.pkg + "/" + up + "/key"}, "dots through the system": {"sh", "/usr/lib/" + up + "/key"},
			"argument by a link": {"sh", s.pkg + "/link"}, "argument in a linked directory": {"sh", s.pkg + "/linked/key"},
		} {
			reads, _ := s.reads(t, command(argv...))
			t.Run(name+" in "+place, func(t *testing.T) { s.holds(t, reads, s.home, s.hide, s.elsewhere) })
		}
		for name, f := range map[string]forged{
			"loader": {loader: dir + "/lib.so"}, "key as loader": {loader: dir + "/key"},
			"library": {needed: []string{dir + "/lib.so"}}, "key as library": {needed: []string{dir + "/key"}},
			"library with dots": {needed: []string{"/usr/lib/" + up + "/lib.so"}}, "library relative": {needed: []string{up + "/key", up + "/lib.so"}},
			"rpath":            {rpath: []string{dir}, needed: []string{"lib.so", "key"}},
			"runpath":          {runpath: []string{"/nowhere:" + dir}, needed: []string{"lib.so", "key"}},
			"origin":           {runpath: []string{"$ORIGIN/" + up, "${ORIGIN}/linked"}, needed: []string{"lib.so", "key"}},
			"rpath with dots":  {rpath: []string{"/usr/lib/" + up}, needed: []string{"lib.so"}},
			"rpath and a path": {rpath: []string{"/"}, needed: []string{strings.TrimPrefix(dir, "/") + "/lib.so"}},
			"by a library":     {runpath: []string{"$ORIGIN"}, needed: []string{"second.so"}},
		} {
			s.put(t, "main", string(f.bytes()))
			s.put(t, "second.so", string(forged{loader: dir + "/lib.so", needed: []string{dir + "/lib.so"}}.bytes()))
			reads, _ := s.reads(t, command("./main"))
			t.Run(name+" in "+place, func(t *testing.T) { s.holds(t, reads, s.home, s.hide, s.elsewhere) })
		}
	}
	for name, m := range map[string]*plugin.Manifest{
		"its own python3": command("./python3"), "its own node": command("./node", "x"), "its own python3.11": command("./python3.11"),
		"its own by an absolute path": command(s.pkg + "/python3"), "a link to one elsewhere": command("./linkpy"),
		"a link to one elsewhere by an absolute path": command(s.pkg + "/linkpy"), "env": command("./env"), "env -S": command("./env-s"),
		"its own in a shebang": command("./own"),
	} {
		s.put(t, "env", "#!/usr/bin/env python3\n")
		s.put(t, "env-s", "#!/usr/bin/env -S "+s.home+"/bin/python3 -u\n")
		s.put(t, "own", "#!"+s.pkg+"/python3\n")
		reads, _ := s.reads(t, m)
		t.Run(name, func(t *testing.T) { s.holds(t, reads, s.home, s.hide, s.elsewhere) })
	}
}

// A hidden place stays hidden where it lies among the directories of the system of
// which a package may name anything else.
func TestAHiddenPlaceAmongSystemDirectoriesIsNotShown(t *testing.T) {
	need(t, "python3")
	for _, root := range []string{"/usr/local/lib", "/usr/local/bin", "/usr/share"} {
		t.Run(root, func(t *testing.T) {
			base, err := os.MkdirTemp(root, "mortise-test-")
			if err != nil {
				t.Skipf("needs the right to write to %s: run the test as root: %v", root, err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(base) })
			s := newScene(t)
			for from, to := range map[*string]string{&s.home: filepath.Join(base, "home"), &s.hide: filepath.Join(base, "hide")} {
				if err := os.CopyFS(to, os.DirFS(*from)); err != nil {
					t.Fatal(err)
				}
				*from = to
			}
			for name, to := range map[string]string{"link": s.home + "/key", "linked": s.hide} {
				if err := errors.Join(os.Remove(filepath.Join(s.pkg, name)), os.Symlink(to, filepath.Join(s.pkg, name))); err != nil {
					t.Fatal(err)
				}
			}
			for _, dir := range []string{s.home, s.hide} {
				for _, name := range []string{"key", "bin/python3"} {
					if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				for _, argv := range [][]string{
					{dir + "/bin/python3"}, {dir + "/key"}, {"python3", dir + "/key"}, {"/bin/sh", dir + "/x.py"}, {"sh", s.pkg + "/link"}, {"sh", s.pkg + "/linked/key"}, {"sh", dir},
				} {
					reads, _ := s.reads(t, command(argv...))
					s.holds(t, reads, s.home, s.hide)
				}
				for _, text := range []string{
					"#!" + dir + "/bin/python3\n", "#!" + dir + "/key\n", string(forged{loader: dir + "/lib.so"}.bytes()), string(forged{needed: []string{dir + "/lib.so", dir + "/key"}}.bytes()),
					string(forged{rpath: []string{dir}, needed: []string{"lib.so", "key"}}.bytes()),
				} {
					s.put(t, "main", text)
					reads, _ := s.reads(t, command("./main"))
					s.holds(t, reads, s.home, s.hide)
				}
			}
		})
	}
}

// A directory that looks like a virtual environment of the package's own says
// with its pyvenv.cfg where code is; it is not asked.
func TestAForgedVirtualEnvironmentIsNotRun(t *testing.T) {
	need(t, "python3")
	s := newScene(t)
	system, err := filepath.EvalSymlinks("/usr/bin/python3")
	if err != nil {
		t.Skip("needs /usr/bin/python3: install python3")
	}
	for _, dir := range []string{s.pkg, s.elsewhere} {
		env := filepath.Join(dir, "env")
		version := filepath.Base(system)
		for name, text := range map[string]string{
			"pyvenv.cfg":          "home = " + env + "/base/bin\n",
			"base/bin/" + version: "",
			"base/lib/" + version + "/encodings/__init__.py": "import posix\nposix.mkdir(" + fmt.Sprintf("%q", s.canary) + ")\n",
			"base/lib/" + version + "/os.py":                 "",
		} {
			path := filepath.Join(env, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(env, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(system, filepath.Join(env, "bin", "python3")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(s.hide, filepath.Join(env, "lib")); err != nil {
			t.Fatal(err)
		}
		s.put(t, "main", "#!"+env+"/bin/python3\n")
		for _, m := range []*plugin.Manifest{command("./main"), command(env+"/bin/python3", "./main")} {
			reads, _ := s.reads(t, m)
			s.holds(t, reads, s.home, s.hide, s.elsewhere)
		}
	}
}

// Interpreters that the host looks for are none of the package's and none in the
// data directory, wherever the PATH leads.
func TestAnInterpreterOnThePathIsNoFileOfAPackage(t *testing.T) {
	s := newScene(t)
	for _, path := range []string{s.pkg, s.home + "/bin", s.hide + "/bin", s.pkg + "/bin"} {
		t.Setenv("PATH", path+":/usr/bin:/bin")
		for _, m := range []*plugin.Manifest{manifest("plugin.py"), command("python3", "./plugin.py"), command("node", "x")} {
			reads, err := s.reads(t, m)
			s.holds(t, reads, s.home, s.hide)
			if err == nil && (m.Runner.Entry != "" || !strings.HasPrefix(path, s.pkg)) { // a program of the package may run as one, in its cage
				t.Errorf("PATH=%s, %+v: it is used", path, m.Runner)
			}
		}
	}
	i := interpreter.New(interpreter.Options{Dir: t.TempDir(), Home: s.home, Python: s.home + "/bin/python3"})
	_, err := i.Command(t.Context(), plugin.Package{Dir: s.pkg}, manifest("plugin.py"))
	is(t, err, plugin.CodeDependencyMissing, "data directory", "interpreters.python")
	s.holds(t, nil)
}

// A package's own libraries, those of the system and its programs are still
// found; so is what a binding names, but for hidden places.
func TestWhatMayBeNamedIsShown(t *testing.T) {
	need(t, "python3")
	s := newScene(t)
	bound := func(argv ...string) *plugin.Manifest {
		m := command(argv...)
		m.Runner.Binding = &plugin.Binding{}
		return m
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.put(t, "second.so", string(forged{}.bytes()))
	s.put(t, "main", string(forged{runpath: []string{"$ORIGIN"}, needed: []string{"second.so", "libc.so.6"}}.bytes()))
	for name, c := range map[string]struct {
		m    *plugin.Manifest
		want string
	}{
		"a library of the package":         {command("./main"), s.pkg + "/second.so"},
		"a program of the system":          {command("/bin/sh", "-c", "true"), "/bin/sh"},
		"the host itself":                  {command(self), self},
		"a file of the system":             {command("sh", "/usr/lib/os-release"), "/usr/lib/os-release"},
		"a program of the system, by name": {command("sh"), "/usr/bin"},
		"a bound program":                  {bound(s.elsewhere + "/bin/node"), s.elsewhere + "/bin"},
		"a bound script":                   {bound("python3", s.elsewhere+"/x.py"), s.elsewhere + "/x.py"},
		"a bound script beside the configuration in the data directory": {bound("python3", s.home+"/x.py"), s.home + "/x.py"},
	} {
		if reads, err := s.reads(t, c.m); err != nil || !slices.Contains(reads, c.want) {
			t.Errorf("%s: %s is not among %q: %v", name, c.want, reads, err)
		}
	}
	for _, m := range []*plugin.Manifest{
		bound("python3", s.home+"/key.db"), bound("python3", s.hide+"/x.py"), bound(s.hide + "/bin/node"), bound("python3", s.elsewhere+"/x.py", s.home+"/ledger.key"),
	} {
		for _, name := range []string{"key.db", "ledger.key"} {
			if err := os.WriteFile(filepath.Join(s.home, name), []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if reads, err := s.reads(t, m); err == nil {
			t.Errorf("%q is shown %q", m.Runner.Command, reads)
		}
	}
	s.holds(t, nil)
}
