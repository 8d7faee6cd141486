package docs_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDependencies holds docs/dependencies.md against what our code imports and
// what go.mod and package.json ask for.
func TestDependencies(t *testing.T) {
	t.Parallel()
	shown := map[string][]string{}
	for _, cells := range tables(t, "dependencies.md", "module") {
		names := spans(cells[0])
		if len(names) != 1 || len(cells) != 4 || cells[2] == "" || cells[3] == "" {
			t.Errorf("a row has a module, its version, what it is for and why: %q", cells)
			continue
		}
		shown[names[0]] = cells
	}
	for name, version := range directModules(t) {
		cells, known := shown[name]
		switch {
		case !known:
			t.Errorf("docs/dependencies.md does not say what %s is for", name)
		case cells[1] != version:
			t.Errorf("%s: the page says version %s, the build %s", name, cells[1], version)
		}
		delete(shown, name)
	}
	for name, version := range npmDevelopment(t) {
		cells, known := shown[name]
		switch {
		case !known:
			t.Errorf("docs/dependencies.md does not say what %s is for", name)
		case cells[1] != version:
			t.Errorf("%s: the page says version %s, package.json %s", name, cells[1], version)
		}
		delete(shown, name)
	}
	for name := range shown {
		t.Errorf("nothing of ours uses %s", name)
	}
}

// directModules returns the modules that a package or a test of ours imports,
// with their versions. What go.mod notes as indirect is not asked.
func directModules(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(?:require )?\s*([a-z0-9.-]+\.[a-z]+(?:/\S+)?) (v\S+)`).FindAllStringSubmatch(string(raw), -1) {
		versions[m[1]] = strings.TrimPrefix(m[2], "v")
	}
	direct := map[string]string{}
	for _, p := range goList(t) {
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if first, _, _ := strings.Cut(path, "/"); !strings.Contains(first, ".") || strings.HasPrefix(path, module) {
				continue
			}
			best := ""
			for name := range versions {
				if (path == name || strings.HasPrefix(path, name+"/")) && len(name) > len(best) {
					best = name
				}
			}
			if best == "" {
				t.Errorf("%s imports %s, and go.mod has no module for it", p.ImportPath, path)
				continue
			}
			direct[best] = versions[best]
		}
	}
	return direct
}

// npmDevelopment returns the packages of npm that tests and builds of ours use. Neither the
// SDK nor the console has one at run time.
func npmDevelopment(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{"../sdk/typescript", "../sdk/typescript/client", "../console", "../test/conformance"} {
		raw, err := os.ReadFile(dir + "/package.json")
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Dependencies    map[string]string `json:"dependencies"`
			DevDependencies map[string]string `json:"devDependencies"`
		}
		if err := json.Unmarshal(raw, &file); err != nil {
			t.Fatal(err)
		}
		if len(file.Dependencies) > 0 {
			t.Errorf("%s has run-time dependencies: %v", dir, file.Dependencies)
		}
		for name, version := range file.DevDependencies {
			if other, there := all[name]; there && other != version {
				t.Errorf("%s is used in the versions %s and %s", name, other, version)
			}
			all[name] = version
		}
	}
	return all
}
