package app

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/mortise-dev/mortise/internal/agent/toolset"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/plugin"
)

// StoredPolicies are the policies that are stored.
func (a *App) StoredPolicies(ctx context.Context) ([]policy.Document, error) {
	return setup.StoredPolicies(ctx, a.own, a.Config.Tenant)
}

// PolicyNames are all names that policies may speak of in this host.
func (a *App) PolicyNames(ctx context.Context) (policy.Known, error) {
	known := setup.ConfiguredNames(a.Config)
	known.Plugins = []string{host.PoliciesPlugin, host.AgentsPlugin, host.SessionsPlugin, host.CallsPlugin, host.KnowledgePlugin, host.ReferencePlugin, host.LedgerPlugin, host.BackupPlugin, host.MetricsPlugin}
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
	rows, err := a.own.Agents(ctx, a.Config.Tenant)
	for _, row := range rows {
		known.Agents = append(known.Agents, row.ID)
	}
	for _, names := range []*[]string{&known.Plugins, &known.Operations, &known.Effects} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return known, err
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
