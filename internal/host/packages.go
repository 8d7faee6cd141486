package host

import (
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/catalog/scaffold"
	"github.com/mortise-dev/mortise/plugin"
)

// ReadPackage reads the package in a directory, as it is linked for development.
func ReadPackage(dir string) (plugin.Package, *plugin.Manifest, error) {
	m, err := contract.Read(dir)
	if err != nil {
		return plugin.Package{}, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: %w", dir, err)
	}
	tree, _ := contract.Tree(dir)
	return plugin.Package{Dir: tree, Dev: true}, m, nil
}

// Newer reports whether version a comes after version b.
func Newer(a, b string) bool { return registry.Newer(a, b) }

// NotBuilt is the error of [NewPlugin] where the plugin was written and its program not
// built.
type NotBuilt = scaffold.NotBuilt

// BuildGo is the command that builds a plugin in Go.
const BuildGo = scaffold.BuildGo

// PluginLanguages are those that a plugin can be begun in.
var PluginLanguages = scaffold.Languages

// NewPlugin writes the files of a plugin into dir, and returns their names.
func NewPlugin(dir, name, lang string) ([]string, error) { return scaffold.New(dir, name, lang) }
