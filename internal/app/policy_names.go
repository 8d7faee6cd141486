package app

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent/toolset"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// ConfiguredNames are the names of groups and roles that a configuration has.
func ConfiguredNames(c config.Config) policy.Known {
	return policy.Known{Groups: slices.Sorted(maps.Keys(c.Policy.Groups)), Roles: slices.Sorted(maps.Keys(c.Policy.Roles))}
}

// ConfiguredDocuments are the policies that a configuration read from path has:
// its files and its rules.
func ConfiguredDocuments(c config.Config, path string) (documents []policy.Document, err error) {
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	if len(c.Policy.Files) > 0 {
		if documents, err = policy.Files(dir, c.Policy.Files...)(); err != nil {
			return nil, err
		}
	}
	rules, err := policy.Rules(c.Policy.Allow)()
	return append(documents, rules...), err
}

// StoredPolicies are the policies that are stored.
func (a *App) StoredPolicies(ctx context.Context) ([]policy.Document, error) {
	return stored(ctx, a.Store, a.Config.Tenant)
}

// PolicyNames are all names that policies may speak of in this host.
func (a *App) PolicyNames(ctx context.Context) (policy.Known, error) {
	known := ConfiguredNames(a.Config)
	known.Plugins = []string{host.PoliciesPlugin, host.AgentsPlugin, host.SessionsPlugin, host.CallsPlugin, host.KnowledgePlugin, host.ReferencePlugin, host.LedgerPlugin, host.BackupPlugin}
	known.Operations, known.Effects, known.Agents = []string{}, []string{}, []string{}
	add := func(m *plugin.Manifest) {
		known.Plugins = append(known.Plugins, m.Name)
		for _, op := range m.Operations {
			known.Operations = append(known.Operations, m.Name+"/"+op.Name)
			known.Effects = append(known.Effects, op.Effects...)
		}
	}
	for _, m := range toolset.BuiltIn {
		add(m)
	}
	infos, err := a.Registry.List(ctx)
	if err != nil {
		return known, err
	}
	for _, info := range infos {
		add(info.Plugin())
	}
	rows, err := a.Store.Agents(ctx, a.Config.Tenant)
	for _, row := range rows {
		known.Agents = append(known.Agents, row.ID)
	}
	for _, names := range []*[]string{&known.Plugins, &known.Operations, &known.Effects} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return known, err
}
