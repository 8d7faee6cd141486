package interpreter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/carried"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/runtime/process"
	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// Started with the first argument "resolve", the test binary prints the
// command of the plugin in the second, made below the third.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "resolve" {
		i := interpreter.New(interpreter.Options{Dir: os.Args[3]})
		argv, err := i.Command(context.Background(), plugin.Package{Dir: filepath.Dir(os.Args[2]), Digest: "sha256:1"}, manifest(filepath.Base(os.Args[2])))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(strings.Join(argv, "\n"))
		return
	}
	// What the developer has installed for themselves is no part of these tests.
	if err := os.Setenv("PYTHONNOUSERSITE", "1"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// manifest returns that of a plugin whose code is in the file entry.
func manifest(entry string) *plugin.Manifest {
	return &plugin.Manifest{
		Name: "example.reference", Version: "1.0.0", Isolation: plugin.IsolationTenant,
		Runner: plugin.Runner{Kind: "process", Entry: entry, Protocol: "2"},
	}
}

func command(argv ...string) *plugin.Manifest {
	m := manifest("")
	m.Runner.Command = argv
	return m
}

// need skips the test where a program is missing.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("needs %s: install it and put it on the PATH", program)
	}
}

// write makes files below a new directory and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// age makes files look as if they were written a minute ago.
func age(t *testing.T, dir string, names ...string) {
	t.Helper()
	then := time.Now().Add(-time.Minute)
	for _, name := range names {
		if err := os.Chtimes(filepath.Join(dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
}

// call starts the plugin as the host does and returns what the call answers.
func call(t *testing.T, i *interpreter.Interpreters, pkg plugin.Package, m *plugin.Manifest, operation, input string) (string, error) {
	t.Helper()
	r := process.New(process.Options{
		Handshake: time.Minute, Host: protocol.Peer{Name: "test", Version: "0"},
		Scratch: t.TempDir(), Command: i.Command,
	})
	defer r.Close()
	op := &plugin.Operation{Name: operation, Kind: plugin.Tool, Timeout: time.Minute}
	m.Operations = []*plugin.Operation{op}
	target := &plugin.Target{Manifest: m, Operation: op, Package: pkg}
	result, err := r.Run(t.Context(), target, &plugin.Call{ID: "c1", Tenant: "local", Operation: target.Name(), Input: []byte(input)}, nil)
	return string(result.Data), err
}

// is fails the test unless err has the code and its message all the words.
func is(t *testing.T, err error, code plugin.Code, words ...string) {
	t.Helper()
	if plugin.CodeOf(err) != code {
		t.Fatalf("the error is %v; want %s", err, code)
	}
	var e *plugin.Error
	errors.As(err, &e)
	for _, word := range words {
		if !strings.Contains(e.Message, word) {
			t.Errorf("the message does not say %q:\n%s", word, e.Message)
		}
	}
}

func sdk(t *testing.T, path string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../../../sdk", path))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReferencePluginsAnswer(t *testing.T) {
	for _, c := range []struct{ program, dir, entry string }{
		{"python3", "python/reference", "plugin.py"},
		{"node", "typescript/reference", "plugin.ts"},
	} {
		for _, dev := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s dev %t", c.entry, dev), func(t *testing.T) {
				t.Parallel()
				need(t, c.program)
				i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
				got, err := call(t, i, plugin.Package{Dir: sdk(t, c.dir), Digest: "sha256:1", Dev: dev}, manifest(c.entry), "echo", `{"value":["Löve",9007199254740993]}`)
				if want := `{"value":["Löve",9007199254740993]}`; got != want || err != nil {
					t.Errorf("echo answers %s, %v; want %s", got, err, want)
				}
			})
		}
	}
}

func TestCommandOfPython(t *testing.T) {
	need(t, "python3")
	dir, pkg := t.TempDir(), write(t, map[string]string{"src/plugin.py": ""})
	i := interpreter.New(interpreter.Options{Dir: dir})
	argv, err := i.Command(t.Context(), plugin.Package{Dir: pkg}, manifest("src/plugin.py"))
	if err != nil {
		t.Fatal(err)
	}
	where, err := i.SDK("python")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"-I", "-X", "pycache_prefix=" + filepath.Join(dir, "pycache"), "-S", filepath.Join(where, "mortise", "_boot.py"), filepath.Join(pkg, "src", "plugin.py")}
	if !filepath.IsAbs(argv[0]) || !slices.Equal(argv[1:], want) {
		t.Errorf("the command is %q; want an absolute path and %q", argv, want)
	}
}

func TestProgramsAreFound(t *testing.T) {
	t.Setenv("PATH", write(t, map[string]string{"tool": "#!/bin/sh\n"}))
	pkg := write(t, map[string]string{"bin/run.sh": "#!/bin/sh\n"})
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	for _, c := range []struct{ name, want string }{
		{"./bin/run.sh", filepath.Join(pkg, "bin/run.sh")},
		{"tool", filepath.Join(os.Getenv("PATH"), "tool")},
		{"/opt/x", "/opt/x"},
	} {
		got, err := i.Command(t.Context(), plugin.Package{Dir: pkg}, command(c.name, "./a", "-b"))
		if want := []string{c.want, "./a", "-b"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %q, %v; want %q", c.name, got, err, want)
		}
	}
	// A script given to a program is one of the package's files.
	got, err := i.Command(t.Context(), plugin.Package{Dir: pkg}, command("tool", "./bin/run.sh"))
	if err != nil || got[1] != filepath.Join(pkg, "bin/run.sh") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	outside := write(t, map[string]string{"plugin.py": "", "run.sh": "#!/bin/sh\n"})
	pkg := write(t, map[string]string{"dir/x": ""})
	for link, to := range map[string]string{"link.py": "plugin.py", "link.sh": "run.sh"} {
		if err := os.Symlink(filepath.Join(outside, to), filepath.Join(pkg, link)); err != nil {
			t.Fatal(err)
		}
	}
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	for _, c := range []struct {
		manifest *plugin.Manifest
		code     plugin.Code
		words    string
	}{
		{manifest("../plugin.py"), plugin.CodeLaunchFailed, "../plugin.py is not inside the package"},
		{manifest("link.py"), plugin.CodeLaunchFailed, "link.py cannot be used"},
		{manifest("plugin.py"), plugin.CodeLaunchFailed, filepath.Join(pkg, "plugin.py") + " is not there"},
		{manifest("plugin.ts"), plugin.CodeLaunchFailed, "plugin.ts is not there"},
		{manifest("plugin.rb"), plugin.CodeLaunchFailed, `"plugin.rb"`},
		{manifest(""), plugin.CodeLaunchFailed, "neither a command nor a source file"},
		{command("./../run.sh"), plugin.CodeLaunchFailed, "./../run.sh is not inside the package"},
		{command("./link.sh"), plugin.CodeLaunchFailed, "link.sh cannot be used"},
		{command("./run.sh"), plugin.CodeLaunchFailed, filepath.Join(pkg, "run.sh") + " is not there"},
		{command("./dir"), plugin.CodeLaunchFailed, "is not a file"},
		{command("bin/run.sh"), plugin.CodeLaunchFailed, "bin/run.sh is neither"},
		{command("no-such-program"), plugin.CodeDependencyMissing, "no-such-program is not installed"},
	} {
		argv, err := i.Command(t.Context(), plugin.Package{Dir: pkg}, c.manifest)
		if argv != nil {
			t.Errorf("the command is %q; want none", argv)
		}
		is(t, err, c.code, "example.reference: ", c.words)
	}
	_, err := i.Command(t.Context(), plugin.Package{Dir: filepath.Join(pkg, "gone")}, manifest("plugin.py"))
	is(t, err, plugin.CodeLaunchFailed, "the package cannot be opened")
}

func TestNothingCanBeWritten(t *testing.T) {
	need(t, "python3")
	dir := write(t, map[string]string{"file": ""})
	i := interpreter.New(interpreter.Options{Dir: filepath.Join(dir, "file", "runtime")})
	_, err := i.Command(t.Context(), plugin.Package{Dir: sdk(t, "python/reference")}, manifest("plugin.py"))
	is(t, err, plugin.CodeLaunchFailed, "laying out the SDK")
}

func TestFirstUseByManyAtOnce(t *testing.T) {
	need(t, "python3")
	need(t, "node")
	dir := t.TempDir()
	i := interpreter.New(interpreter.Options{Dir: dir})
	var work sync.WaitGroup
	seen := make(chan string, 64)
	for n := range 8 {
		entry := []string{"python/reference/plugin.py", "typescript/reference/plugin.ts"}[n%2]
		work.Go(func() {
			argv, err := i.Command(t.Context(), plugin.Package{Dir: sdk(t, filepath.Dir(entry)), Digest: "sha256:1"}, manifest(filepath.Base(entry)))
			seen <- fmt.Sprint(entry, argv, err)
		})
		if n < 4 { // two other hosts for each language
			work.Go(func() {
				out, err := exec.Command(os.Args[0], "resolve", sdk(t, entry), dir).Output()
				seen <- fmt.Sprint(entry, strings.Split(strings.TrimSpace(string(out)), "\n"), err)
			})
		}
	}
	work.Wait()
	close(seen)
	different := map[string]int{}
	for one := range seen {
		different[one]++
	}
	if len(different) != 2 {
		t.Errorf("the answers differ: %v", different)
	}
	for one := range different {
		if !strings.HasSuffix(one, "<nil>") {
			t.Error(one)
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*", ".new-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestDamagedSDKIsLaidOutAgain(t *testing.T) {
	dir := t.TempDir()
	where, err := interpreter.New(interpreter.Options{Dir: dir}).SDK("python")
	if err != nil {
		t.Fatal(err)
	}
	boot := filepath.Join(where, "mortise", "_boot.py")
	whole, err := os.ReadFile(boot)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() error{
		"cut off": func() error { return os.Truncate(boot, 10) },
		"removed": func() error { return os.Remove(boot) },
		"all":     func() error { return os.RemoveAll(where) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := interpreter.New(interpreter.Options{Dir: dir}).SDK("python"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(boot); err != nil || string(now) != string(whole) {
			t.Errorf("%s: it is not as it was: %v", name, err)
		}
	}
	if _, err := interpreter.New(interpreter.Options{Dir: dir}).SDK("cobol"); err == nil {
		t.Error("there is an SDK for cobol")
	}
}

// A shim that counts how often it was asked.
func shim(real, version string) string {
	return "#!/bin/sh\necho asked >> \"$0.asked\"\necho '" + real + "'\necho " + version + "\n"
}

func asked(t *testing.T, path string) int {
	t.Helper()
	said, _ := os.ReadFile(path + ".asked")
	return strings.Count(string(said), "\n")
}

func TestShimIsAskedOnce(t *testing.T) {
	real := write(t, map[string]string{"python3": "#!/bin/sh\n", "other": "#!/bin/sh\n"})
	path := write(t, map[string]string{"python3": shim(filepath.Join(real, "python3"), "3.12.1")})
	t.Setenv("PATH", path+string(os.PathListSeparator)+os.Getenv("PATH"))
	dir, pkg := t.TempDir(), write(t, map[string]string{"plugin.py": ""})
	resolve := func(m *plugin.Manifest) string {
		t.Helper()
		argv, err := interpreter.New(interpreter.Options{Dir: dir}).Command(t.Context(), plugin.Package{Dir: pkg}, m)
		if err != nil {
			t.Fatal(err)
		}
		return argv[0]
	}
	check := func(when, got, want string, times int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the program is %s; want %s", when, got, want)
		}
		if n := asked(t, filepath.Join(path, "python3")); n != times {
			t.Errorf("%s: the shim was asked %d times; want %d", when, n, times)
		}
	}
	check("first", resolve(manifest("plugin.py")), filepath.Join(real, "python3"), 1)
	check("another host", resolve(manifest("plugin.py")), filepath.Join(real, "python3"), 1)
	check("by a command", resolve(command("python3", "-m", "x")), filepath.Join(real, "python3"), 1)

	_ = carried.Write(filepath.Join(path, "python3"), []byte(shim(filepath.Join(real, "other"), "3.13.0")+"\n"))
	check("changed", resolve(manifest("plugin.py")), filepath.Join(real, "other"), 2)
	_ = os.Remove(filepath.Join(real, "other"))
	check("the real one is gone", resolve(manifest("plugin.py")), filepath.Join(path, "python3"), 3)

	_ = os.WriteFile(filepath.Join(dir, "interpreters.json"), []byte("{"), 0o644)
	check("the memory is damaged", resolve(manifest("plugin.py")), filepath.Join(path, "python3"), 4)
	found := interpreter.New(interpreter.Options{Dir: dir}).Found()[0]
	check("asked for a report", found.Real, filepath.Join(path, "python3"), 5)
	if found.Name != "python3" || found.Version != "3.13.0" || found.Problem != "" {
		t.Errorf("found is %+v", found)
	}
}

func TestInterpreterThatWillNotDo(t *testing.T) {
	const remedy = ": install Python 3.9 or later, or set interpreters.python in mortise.yaml"
	for _, c := range []struct {
		name, set, problem string
		path               map[string]string
	}{
		{"absent", "", "python3 is not installed" + remedy, nil},
		{"too old", "", "python3 is Python 3.8.18 and too old" + remedy, map[string]string{"python3": shim("/x", "3.8.18")}},
		{"much too old", "", "python is Python 2.7.18 and too old" + remedy, map[string]string{"python": shim("/x", "2.7.18")}},
		{"broken", "", "python3 does not say what it is (exit status 127: pyenv: no such version)" + remedy, map[string]string{"python3": "#!/bin/sh\necho pyenv: no such version >&2; exit 127\n"}},
		{"silent", "", `python3 does not say what it is (it answers "")` + remedy, map[string]string{"python3": "#!/bin/sh\n"}},
		{"babbling", "", `(it answers "a\nb\n")` + remedy, map[string]string{"python3": "#!/bin/sh\necho a; echo b\n"}},
		{"configured and absent", "/nowhere/python3", "interpreters.python in mortise.yaml is /nowhere/python3, which cannot be run: no such file or directory", map[string]string{"python3": shim("/x", "3.12.0")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("PATH", write(t, c.path))
			pkg := write(t, map[string]string{"plugin.py": ""})
			i := interpreter.New(interpreter.Options{Dir: t.TempDir(), Python: c.set})
			_, err := i.Command(t.Context(), plugin.Package{Dir: pkg}, manifest("plugin.py"))
			is(t, err, plugin.CodeDependencyMissing, "example.reference: ", c.problem)
			if found := i.Found()[0]; !strings.HasSuffix(found.Problem, c.problem) {
				t.Errorf("found is %+v", found)
			}
		})
	}
	t.Run("the second name will do", func(t *testing.T) {
		path := write(t, map[string]string{"python3": "#!/bin/sh\nexit 1\n", "python": shim("/x", "3.14.0")})
		t.Setenv("PATH", path)
		found := interpreter.New(interpreter.Options{Dir: t.TempDir()}).Found()[0]
		if found.Path != filepath.Join(path, "python") || found.Problem != "" {
			t.Errorf("found is %+v", found)
		}
	})
	t.Run("old node", func(t *testing.T) {
		t.Setenv("PATH", write(t, map[string]string{"node": shim("/x", "18.20.0")}))
		found := interpreter.New(interpreter.Options{Dir: t.TempDir()}).Found()[1]
		if !strings.HasSuffix(found.Problem, "node is Node 18.20.0 and too old: install Node 20 or later, or set interpreters.node in mortise.yaml") {
			t.Errorf("found is %+v", found)
		}
	})
	t.Run("installed meanwhile", func(t *testing.T) {
		path := t.TempDir()
		t.Setenv("PATH", path)
		pkg := write(t, map[string]string{"plugin.py": ""})
		i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
		_, err := i.Command(t.Context(), plugin.Package{Dir: pkg}, manifest("plugin.py"))
		is(t, err, plugin.CodeDependencyMissing)
		_ = carried.Write(filepath.Join(path, "python3"), []byte(shim("/x", "3.12.0")))
		if _, err := i.Command(t.Context(), plugin.Package{Dir: pkg}, manifest("plugin.py")); err != nil {
			t.Error(err)
		}
	})
}

func TestInstalledPackagesAreImported(t *testing.T) {
	need(t, "python3")
	if runtime.GOOS == "windows" {
		t.Skip("needs a system other than Windows, where a virtual environment looks otherwise")
	}
	env := t.TempDir()
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", env).CombinedOutput(); err != nil {
		t.Skipf("needs the Python module venv: install python3-venv: %s", out)
	}
	sites, _ := filepath.Glob(filepath.Join(env, "lib", "python3*", "site-packages"))
	if len(sites) != 1 {
		t.Fatalf("the site directories are %q", sites)
	}
	_ = os.WriteFile(filepath.Join(sites[0], "installed.py"), []byte("here = True\n"), 0o644)
	_ = os.WriteFile(filepath.Join(sites[0], "slow.pth"), []byte("import sys; sys.exit('a .pth file ran')\n"), 0o644)
	pkg := write(t, map[string]string{"plugin.py": `
from mortise import Plugin
import installed, sys
plugin = Plugin("example.reference", version="1.0.0")
@plugin.tool
def look() -> list:
    return [installed.here, "site" in sys.modules, sys.path.index(` + fmt.Sprintf("%q", sites[0]) + `) == len(sys.path) - 1]
plugin.run()
`})
	i := interpreter.New(interpreter.Options{Dir: t.TempDir(), Python: filepath.Join(env, "bin", "python3")})
	got, err := call(t, i, plugin.Package{Dir: pkg}, manifest("plugin.py"), "look", `{}`)
	if want := `[true,false,true]`; got != want || err != nil {
		t.Errorf("look answers %s, %v; want %s", got, err, want)
	}
}

// A plugin may name its interpreter itself, by a path or in its first line: in a
// cage that finds what it finds outside.
func TestAnInterpreterThatIsNamedFindsItsPackages(t *testing.T) {
	need(t, "python3")
	env := t.TempDir()
	if out, err := exec.Command("python3", "-m", "venv", "--without-pip", env).CombinedOutput(); err != nil {
		t.Skipf("needs the Python module venv: install python3-venv: %s", out)
	}
	python := filepath.Join(env, "bin", "python")
	pkg := plugin.Package{Dir: write(t, map[string]string{"plugin.py": "#!" + python + "\n"})}
	if err := os.Chmod(filepath.Join(pkg.Dir, "plugin.py"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*plugin.Manifest{"by a path": command(python, "./plugin.py"), "in its first line": command("./plugin.py")} {
		i := interpreter.New(interpreter.Options{Dir: t.TempDir()}) // which never heard of it
		argv, err := i.Command(t.Context(), pkg, m)
		if err != nil {
			t.Fatal(err)
		}
		reads, err := i.Reads(t.Context(), pkg, m, argv)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{python, filepath.Join(env, "lib"), filepath.Join(env, "pyvenv.cfg")} {
			if !slices.Contains(reads, path) {
				t.Errorf("%s: a cage does not show %s: %q", name, path, reads)
			}
		}
	}
}

// Who may not write where Python is installed has packages at home, where pip
// puts them. They count from the moment they are there.
func TestPackagesOfTheUserAreImported(t *testing.T) {
	need(t, "python3")
	if out, err := exec.Command("python3", "-c", "import sys; print(sys.prefix == sys.base_prefix)").Output(); err != nil || string(out) != "True\n" {
		t.Skipf("needs a python3 that is not of a virtual environment: deactivate the environment: %s%v", out, err)
	}
	home := t.TempDir()
	t.Setenv("PYTHONUSERBASE", home)
	t.Setenv("PYTHONNOUSERSITE", "")
	pkg := plugin.Package{Dir: write(t, map[string]string{"plugin.py": `
from mortise import Plugin
plugin = Plugin("example.reference", version="1.0.0")
@plugin.tool
def look() -> int:
    import only_mine
    return only_mine.value
plugin.run()
`})}
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	if _, err := call(t, i, pkg, manifest("plugin.py"), "look", `{}`); err == nil {
		t.Error("a package was imported that is not installed")
	}
	out, err := exec.Command("python3", "-c", "import site; print(site.getusersitepackages())").Output()
	site := strings.TrimSpace(string(out))
	if err != nil || !strings.HasPrefix(site, home) {
		t.Fatalf("%q %v", out, err)
	}
	if err := os.MkdirAll(site, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(site, "only_mine.py"), []byte("value = 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := call(t, i, pkg, manifest("plugin.py"), "look", `{}`); got != "7" || err != nil {
		t.Errorf("look answers %s, %v", got, err)
	}
	argv, err := i.Command(t.Context(), pkg, manifest("plugin.py"))
	if err != nil {
		t.Fatal(err)
	}
	if reads, err := i.Reads(t.Context(), pkg, manifest("plugin.py"), argv); err != nil || !slices.Contains(reads, site) {
		t.Errorf("a cage does not show %s: %q %v", site, reads, err)
	}
}

// Debian's packages for Python keep in /usr/share what they cannot do without.
func TestTheSystemsPythonReadsItsData(t *testing.T) {
	const system = "/usr/bin/python3"
	need(t, system)
	i := interpreter.New(interpreter.Options{Dir: t.TempDir(), Python: system})
	pkg := plugin.Package{Dir: write(t, map[string]string{"plugin.py": ""})}
	argv, err := i.Command(t.Context(), pkg, manifest("plugin.py"))
	if err != nil {
		t.Fatal(err)
	}
	reads, err := i.Reads(t.Context(), pkg, manifest("plugin.py"), argv)
	if err != nil || argv[0] != system || !slices.Contains(reads, "/usr/share") {
		t.Errorf("%s reads %q, %v", argv[0], reads, err)
	}
}

func TestFoundIsJSON(t *testing.T) {
	data, err := json.Marshal(interpreter.New(interpreter.Options{Dir: t.TempDir()}).Found())
	if err != nil || !strings.HasPrefix(string(data), `[{"name":"python3"`) {
		t.Errorf("found is %s, %v", data, err)
	}
}

// A plugin in a sandbox cannot write bytecode: that of the SDK and of the standard
// library is there before its first start, whatever contract it is written to.
func TestNothingIsCompiledInACage(t *testing.T) {
	need(t, "python3")
	dir := t.TempDir()
	i := interpreter.New(interpreter.Options{Dir: dir, Caged: func() bool { return true }})
	for _, shim := range []string{"", "eventmill", "shu"} {
		pkg, m := write(t, map[string]string{"plugin.py": ""}), manifest("plugin.py")
		m.Contract, m.Runner.Module, m.Runner.Class = plugin.Contract{Shim: shim, ShimManifest: shim == "shu"}, "plugin", "Plugin"
		argv, err := i.Command(t.Context(), plugin.Package{Dir: pkg}, m)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(argv[0], append([]string{"-B", "-v"}, argv[1:]...)...) // without an input it ends by itself
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "import 'mortise._") {
			t.Fatalf("%q did not start: %s", shim, out)
		}
		for line := range strings.Lines(string(out)) {
			line = strings.Trim(line, "'\n")
			if strings.HasPrefix(line, "# code object from ") && strings.HasSuffix(line, ".py") && !strings.Contains(line, pkg) {
				t.Errorf("%q: it was compiled: %s", shim, line)
			}
		}
	}
	where, err := i.SDK("python")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-I", "-S", "-B", "-v", "-X", "pycache_prefix="+filepath.Join(dir, "bytecode"), "-c",
		"import sys; sys.path.insert(0, sys.argv[1]); import mortise, mortise._plugin, mortise._schema, json, asyncio, email, urllib.request, zipfile", where)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "import 'mortise._plugin'") {
		t.Fatalf("%v: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "# code object from ") && strings.HasSuffix(strings.Trim(line, "'\n"), ".py") {
			t.Errorf("it was compiled: %s", line)
		}
	}
}
