// Package author_test runs the tests that authors of plugins write: suites for
// pytest, unittest and node:test, each made from the texts of a contract alone.
package author_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	_ "github.com/mortise-dev/mortise/internal/catalog/contract/all"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/surface/check"
	"github.com/mortise-dev/mortise/plugin"
)

// A suite is the tests of one plugin.
type suite struct {
	file, dir string
	units     int  // how many tests there are
	plain     bool // it needs no pytest
}

var suites = []suite{
	{"shu_weather", "weather_lookup", 10, false},
	{"shu_tickets", "ticket_sync", 6, false},
	{"shu_crm", "crm_notes", 5, true},
	{"shu_oncall", "oncall_digest", 3, false},
	{"shu_gchat", "gchat", 2, true},
	{"mill_auth_burst", "plugins/log_analysis/auth_burst", 10, false},
	{"mill_beacon", "plugins/network_forensics/beacon_finder", 5, false},
	{"mill_dread", "plugins/threat_modeling/dread_score", 3, true},
	{"mortise_letters", "letters", 4, false},
	{"mortise_words", "words", 1, true},
}

// written lays out the plugin of a suite.
func (s suite) written(t *testing.T) string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", s.file+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := txtar.Write(archive, dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.FromSlash(s.dir))
}

// run runs a suite with one Python and returns what it wrote and its results.
func (s suite) run(t *testing.T, i *interpreter.Interpreters, dir string) (string, []check.Unit, error) {
	t.Helper()
	pkg, m, err := host.ReadPackage(dir)
	if err != nil {
		t.Fatal(err)
	}
	results := filepath.Join(t.TempDir(), "results.xml")
	argv, err := i.TestCommand(t.Context(), pkg, m, results)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	failed := check.Tests(t.Context(), argv, dir, &out, &out)
	units, err := check.UnitsOf(results)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), units, failed
}

// TestSuitesWithPytest: every suite passes whole where pytest is installed. A test
// that is made to fail fails it.
func TestSuitesWithPytest(t *testing.T) {
	t.Parallel()
	i := interpreter.New(interpreter.Options{Dir: t.TempDir(), Python: pythonWith(t, "pytest")})
	for _, s := range suites {
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			dir := s.written(t)
			out, units, err := s.run(t, i, dir)
			if err != nil || passed(units) != s.units || len(units) != s.units {
				t.Errorf("%v: %d of %d tests passed; want %d\n%s", err, passed(units), len(units), s.units, out)
			}
			spoil(t, dir)
			if out, units, err := s.run(t, i, dir); !errors.Is(err, check.ErrTests) || passed(units) == len(units) {
				t.Errorf("a suite with a failing test ends with %v\n%s", err, out)
			}
		})
	}
}

// TestAsyncTestsWithoutPytestAsyncio: the SDK runs async tests and async fixtures
// itself, and what the suites import of pytest_asyncio is there.
func TestAsyncTestsWithoutPytestAsyncio(t *testing.T) {
	t.Parallel()
	i := interpreter.New(interpreter.Options{Dir: t.TempDir(), Python: hiding(t, pythonWith(t, "pytest"), "pytest_asyncio")})
	for _, s := range suites[:5] {
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			out, units, err := s.run(t, i, s.written(t))
			if err != nil || passed(units) != s.units {
				t.Errorf("%v: %d tests passed; want %d\n%s", err, passed(units), s.units, out)
			}
		})
	}
}

// TestSuitesWithoutPytest: what unittest can run is run, and all else is
// dependency_missing with the line that installs it.
func TestSuitesWithoutPytest(t *testing.T) {
	t.Parallel()
	i := interpreter.New(interpreter.Options{Dir: t.TempDir(), Python: hiding(t, pythonWith(t, "unittest"), "pytest")})
	for _, s := range suites {
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			out, units, err := s.run(t, i, s.written(t))
			switch {
			case s.plain && (err != nil || passed(units) != s.units):
				t.Errorf("%v: %d tests passed; want %d\n%s", err, passed(units), s.units, out)
			case !s.plain && (err == nil || errors.Is(err, check.ErrTests) || !strings.Contains(out, "-m pip install pytest pytest-asyncio\n")):
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func passed(units []check.Unit) (n int) {
	for _, u := range units {
		if u.Outcome == check.Pass {
			n++
		}
	}
	return n
}

// spoil adds a test that fails.
func spoil(t *testing.T, dir string) {
	t.Helper()
	name, text := "test_spoilt.py", "def test_spoilt():\n    assert 1 == 2\n"
	if _, err := os.Stat(filepath.Join(dir, "plugin.ts")); err == nil {
		name, text = "spoilt.test.ts", `import { test } from "node:test"; test("spoilt", () => { throw new Error("no") });`
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pythonWith returns a Python of this machine that has a module.
func pythonWith(t *testing.T, module string) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-I", "-c", "import "+module).Run() == nil {
			return name
		}
	}
	t.Skipf("no Python here has %s: apt-get install python3-%s python3-pytest-asyncio", module, module)
	return ""
}

// hiding returns a Python that has what another one has but for one module.
func hiding(t *testing.T, python, module string) string {
	t.Helper()
	where, err := exec.CommandContext(t.Context(), python, "-I", "-c", "import sys, os, importlib.util as u; print(sys.executable); s = u.find_spec('pytest'); print(os.path.dirname(os.path.dirname(s.origin)) if s else '')").Output()
	if err != nil {
		t.Fatal(err)
	}
	program, site, _ := strings.Cut(strings.TrimSuffix(string(where), "\n"), "\n")
	environment := filepath.Join(t.TempDir(), "venv")
	if out, err := exec.CommandContext(t.Context(), program, "-m", "venv", "--without-pip", environment).CombinedOutput(); err != nil {
		t.Skipf("this Python makes no environments: %v\n%s", err, out)
	}
	own, err := filepath.Glob(filepath.Join(environment, "lib", "python3*", "site-packages"))
	if err != nil || len(own) != 1 {
		t.Fatalf("%v, %v", own, err)
	}
	entries, _ := os.ReadDir(site) // "" where there is no pytest to begin with
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), module) {
			if err := os.Symlink(filepath.Join(site, entry.Name()), filepath.Join(own[0], entry.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	return filepath.Join(environment, "bin", "python")
}

// TestVitest: tests that import vitest are run by the one that the author has
// installed, and without one the message says how to install it.
func TestVitest(t *testing.T) {
	t.Parallel()
	s := suite{"mortise_vitest", "words", 1, false}
	dir := s.written(t)
	pkg, m, err := host.ReadPackage(dir)
	if err != nil {
		t.Fatal(err)
	}
	i := interpreter.New(interpreter.Options{Dir: t.TempDir()})
	if _, err := i.TestCommand(t.Context(), pkg, m, ""); plugin.CodeOf(err) != plugin.CodeDependencyMissing || !strings.Contains(err.Error(), "npm install --save-dev vitest") {
		t.Errorf("without vitest: %v", err)
	}
	modules := os.Getenv("MORTISE_TEST_VITEST")
	if modules == "" {
		t.Skip("MORTISE_TEST_VITEST names no node_modules that has vitest")
	}
	if err := os.Symlink(modules, filepath.Join(filepath.Dir(dir), "node_modules")); err != nil {
		t.Fatal(err)
	}
	if out, units, err := s.run(t, i, dir); err != nil || passed(units) != s.units {
		t.Errorf("%v: %d tests passed; want %d\n%s", err, passed(units), s.units, out)
	}
}

// TestAPluginRunByACommand is tested by what its tests are written in.
func TestAPluginRunByACommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"manifest.yaml": "name: tool\nversion: 1.0.0\nrunner: {kind: process, command: [./run.sh], protocol: \"1\"}\noperations: {go: {kind: tool}}\n",
		"run.sh":        "#!/bin/sh\necho hi\n",
		"test_run.py":   "import os, subprocess\n\ndef test_it_says_hi():\n    run = os.path.join(os.path.dirname(__file__), 'run.sh')\n    assert subprocess.run(['sh', run], capture_output=True).stdout == b'hi\\n'\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	i := interpreter.New(interpreter.Options{Dir: t.TempDir(), Python: pythonWith(t, "unittest")})
	if out, units, err := (suite{}).run(t, i, dir); err != nil || passed(units) != 1 {
		t.Errorf("%v: %d tests passed; want 1\n%s", err, passed(units), out)
	}
}
