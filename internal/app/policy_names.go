package app

import (
	"context"
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
