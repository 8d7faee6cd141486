package docs_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mortise-dev/mortise"

// A goPackage is what `go list` says of one.
type goPackage struct {
	ImportPath   string
	Name         string
	Dir          string
	GoFiles      []string
	Doc          string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func goList(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json", "./...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// TestImportsGoOneWay holds the table of docs/architecture.md against the code:
// every package is in it once, with the first words of its own comment, and
// imports no other of ours than its row says, all of them in rows above it.
func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	type row struct {
		sentence string
		may      []string
		place    int
	}
	table := map[string]row{}
	for i, cells := range tables(t, "architecture.md", "package") {
		names := spans(cells[0])
		if len(names) != 1 || len(cells) != 3 {
			t.Fatalf("row %d has another form: %q", i+1, cells)
		}
		if _, twice := table[names[0]]; twice {
			t.Errorf("%s has two rows", names[0])
		}
		table[names[0]] = row{cells[1], spans(cells[2]), i}
	}
	for name, r := range table {
		for _, other := range r.may {
			below, known := table[other]
			switch {
			case !known:
				t.Errorf("%s may import %s, which has no row", name, other)
			case below.place >= r.place:
				t.Errorf("%s may import %s, and the row of that stands below its own", name, other)
			}
		}
	}
	for _, p := range goList(t) {
		if len(p.GoFiles) == 0 {
			continue // tests alone
		}
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		r, known := table[name]
		if !known {
			t.Errorf("docs/architecture.md has no row for %s", name)
			continue
		}
		delete(table, name)
		var ours []string
		for _, path := range p.Imports {
			if other, isOurs := strings.CutPrefix(path, module+"/"); isOurs {
				ours = append(ours, other)
			}
		}
		for _, other := range ours {
			if !slices.Contains(r.may, other) {
				t.Errorf("%s imports %s, and docs/architecture.md does not let it", name, other)
			}
		}
		if p.Doc == "" {
			t.Errorf("%s has no comment that says what it is for", name)
		} else if !saysTheSame(r.sentence, p.Doc) {
			t.Errorf("%s: the page says %q, its comment %q", name, r.sentence, p.Doc)
		}
	}
	for name := range table {
		t.Errorf("there is no package %s", name)
	}
}

// TestLayers holds the table of layers against the folders of internal, and each
// package there against what its layer may import.
func TestLayers(t *testing.T) {
	t.Parallel()
	may := map[string][]string{}
	var order []string
	for _, cells := range tables(t, "architecture.md", "layer") {
		name := spans(cells[0])[0]
		may[name] = spans(cells[2])
		for _, other := range may[name] {
			if !slices.Contains(order, other) {
				t.Errorf("%s may import %s, which does not stand above it", name, other)
			}
		}
		order = append(order, name)
	}
	folders, err := os.ReadDir("../internal")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if _, known := may[f.Name()]; !known {
			t.Errorf("internal/%s is no layer of the table", f.Name())
		}
	}
	if len(order) != len(folders) || len(order) > 10 {
		t.Errorf("%d layers in the table, %d folders", len(order), len(folders))
	}
	layer := func(path string) string {
		inside, ok := strings.CutPrefix(path, module+"/internal/")
		if !ok {
			return ""
		}
		name, _, _ := strings.Cut(inside, "/")
		return name
	}
	for _, p := range goList(t) {
		own := layer(p.ImportPath)
		for _, path := range p.Imports {
			if other := layer(path); own != "" && other != "" && other != own && !slices.Contains(may[own], other) {
				t.Errorf("%s imports %s: the layer %s may not import %s", p.ImportPath, path, own, other)
			}
		}
	}
}

// TestThePictureHasTheLayers holds the diagram of docs/architecture.md against the table
// of layers: it has each but the two that it explains in words, and nothing else.
func TestThePictureHasTheLayers(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(string(raw), "```mermaid\n")
	picture, _, found := strings.Cut(picture, "```")
	if !found {
		t.Fatal("the page has no diagram")
	}
	drawn := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)(?:^|> ?|-- ?) *([a-z]+)(?:[\[(]| -|$)`).FindAllStringSubmatch(picture, -1) {
		drawn[m[1]] = true
	}
	for _, cells := range tables(t, "architecture.md", "layer") {
		name := spans(cells[0])[0]
		if drawn[name] == (name == "base" || name == "app") {
			t.Errorf("the layer %s is drawn: %t", name, drawn[name])
		}
		delete(drawn, name)
	}
	for name := range drawn {
		if name != "person" && name != "plugin" {
			t.Errorf("%s is drawn, and is no layer", name)
		}
	}
}

// saysTheSame reports whether a package's comment begins with the sentence of
// the page, once "Package x" and "Command x" are put before it.
func saysTheSame(sentence, doc string) bool {
	plain := func(text string) string {
		text = strings.NewReplacer("`", "", "[", "", "]", "").Replace(text)
		return strings.ToLower(strings.TrimRight(strings.TrimSpace(text), "."))
	}
	doc = regexp.MustCompile(`^(Package|Command) \S+ `).ReplaceAllString(doc, "")
	return len(sentence) > 20 && strings.HasPrefix(plain(doc), plain(sentence))
}

// TestThePackagesThatAreFoundations states the three rules that matter most in
// so many words, whatever the table says.
func TestThePackagesThatAreFoundations(t *testing.T) {
	t.Parallel()
	only := map[string][]string{
		"plugin":   nil,
		"protocol": {"plugin"},
		"sdk/go":   {"plugin", "protocol"},
		"internal/core/kernel": { // what it records and what it asks; never what carries out, resolves or judges
			"plugin", "protocol", "internal/base/canon", "internal/core/placeholder", "internal/core/ledger", "internal/core/usage", "internal/core/approval", "internal/base/fault", "internal/base/waitfor", "internal/base/budget", "internal/base/handed",
		},
		"cmd/mortise": {"internal/base/startup", "internal/surface/cli"},
	}
	notEverywhere := map[string][]string{ // who alone may import it
		"internal/app":          {"internal/surface/check", "internal/surface/cli", "internal/surface/server", "internal/surface/upkeep", "test/crash/host", "test/hostile/host"},
		"internal/surface/cli":  {"cmd/mortise"},
		"internal/core/kernel":  {"internal/app", "internal/host", "internal/agent", "internal/agent/toolset", "internal/service/scrub"}, // the host for what a person says who settles a call, the agent for what it answers the kernel's hooks with, the others to be a runner of its
		"internal/store/sqlite": {"internal/host/archive", "internal/host/setup"},
	}
	for _, p := range goList(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, path := range p.Imports {
			other, isOurs := strings.CutPrefix(path, module+"/")
			if name == "plugin" && strings.Contains(strings.Split(path, "/")[0], ".") {
				t.Errorf("plugin imports %s; it has the standard library alone", path)
			}
			if !isOurs {
				continue
			}
			if may, bound := only[name]; bound && !slices.Contains(may, other) {
				t.Errorf("%s imports %s", name, other)
			}
			if by, bound := notEverywhere[other]; bound && !slices.Contains(by, name) {
				t.Errorf("%s imports %s", name, other)
			}
		}
	}
}

// TestFilesOfTheWalk makes sure that the files and functions which the page
// follows a call through are there.
func TestFilesOfTheWalk(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, m := range regexp.MustCompile("\\[`([^`]+\\.(?:go|py|ts))`\\]\\(([^)]+)\\)([^.;]*)").FindAllStringSubmatch(string(raw), -1) {
		found++
		source, err := os.ReadFile(filepath.FromSlash(m[2]))
		if err != nil {
			t.Errorf("the walk passes %s: %v", m[1], err)
			continue
		}
		for _, function := range regexp.MustCompile("`([A-Za-z]+)\\(\\)`").FindAllStringSubmatch(m[3], -1) {
			if !regexp.MustCompile(`(func (\([^)]*\) )?|def )` + function[1] + `\b`).Match(source) {
				t.Errorf("%s has no function %s", m[1], function[1])
			}
		}
	}
	if found < 12 {
		t.Errorf("the walk passes %d files", found)
	}
}
