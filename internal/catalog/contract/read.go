package contract

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// ManifestJSON is the name of a manifest in JSON.
const ManifestJSON = "manifest.json"

// Manifests returns the names that a plugin's manifest may have.
func Manifests() []string {
	names := []string{"manifest.yaml", "manifest.yml", ManifestJSON}
	for _, owner := range Each[FileOwner] {
		names = append(names, owner.File())
	}
	return names
}

// Extensions are those of the source files that can be a plugin.
var Extensions = []string{".py", ".ts", ".js", ".mjs"}

// The kinds of runners.
const (
	ProcessRunner = "process" // starts a process
	ScriptRunner  = "script"  // runs a script in the host itself, in an engine
	WebhookRunner = "webhook" // tells a plugin elsewhere of events
	MCPRunner     = "mcp"     // calls the tools of a server that speaks the Model Context Protocol
)

// A Reading is an accepted manifest with what its author may want to know.
type Reading struct {
	Manifest *plugin.Manifest
	File     string   // the manifest's name within the directory
	Notes    Problems // how it was understood where that is not plain
}

// Read returns the manifest of the plugin in dir. If it is not acceptable, the
// error is or wraps [Problems].
func Read(dir string) (*plugin.Manifest, error) {
	reading, err := Inspect(dir)
	if err != nil {
		return nil, err
	}
	return reading.Manifest, nil
}

// Inspect reads like [Read] and returns notes too.
func Inspect(dir string) (*Reading, error) { return InspectIn(Tree(dir)) }

// ReadIn returns the manifest of the plugin at a place, as [Tree] returns it, of
// the package in dir.
func ReadIn(dir, place string) (*plugin.Manifest, error) {
	reading, err := InspectIn(dir, place)
	if err != nil {
		return nil, err
	}
	return reading.Manifest, nil
}

// InspectIn reads like [ReadIn] and returns notes too.
func InspectIn(dir, place string) (*Reading, error) {
	if !filepath.IsLocal(filepath.FromSlash(path.Join(".", place))) {
		return nil, fmt.Errorf("opening the plugin's directory: %q is not inside a package", place)
	}
	root, err := os.OpenRoot(filepath.Join(dir, filepath.FromSlash(place)))
	if err != nil {
		return nil, fmt.Errorf("opening the plugin's directory: %w", err)
	}
	defer root.Close()

	within := Files{root}
	var found []string
	for _, name := range Manifests() {
		if _, err := root.Lstat(name); err == nil {
			found = append(found, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for %s: %w", name, err)
		}
	}
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(name string) bool { // a file that only has the name
			owner := ownerOf(name)
			return owner != nil && !owner.Owns(within)
		})
	}
	switch {
	case len(found) == 0:
		return nil, Whole("", "there is no "+strings.Join(Manifests(), ", ")+" here")
	case len(found) > 1:
		return nil, Whole(found[1], "there is a "+found[0]+" too; keep one of them")
	}
	data, err := within.Read(found[0], MaxBytes)
	if err != nil {
		return nil, Whole(found[0], err.Error())
	}
	return Parse(found[0], data, within, Home{dir, place})
}

// ownerOf returns the contract that alone has manifests in a file of that name,
// nil if there is none.
func ownerOf(file string) FileOwner {
	for _, owner := range Each[FileOwner] {
		if owner.File() == file {
			return owner
		}
	}
	return nil
}

// Parse turns the bytes of a manifest into what they mean. One that is refused
// comes with its notes all the same.
func Parse(file string, data []byte, within Files, at Home) (*Reading, error) {
	tree, problems := parse(file, data)
	if len(problems) > 0 {
		return nil, problems.sorted()
	}
	p := &Page{File: file, Files: within, Home: at}
	m := Complete(p.manifest(p.top(tree)))
	reading := &Reading{Manifest: m, File: file, Notes: p.Notes.sorted()}
	return reading, p.Problems.err()
}

// manifest reads by the contract that recognizes the file or what stands at its
// top.
func (p *Page) manifest(top Value) *plugin.Manifest {
	if _, isMapping := top.Is.(*Mapping); !isMapping {
		top.Problem("a manifest is a mapping, not %s", top.Kind())
		return nil
	}
	if owner := ownerOf(p.File); owner != nil {
		return owner.Read(top)
	}
	forms := make([]string, 0, len(All()))
	for _, reader := range Each[Reader] {
		if reader.Recognizes(top) {
			return reader.Read(top)
		}
		forms = append(forms, reader.Form())
	}
	top.Problem("this is neither a manifest %s", strings.Join(forms, ", nor "))
	return nil
}

// HasManifest reports whether a plugin stands in dir: whether one of [Manifests]
// is there, good or bad.
func HasManifest(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer root.Close()
	for _, name := range Manifests() {
		if _, err := root.Lstat(name); err != nil {
			continue
		}
		if owner := ownerOf(name); owner == nil || owner.Owns(Files{root}) {
			return true
		}
	}
	return false
}

// Bundled reports whether dir holds a plugin, good or bad, that a package file may
// hold with other files beside it.
func Bundled(dir string) bool {
	for _, bundler := range Each[Bundler] {
		if bundler.Bundled(dir) {
			return true
		}
	}
	return false
}

// ReadFile returns the manifest of a plugin that is one source file: nothing
// but how to run it. Its name and operations are for its code to say; see [Merge].
func ReadFile(file string) (*plugin.Manifest, error) {
	name := filepath.Base(file)
	if !slices.Contains(Extensions, filepath.Ext(name)) {
		return nil, Whole(name, "a plugin that is one file is one of "+strings.Join(Extensions, ", "))
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Whole(name, "no such file")
	case err != nil:
		return nil, fmt.Errorf("looking at %s: %w", file, err)
	case !info.Mode().IsRegular():
		return nil, Whole(name, "it is not a file")
	}
	for _, reader := range Each[SourceReader] {
		return Complete(reader.ReadSource(name)), nil
	}
	return nil, Whole(name, "no contract takes a file without a manifest")
}

// Tree returns the package of the plugin in dir, which a person named.
func Tree(dir string) (tree, place string) { return TreeIn(dir, dir) }

// TreeIn returns the package that the plugin in dir belongs to, an absolute path,
// and its place there, a slash path. A plugin is a package by itself, at the place
// "", unless its contract is a [Grouper].
//
// The package is copied, or shown to the plugin, as a whole, and what a manifest
// says alone decides about neither: see the contract.
func TreeIn(dir, named string) (tree, place string) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return dir, ""
	}
	for _, grouper := range Each[Grouper] {
		if tree, place, grouped := grouper.Tree(absolute, named); grouped {
			return tree, place
		}
	}
	return absolute, ""
}

// Grouped reports whether dir holds a plugin, good or bad, of a contract whose
// plugins stand together in one package.
func Grouped(dir string) bool {
	for _, grouper := range Each[Grouper] {
		if grouper.Holds(dir) {
			return true
		}
	}
	return false
}
