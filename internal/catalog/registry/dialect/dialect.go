// Package dialect reads what a plugin says of itself, in the words of the
// contract it was written to, into one [plugin.Manifest].
//
// [Read] reads a plugin's directory: a native manifest, one of the kernel
// contract, of Event Mill, of Shu or of plugins and hooks. [ReadFile] takes a source file that has no manifest. [Bind] reads
// the host's own configuration of a plugin of the runtime protocol. [Merge]
// adds what only the plugin's code knows.
//
// Reading never runs anything of the plugin. A manifest is accepted as a whole
// or refused with [Problems], all of them at once, each with its place. A key
// that this version would have to ignore is refused, not ignored: it may be
// what keeps the plugin harmless. Manifests of Event Mill and Shu are the
// exception: published ones depart from their contract, so that they are read
// leniently; the notes of a [Reading] tell all that departs.
package dialect

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

// The dialects, as [plugin.Manifest] names them.
const (
	Native    = "native"
	Kernel    = "kernel"
	Runtime   = "runtime"
	EventMill = "eventmill"
	Shu       = "shu"

	OpenHermit = "openhermit" // plugins and hooks
)

// Manifests are the names that a plugin's manifest may have.
var Manifests = []string{"manifest.yaml", "manifest.yml", "manifest.json", shuManifest}

// Extensions are those of the source files that can be a plugin.
var Extensions = []string{".py", ".ts", ".js", ".mjs"}

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

	within := files{root}
	var found []string
	for _, name := range Manifests {
		if _, err := root.Lstat(name); err == nil {
			found = append(found, name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("looking for %s: %w", name, err)
		}
	}
	if len(found) > 1 && slices.Contains(found, shuManifest) && !within.hasShuManifest() {
		found = slices.DeleteFunc(found, func(name string) bool { return name == shuManifest }) // a module of that name
	}
	switch {
	case len(found) == 0:
		return nil, whole("", "there is no "+strings.Join(Manifests, ", ")+" here")
	case len(found) > 1:
		return nil, whole(found[1], "there is a "+found[0]+" too; keep one of them")
	}
	data, err := within.read(found[0], maxBytes)
	if err != nil {
		return nil, whole(found[0], err.Error())
	}
	return read(found[0], data, within, home{dir, place})
}

// read turns the bytes of a manifest into what they mean. One that is refused
// comes with its notes all the same.
func read(file string, data []byte, within files, at home) (*Reading, error) {
	tree, problems := parse(file, data)
	if len(problems) > 0 {
		return nil, problems.sorted()
	}
	p := &page{file: file, files: within, home: at}
	m := Complete(p.manifest(p.top(tree)))
	reading := &Reading{Manifest: m, File: file, Notes: p.notes.sorted()}
	return reading, p.problems.err()
}

// manifest reads by the contract that the keys at the top tell.
func (p *page) manifest(top value) *plugin.Manifest {
	_, isMapping := top.is.(*mapping)
	switch {
	case !isMapping:
		top.problem("a manifest is a mapping, not %s", top.kind())
	case p.file == shuManifest:
		return p.shu(top)
	case top.has("tool_name") || top.has("class_name"):
		if p.file != eventMillManifest {
			top.problem("a manifest of Event Mill is called %s", eventMillManifest)
			return nil
		}
		return p.eventMill(top)
	case top.has("type") && (top.has("operations") || top.has("hooks")):
		top.get("type").problem("it makes this a manifest of the kernel contract, which has no operations and hooks; a native manifest gives each operation a kind")
	case top.has("type"):
		return p.kernel(top)
	case top.has("operations") || top.has("runner"):
		return p.native(top)
	case top.has("entrypoints") || top.has("module"):
		return p.shu(top)
	case p.isOpenHermit(top):
		return p.openHermit(top)
	default:
		top.problem("this is neither a native manifest (name, with operations or runner) nor one of the kernel contract (name, with type), of Event Mill (tool_name), of Shu (module or entrypoints) or of plugins and hooks (manifest.json beside index.ts)")
	}
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
	for _, name := range Manifests {
		if _, err := root.Lstat(name); err == nil && (name != shuManifest || files{root}.hasShuManifest()) {
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
		return nil, whole(name, "a plugin that is one file is one of "+strings.Join(Extensions, ", "))
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, whole(name, "no such file")
	case err != nil:
		return nil, fmt.Errorf("looking at %s: %w", file, err)
	case !info.Mode().IsRegular():
		return nil, whole(name, "it is not a file")
	}
	return &plugin.Manifest{
		Dialect:   Native,
		Runner:    plugin.Runner{Kind: processRunner, Entry: name, Protocol: "2"},
		Isolation: plugin.IsolationTenant,
	}, nil
}
