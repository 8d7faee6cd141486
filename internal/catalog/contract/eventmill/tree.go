package eventmill

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
)

// Tree implements [contract.Grouper]. The package of a tool is the whole tree that
// it stands in, …/tree/pillar/tool, since the tools of a tree use each other's
// code. A tool in a directory whose name begins with _, which no tree counts as
// its own, stands by itself.
//
// What a manifest says decides not alone: the tree is part of named, which a
// person gave, or it is called plugins, as the contract has it; it is no person's
// home. Without that, a repository in a home directory could name that directory
// its pillar's tree.
func (Contract) Tree(dir, named string) (tree, place string, grouped bool) {
	pillars := filepath.Dir(dir)
	pillar, tree := filepath.Base(pillars), filepath.Dir(pillars)
	if tree == filepath.Dir(tree) || passedOver(pillar) || passedOver(filepath.Base(dir)) || !mayHold(tree, named) {
		return "", "", false
	}
	said, isTool := declared(dir)
	if !isTool || pillar != said.pillar && !slices.Contains(Pillars, pillar) {
		return "", "", false
	}
	return tree, pillar + "/" + filepath.Base(dir), true
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

// Holds implements [contract.Grouper].
func (Contract) Holds(dir string) bool {
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
	data, err := contract.Files{Root: root}.Read(contract.ManifestJSON, contract.MaxBytes)
	if err != nil {
		return said, false
	}
	tree, err := contract.ParseJSON(data)
	if err != nil {
		return said, false
	}
	m, _ := tree.(*contract.Mapping)
	if m == nil {
		return said, false
	}
	name, named := m.Values["tool_name"]
	_, classed := m.Values["class_name"]
	said.name, _ = name.(string)
	said.pillar, _ = m.Values["pillar"].(string)
	return said, named || classed
}
