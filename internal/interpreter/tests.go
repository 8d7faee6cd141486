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
//	.ts, .js, .mjs  node --test, over *.test.ts, *.test.js and *.test.mjs
//
// in the package's directory and its tests or test. Without tests, and for a
// plugin that is run by a command, the error is not_found.
func (i *Interpreters) TestCommand(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]string, error) {
	var argv []string
	var err error
	switch extension := filepath.Ext(m.Runner.Entry); {
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

// unittests runs the tests of each directory given after the SDK's and the
// package's own.
const unittests = `import sys, unittest
sdk, package, *folders = sys.argv[1:]
sys.path[:0] = [package, sdk]
sys.argv[:] = ["mortise test"]
suite = unittest.TestSuite(unittest.TestLoader().discover(folder) for folder in folders)
sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())`

func (i *Interpreters) pythonTests(ctx context.Context, pkg plugin.Package) ([]string, error) {
	found, err := i.python.find(ctx)
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
	argv := []string{found.Real, "-I", "-X", "pycache_prefix=" + i.pycache(), "-c", unittests, sdk, pkg.Dir}
	for _, file := range files {
		if folder := filepath.Join(pkg.Dir, filepath.Dir(file)); !slices.Contains(argv[8:], folder) {
			argv = append(argv, folder)
		}
	}
	return argv, nil
}

func (i *Interpreters) nodeTests(ctx context.Context, pkg plugin.Package) ([]string, error) {
	found, err := i.node.find(ctx)
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
	pkg.Dev = true // whoever tests is its author
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
