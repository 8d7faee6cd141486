package main

import (
	"bytes"
	"slices"
	"strings"
)

// longPackages are left to test-long as a whole. Each of them is a campaign: it
// measures, kills hosts, attacks the sandbox, or builds releases.
var longPackages = []string{
	"cmd/dist", "test/compat/authors", "test/conformance", "test/crash", "test/escape", "test/hostile", "test/serve",
}

// firstPackages take longest. They start first, so that no processor waits for
// the last of them at the end.
var firstPackages = []string{
	"internal/app", "internal/surface/cli", "docs", "internal/surface/rest", "plugins", "test/compat/shu", "test/compat/eventmill",
	"internal/core/kernel", "internal/surface/check", "internal/runtime/sandbox", "internal/runtime/process",
}

// listPackages returns the import paths of the packages with tests that match
// the patterns, longest first, without those of longPackages.
func (j *job) listPackages(patterns ...string) ([]string, error) {
	var out bytes.Buffer
	format := "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}"
	if err := j.pipe(".", nil, &out, "go", append([]string{"list", "-f", format}, patterns...)...); err != nil {
		return nil, err
	}
	packages := strings.Fields(out.String())
	packages = slices.DeleteFunc(packages, func(p string) bool { return slices.Contains(longPackages, shorten(p)) })
	slices.SortStableFunc(packages, func(a, b string) int { return startOrder(a) - startOrder(b) })
	return packages, nil
}

func startOrder(pkg string) int {
	if i := slices.Index(firstPackages, shorten(pkg)); i >= 0 {
		return i
	}
	return len(firstPackages)
}

// testGo runs the Go tests of a change. Three packages run at a time on two
// processors, because tests also wait.
func testGo(j *job) error {
	packages, err := j.listPackages("./...")
	if err != nil {
		return err
	}
	return j.goTest(goTest{packages: packages, flags: []string{"-short", "-p=3"}})
}
