package interpreter

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// TestCommand returns the program that runs the unit tests of the plugin m in
// pkg with the SDK at hand, to be started in the package's directory:
//
//	.py             unittest, over test*.py
//	Shu             unittest, over test*.py, with shu_plugin_sdk and the package under its own name
//	Event Mill      pytest where it is installed, else unittest, over the tool's test*.py
//	.ts, .js, .mjs  node --test, over *.test.ts, *.test.js and *.test.mjs
//
// in the plugin's directory and its tests or test. Without tests, and for a
// plugin that is run by a command, the error is not_found.
func (i *Interpreters) TestCommand(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	var argv []string
	var err error
	switch extension := filepath.Ext(m.Runner.Entry); {
	case m.Contract.SharesProcess:
		argv, err = i.toolTests(ctx, pkg, m)
	case m.Contract.ShimManifest:
		argv, err = i.shuTests(ctx, pkg, m)
	case extension == ".py":
		argv, err = i.pythonTests(ctx, pkg)
	case slices.Contains(nodeExtensions, extension):
		argv, err = i.nodeTests(ctx, pkg)
	default:
		err = plugin.Errorf(plugin.CodeNotFound, "a plugin that is run by a command is tested with the tools of its own language")
	}
	if err != nil {
		return nil, named(m.Name, err)
	}
	return argv, nil
}

// testsPath lets tests import what plugins may: an isolated Python leaves the
// packages out that only the user has.
const testsPath = `import sys
sys.path += filter(None, [sys._xoptions.get("user_site")])
`

// unittests runs the tests of each directory given after the SDK's and the
// package's own.
const unittests = testsPath + `import sys, unittest
sdk, package, *folders = sys.argv[1:]
sys.path[:0] = [package, sdk]
sys.argv[:] = ["mortise test"]
suite = unittest.TestSuite(unittest.TestLoader().discover(folder) for folder in folders)
sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())`

func (i *Interpreters) pythonTests(ctx context.Context, pkg plugin.Package) ([]string, error) {
	return i.unittests(ctx, pkg, unittests)
}

// unittests runs a script that finds tests, with the SDK, the package, what is
// given, and then the folders that tests are in.
func (i *Interpreters) unittests(ctx context.Context, pkg plugin.Package, script string, given ...string) ([]string, error) {
	found, err := i.python.find(ctx, pkg.Dir)
	if err != nil {
		return nil, err
	}
	sdk, err := i.pythonSDK.layOut()
	if err != nil {
		return nil, err
	}
	files := testFiles(pkg.Dir, func(name string) bool { return strings.HasPrefix(name, "test") && filepath.Ext(name) == ".py" })
	if len(files) == 0 {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no test*.py in %s", pkg.Dir)
	}
	argv := append(isolated(found, i.pycache()), "-c", script, sdk, pkg.Dir)
	argv = append(argv, given...)
	fixed := len(argv)
	for _, file := range files {
		if folder := filepath.Join(pkg.Dir, filepath.Dir(file)); !slices.Contains(argv[fixed:], folder) {
			argv = append(argv, folder)
		}
	}
	return argv, nil
}

// tooltests runs the tests of a tool of Event Mill with the modules that the
// host provides, and with the package that the tool stands in as `plugins`. What
// is written as functions runs without pytest too, as far as it takes no fixtures.
const tooltests = testsPath + `import sys, os, inspect, unittest
sdk, package, tool, *folders = sys.argv[1:]
sys.path[:0] = [tool, os.path.join(sdk, "eventmill"), sdk]
if os.path.basename(package) == "plugins":
    sys.path.insert(1, os.path.dirname(package))
sys.argv[:] = ["mortise test"]
try:
    import pytest
except ImportError:
    pytest = None
if pytest is not None:
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--rootdir", tool, *folders]))
loader, suite = unittest.TestLoader(), unittest.TestSuite()
for folder in folders:
    suite.addTests(loader.discover(folder, top_level_dir=folder))
    for name in sorted(os.listdir(folder)):
        module = sys.modules.get(name[:-3]) if name.startswith("test") and name.endswith(".py") else None
        for title, test in sorted(vars(module).items() if module else ()):
            if title.startswith("test") and inspect.isfunction(test):
                if inspect.signature(test).parameters:
                    print(f"not run: {name[:-3]}.{title} takes fixtures, which pytest has: pip install pytest", file=sys.stderr)
                else:
                    suite.addTest(unittest.FunctionTestCase(test))
if not suite.countTestCases():
    sys.exit("not one test was run")
sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())`

func (i *Interpreters) toolTests(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	found, err := i.python.find(ctx, pkg.Dir)
	if err != nil {
		return nil, err
	}
	sdk, err := i.pythonSDK.layOut()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(pkg.Dir, filepath.FromSlash(m.Dir))
	files := testFiles(dir, func(name string) bool { return strings.HasPrefix(name, "test") && filepath.Ext(name) == ".py" })
	if len(files) == 0 {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no test*.py in %s", dir)
	}
	argv := append(isolated(found, i.pycache()), "-c", tooltests, sdk, pkg.Dir, dir)
	fixed := len(argv)
	for _, file := range files {
		if folder := filepath.Join(dir, filepath.Dir(file)); !slices.Contains(argv[fixed:], folder) {
			argv = append(argv, folder)
		}
	}
	return argv, nil
}

// shutests runs the tests of a Shu plugin with the package under the name that
// its manifest gives it, and shu_plugin_sdk at hand. Each is a module of that
// package, so that relative imports work.
const shutests = testsPath + `import sys, os, unittest
sdk, package, about, *folders = sys.argv[1:]
sys.path[:0] = [os.path.join(sdk, "shu"), sdk]
from _shim.about import About
from _shim.load import Package
own = Package(package, About(about))
own.open()
sys.argv[:] = ["mortise test"]
loader, suite = unittest.TestLoader(), unittest.TestSuite()
for folder in folders:
    if not own.parents:
        suite.addTest(loader.discover(folder))
        continue
    sys.path.insert(0, folder)
    steps = [step for step in os.path.relpath(folder, package).split(os.sep) if step != "."]
    for name in sorted(os.listdir(folder)):
        if name.startswith("test") and name.endswith(".py"):
            suite.addTest(loader.loadTestsFromName(".".join([own.parents[-1], *steps, name[:-3]])))
sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())`

func (i *Interpreters) shuTests(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	about, err := aboutManifest(m)
	if err != nil {
		return nil, err
	}
	return i.unittests(ctx, pkg, shutests, about)
}

func (i *Interpreters) nodeTests(ctx context.Context, pkg plugin.Package) ([]string, error) {
	found, err := i.node.find(ctx, pkg.Dir)
	if err != nil {
		return nil, err
	}
	files := testFiles(pkg.Dir, func(name string) bool {
		extension := filepath.Ext(name)
		return slices.Contains(nodeExtensions, extension) && strings.HasSuffix(name, ".test"+extension)
	})
	if len(files) == 0 {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no *.test.ts, *.test.js or *.test.mjs in %s", pkg.Dir)
	}
	argv := []string{found.Real, "--enable-source-maps", "--test"}
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

// testFiles returns the tests of a package, below its directory.
func testFiles(dir string, isTest func(name string) bool) []string {
	var files []string
	for _, folder := range []string{".", "tests", "test"} {
		entries, _ := os.ReadDir(filepath.Join(dir, folder)) // a folder that is not there has none
		for _, entry := range entries {
			if entry.Type().IsRegular() && isTest(entry.Name()) {
				files = append(files, filepath.Join(folder, entry.Name()))
			}
		}
	}
	return files
}
