package app

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent/toolset"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host/setup"
)

// StoredPolicies are the policies that are stored.
func (a *App) StoredPolicies(ctx context.Context) ([]policy.Document, error) {
	return setup.StoredPolicies(ctx, a.own, a.Config.Tenant)
}

// PolicyNames are all names that policies may speak of in this host.
func (a *App) PolicyNames(ctx context.Context) (policy.Known, error) {
	manifests := slices.Clone(toolset.BuiltIn)
	infos, err := a.Registry.List(ctx)
	for _, info := range infos {
		manifests = append(manifests, info.Plugin())
	}
	if err != nil {
		return setup.ConfiguredNames(a.Config), err
	}
	return setup.KnownNames(ctx, a.Config, a.own, manifests)
}

// OtherPolicies returns the engine of this host's configuration with other files.
func (a *App) OtherPolicies(files []string) (*policy.Engine, error) {
	conf := a.Config
	conf.Policy.Files = nil
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		conf.Policy.Files = append(conf.Policy.Files, path)
	}
	return setup.OpenPolicy(conf, a.ConfigPath, a.Runner.Level(), a.own)
}
