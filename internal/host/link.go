package host

import (
	"context"
	"os"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// Link registers the plugin at a path for development, and returns its name.
func (p Plugins) Link(ctx context.Context, path string) (string, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() && !contract.HasManifest(path) {
		return "", plugin.Errorf(plugin.CodeInvalidInput, "%s holds no %s: name the directory or the source file of one plugin, or use 'mortise plugins register' for a tree of them",
			path, strings.Join(contract.Manifests(), ", "))
	}
	report, err := p.Register(ctx, path, registry.RegisterOptions{Dev: true, Enable: true})
	if err != nil {
		return "", err
	}
	return report.Registered[0].Name, nil
}
