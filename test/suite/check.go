package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// staticcheck is the linter with the version that `make lint` runs.
const staticcheck = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"

// checkParts are those of `make check`: what a developer runs while working.
func checkParts() []part {
	return []part{
		{name: "gofmt", about: "every Go file is formatted", run: checkFormat},
		{name: "vet", about: "go vet of the changed packages", run: func(j *job) error {
			changed, err := j.changedPackages()
			if err != nil || len(changed) == 0 {
				return err
			}
			return j.command(".", nil, "go", append([]string{"vet"}, changed...)...)
		}},
		{name: "tests", about: "tests of the changed packages and of packages that import them", after: "vet", run: testChanged},
		{name: "staticcheck", about: "staticcheck of the changed packages", after: "vet", run: func(j *job) error {
			changed, err := j.changedPackages()
			if err != nil || len(changed) == 0 {
				return err
			}
			return j.command(".", nil, "go", append([]string{"run", staticcheck}, changed...)...)
		}},
	}
}

// testChanged runs the short tests of the changed packages and of the packages
// that import them. Importers that take longer than a minute are left to
// `make test`, unless they changed themselves.
func testChanged(j *job) error {
	changed, err := j.changedPackages()
	if err != nil {
		return err
	}
	if len(changed) == 0 {
		j.result.Detail = "no package changed"
		return nil
	}
	importers, err := j.importers(changed)
	if err != nil {
		return err
	}
	var left []string
	importers = slices.DeleteFunc(importers, func(p string) bool {
		slow := slices.Contains(firstPackages, shorten(p)) || slices.Contains(longPackages, shorten(p))
		if slow && !slices.Contains(changed, p) {
			left = append(left, shorten(p))
		}
		return slow
	})
	packages := slices.Concat(changed, importers)
	slices.Sort(packages)
	if err := j.goTest(goTest{packages: slices.Compact(packages), flags: []string{"-short"}}); err != nil {
		return err
	}
	if len(left) > 0 {
		j.result.Detail += "; left to make test: " + strings.Join(left, ", ")
	}
	return nil
}

// changedPackages returns the import paths of the packages that the user named.
// Without any it returns those that differ from the last commit, or, in a clean
// tree, those that the last commit changed.
func (j *job) changedPackages() ([]string, error) {
	if len(j.env.packages) > 0 {
		return j.goList(j.env.packages...)
	}
	files, err := j.changedFiles("HEAD")
	if err == nil && len(files) == 0 {
		files, err = j.changedFiles("HEAD~1")
	}
	if err != nil {
		return nil, err
	}
	dirs := map[string]bool{}
	for _, file := range files {
		if dir := j.packageDir(path.Dir(file)); dir != "" {
			dirs["./"+dir] = true
		}
	}
	if len(dirs) == 0 {
		return nil, nil
	}
	var patterns []string
	for dir := range dirs {
		patterns = append(patterns, dir)
	}
	slices.Sort(patterns)
	return j.goList(patterns...)
}

func (j *job) changedFiles(base string) ([]string, error) {
	var out bytes.Buffer
	if err := j.pipe(".", nil, &out, "git", "diff", "--name-only", base); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out.String())
	}
	if err := j.pipe(".", nil, &out, "git", "ls-files", "--others", "--exclude-standard"); err != nil {
		return nil, err
	}
	return strings.Fields(out.String()), nil
}

// packageDir returns the nearest directory at or above dir with Go files of this
// module, or the empty string if there is none below the root.
func (j *job) packageDir(dir string) string {
	for ; dir != "." && dir != "/"; dir = path.Dir(dir) {
		full := filepath.Join(j.env.root, dir)
		if _, err := os.Stat(filepath.Join(full, "go.mod")); err == nil {
			return "" // another module
		}
		if found, _ := filepath.Glob(filepath.Join(full, "*.go")); len(found) > 0 && path.Base(dir) != "testdata" {
			return dir
		}
	}
	return ""
}

func (j *job) goList(patterns ...string) ([]string, error) {
	var out bytes.Buffer
	if err := j.pipe(".", nil, &out, "go", append([]string{"list"}, patterns...)...); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out.String())
	}
	return strings.Fields(out.String()), nil
}

// importers returns the packages with tests that import one of the packages,
// directly or in their tests.
func (j *job) importers(packages []string) ([]string, error) {
	var out bytes.Buffer
	format := `{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}: {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}`
	if err := j.pipe(".", nil, &out, "go", "list", "-f", format, "./..."); err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(out.String()) {
		pkg, imports, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		if slices.ContainsFunc(strings.Fields(imports), func(p string) bool { return slices.Contains(packages, p) }) {
			found = append(found, pkg)
		}
	}
	return found, nil
}
