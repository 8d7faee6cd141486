package dialect

import (
	"os"
	"path/filepath"
	"slices"
)

// Tree returns the package that the plugin in dir belongs to, an absolute path,
// and its place there, a slash path. That of an Event Mill tool is the whole
// tree that it stands in, …/tree/pillar/tool, since the tools of a tree use each
// other's code; any other plugin is a package by itself, at the place "".
func Tree(dir string) (tree, place string) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return dir, ""
	}
	pillars := filepath.Dir(absolute)
	pillar, tree := filepath.Base(pillars), filepath.Dir(pillars)
	if tree == filepath.Dir(tree) { // the root of all files is nobody's package
		return absolute, ""
	}
	said, isTool := declared(absolute)
	if !isTool || pillar != said.pillar && !slices.Contains(Pillars, pillar) {
		return absolute, ""
	}
	return tree, pillar + "/" + filepath.Base(absolute)
}

// IsEventMill reports whether dir holds a manifest of Event Mill, good or bad.
func IsEventMill(dir string) bool {
	_, isTool := declared(dir)
	return isTool
}

// ToolName returns what the Event Mill manifest in dir calls its tool, "" where
// there is none.
func ToolName(dir string) string {
	said, _ := declared(dir)
	return said.name
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
