package dialect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Tree returns the package of the plugin in dir, which a person named.
func Tree(dir string) (tree, place string) { return TreeIn(dir, dir) }

// TreeIn returns the package that the plugin in dir belongs to, an absolute path,
// and its place there, a slash path. That of an Event Mill tool is the whole
// tree that it stands in, …/tree/pillar/tool, since the tools of a tree use each
// other's code; any other plugin is a package by itself, at the place "". So is a
// tool in a directory whose name begins with _, which no tree counts as its own.
//
// The package is copied, or shown to the plugin, as a whole, and what a manifest
// says decides about neither: the tree is part of named, which a person gave, or
// it is called plugins, as the contract has it; it is no person's home. Without that, a repository in a
// home directory could name that directory its pillar's tree.
func TreeIn(dir, named string) (tree, place string) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return dir, ""
	}
	pillars := filepath.Dir(absolute)
	pillar, tree := filepath.Base(pillars), filepath.Dir(pillars)
	if tree == filepath.Dir(tree) || passedOver(pillar) || passedOver(filepath.Base(absolute)) || !mayHold(tree, named) {
		return absolute, ""
	}
	said, isTool := declared(absolute)
	if !isTool || pillar != said.pillar && !slices.Contains(Pillars, pillar) {
		return absolute, ""
	}
	return tree, pillar + "/" + filepath.Base(absolute)
}

// contractTree is what the contract calls the directory of all pillars.
const contractTree = "plugins"

// mayHold reports whether a directory may be the tree of tools for a person who
// named another: it is in that, or called as the contract has it. No home is one.
func mayHold(tree, named string) bool {
	if isHome(tree) {
		return false
	}
	if absolute, err := filepath.Abs(named); err == nil && named != "" {
		if below, err := filepath.Rel(absolute, tree); err == nil && filepath.IsLocal(below) {
			return true
		}
	}
	return filepath.Base(tree) == contractTree
}

// isHome reports whether a directory is the home of this user, or has what shells
// and tools keep in one.
func isHome(dir string) bool {
	if home, err := os.UserHomeDir(); err == nil && dir == filepath.Clean(home) {
		return true
	}
	return slices.ContainsFunc(homely, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

var homely = []string{".ssh", ".gnupg", ".aws", ".bashrc", ".profile", ".zshrc", ".bash_history"}

// passedOver reports whether a directory of that name is no pillar and no tool.
func passedOver(name string) bool {
	return strings.HasPrefix(name, "_") || slices.Contains(notOurs, name)
}

// notOurs are what other programs keep in a tree.
var notOurs = []string{".git", ".venv", ".pytest_cache", ".mypy_cache"}

// maxTwins is how many directories of a tree are looked at for one name.
const maxTwins = 10_000

// twin returns the place of the tool that has the same name as the one at place
// and comes after it in the tree, "" for none: what runs the tools takes the last.
func twin(tree, place, name string) (last string) {
	looked, past := 0, false
	for _, pillar := range directories(tree) {
		for _, dir := range directories(filepath.Join(tree, pillar)) {
			other := pillar + "/" + dir
			if looked++; looked > maxTwins {
				return last
			}
			if other == place {
				past = true
				continue
			}
			if said, _ := declared(filepath.Join(tree, pillar, dir)); past && said.name == name {
				last = other
			}
		}
	}
	return last
}

// directories returns the names of those in dir that may be a pillar or a tool,
// in order.
func directories(dir string) []string {
	entries, _ := os.ReadDir(dir) // what cannot be read holds no tools
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && !passedOver(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// IsEventMill reports whether dir holds a manifest of Event Mill, good or bad.
func IsEventMill(dir string) bool {
	_, isTool := declared(dir)
	return isTool
}

// A declaration is what an Event Mill manifest says of where it belongs.
type declaration struct{ name, pillar string }

// declared reads what the Event Mill manifest in dir says, however wrong the
// rest of it is; isTool is false where there is no such manifest.
func declared(dir string) (said declaration, isTool bool) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return said, false
	}
	defer root.Close()
	data, err := files{root}.read(eventMillManifest, maxBytes)
	if err != nil {
		return said, false
	}
	tree, err := parseJSON(data)
	if err != nil {
		return said, false
	}
	m, _ := tree.(*mapping)
	if m == nil {
		return said, false
	}
	name, named := m.values["tool_name"]
	_, classed := m.values["class_name"]
	said.name, _ = name.(string)
	said.pillar, _ = m.values["pillar"].(string)
	return said, named || classed
}

// eventMillManifest is the one name that a manifest of Event Mill has.
const eventMillManifest = "manifest.json"
