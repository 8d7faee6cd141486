package interpreter

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/pattern"
	"github.com/mortise-dev/mortise/plugin"
)

// TestCommand returns the program that runs the unit tests of the plugin m in
// pkg with the SDK at hand, to be started in the package's directory:
//
//	.py             pytest where it is installed, else unittest, over test*.py and *_test.py
//	Shu             likewise, with shu_plugin_sdk and the package under its own name
//	Event Mill      likewise, with framework and the tree as `plugins`
//	.ts, .js, .mjs  vitest where the plugin has it installed, else node --test, over *.test.ts, *.test.js and *.test.mjs
//	a command       go test where there is a go.mod, else what its test files are written in
//
// in the plugin's directory, and in its tests or test with what is below. junit
// is the file that the results are written to as JUnit XML, "" for none. Without tests
// the error is not_found; without the program that runs them it is dependency_missing.
func (i *Interpreters) TestCommand(ctx context.Context, pkg plugin.Package, m *plugin.Manifest, junit string) ([]string, error) {
	argv, err := i.testCommand(ctx, pkg, m, junit)
	if err != nil {
		return nil, named(m.Name, err)
	}
	return argv, nil
}

func (i *Interpreters) testCommand(ctx context.Context, pkg plugin.Package, m *plugin.Manifest, junit string) ([]string, error) {
	switch extension := filepath.Ext(m.Runner.Entry); {
	case m.Contract.SharesProcess:
		tool := filepath.Join(pkg.Dir, filepath.FromSlash(m.Dir))
		return i.pythonTests(ctx, pkg, tested{"eventmill", tool, tool, junit})
	case m.Contract.ShimManifest:
		about, err := aboutManifest(m)
		if err != nil {
			return nil, err
		}
		return i.pythonTests(ctx, pkg, tested{"shu", pkg.Dir, about, junit})
	case extension == ".py":
		return i.pythonTests(ctx, pkg, tested{"mortise", pkg.Dir, "", junit})
	case slices.Contains(nodeExtensions, extension):
		return i.nodeTests(ctx, pkg, junit)
	}
	if exists(filepath.Join(pkg.Dir, "go.mod")) {
		return goTests(junit)
	}
	argv, err := i.pythonTests(ctx, pkg, tested{"mortise", pkg.Dir, "", junit})
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		argv, err = i.nodeTests(ctx, pkg, junit)
	}
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there are no tests in %s: neither a go.mod, nor test*.py, nor *.test.ts, *.test.js or *.test.mjs", pkg.Dir)
	}
	return argv, err
}

// NeedsPytest is the exit status of tests that only pytest can run, where it is not
// installed; what to install is on their standard error.
const NeedsPytest = 69

// maxTests bounds the test files of one plugin.
const maxTests = 2000

// tested is what _tests.py is told of a plugin in Python.
type tested struct {
	kind  string // mortise, shu or eventmill
	dir   string // where its tests are
	about string // what else its kind needs to be known
	junit string
}

// pythonTests runs the SDK's _tests.py.
func (i *Interpreters) pythonTests(ctx context.Context, pkg plugin.Package, t tested) ([]string, error) {
	found, err := i.python.find(ctx, pkg.Dir)
	if err != nil {
		return nil, err
	}
	sdk, err := i.pythonSDK.layOut()
	if err != nil {
		return nil, err
	}
	files, err := testFiles(t.dir, func(name string) bool {
		return filepath.Ext(name) == ".py" && (strings.HasPrefix(name, "test") || strings.HasSuffix(name, "_test.py"))
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no test*.py in %s", t.dir)
	}
	argv := append(isolated(found, i.pycache()), filepath.Join(sdk, "mortise", "_tests.py"), t.kind, sdk, pkg.Dir, t.about, t.junit)
	for _, file := range files {
		argv = append(argv, filepath.Join(t.dir, file))
	}
	return argv, nil
}

// goTests is what tests a plugin in Go.
func goTests(junit string) ([]string, error) {
	if junit != "" {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "go test writes no JUnit file: leave --junit and --json away")
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeDependencyMissing, "the tests are written in Go, and there is no Go toolchain on PATH")
	}
	return []string{tool, "test", "./..."}, nil
}

func (i *Interpreters) nodeTests(ctx context.Context, pkg plugin.Package, junit string) ([]string, error) {
	found, err := i.node.find(ctx, pkg.Dir)
	if err != nil {
		return nil, err
	}
	files, err := testFiles(pkg.Dir, func(name string) bool {
		extension := filepath.Ext(name)
		return slices.Contains(nodeExtensions, extension) && strings.HasSuffix(name, ".test"+extension)
	})
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no *.test.ts, *.test.js or *.test.mjs in %s", pkg.Dir)
	}
	if slices.ContainsFunc(files, func(name string) bool { return usesVitest(filepath.Join(pkg.Dir, name)) }) {
		return i.vitest(found, pkg.Dir, junit)
	}
	argv := []string{found.Real, "--enable-source-maps", "--test"}
	if junit != "" {
		argv = append(argv, "--test-reporter=spec", "--test-reporter-destination=stderr", "--test-reporter=junit", "--test-reporter-destination="+junit)
	}
	pkg.Dev = true // the user who runs tests is the plugin's author
	for _, name := range files {
		file, err := i.bundles.bundle(ctx, pkg, name, true)
		if err != nil {
			return nil, err
		}
		argv = append(argv, file)
	}
	return argv, nil
}

// importsVitest finds the import of vitest.
var importsVitest = pattern.New(`(?m)(from|import)\s*\(?["']vitest["']`)

// usesVitest reports whether a test is one for vitest.
func usesVitest(file string) bool {
	text, err := os.ReadFile(file)
	return err == nil && importsVitest.Match(text)
}

// runVitest has vitest run the tests below a directory by its author's settings,
// with the SDK under its name beside them.
const runVitest = `import { pathToFileURL } from "node:url";
const [program, root, sdk, junit] = process.argv.slice(1);
const { startVitest } = await import(pathToFileURL(program).href);
const reporters = junit ? ["default", "junit"] : ["default"];
const options = { root, run: true, watch: false, reporters, ...(junit && { outputFile: { junit } }) };
const alias = { "mortise/testing": sdk + "/src/testing.ts", mortise: sdk + "/src/index.ts" };
const ran = await startVitest("test", [], options, { resolve: { alias } });
await ran?.close();`

// vitest is what runs tests that import it: the author's own, which is installed
// beside the plugin or in a directory above. The SDK is at hand under its name.
func (i *Interpreters) vitest(node Found, dir, junit string) ([]string, error) {
	sdk, err := i.nodeSDK.layOut()
	if err != nil {
		return nil, err
	}
	for above := dir; ; above = filepath.Dir(above) {
		program := filepath.Join(above, "node_modules", "vitest", "dist", "node.js")
		if exists(program) {
			return []string{node.Real, "--input-type=module", "-e", runVitest, "--", program, dir, sdk, junit}, nil
		}
		if above == filepath.Dir(above) {
			return nil, plugin.Errorf(plugin.CodeDependencyMissing, "the tests import vitest, which is not installed: run `npm install --save-dev vitest` in %s", dir)
		}
	}
}

// testFiles returns the tests of a package by their paths below its directory: those
// at its top, and all that are in tests or test.
func testFiles(dir string, isTest func(name string) bool) ([]string, error) {
	var files []string
	for _, folder := range []string{".", "tests", "test"} {
		root := filepath.Join(dir, folder)
		err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				if file == root {
					return fs.SkipDir // a folder that is not there has none
				}
				return err
			}
			switch name := entry.Name(); {
			case entry.IsDir() && file != root && (folder == "." || strings.HasPrefix(name, ".") || name == "node_modules" || name == "__pycache__"):
				return fs.SkipDir
			case !entry.Type().IsRegular() || !isTest(name):
				return nil
			case len(files) == maxTests:
				return plugin.Errorf(plugin.CodeInvalidInput, "there are more than %d test files in %s", maxTests, dir)
			}
			relative, err := filepath.Rel(dir, file)
			files = append(files, relative)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
