package setup

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/policy"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/plugin"
)

// OpenPolicy returns the engine of the policies that a configuration read from
// path asks for, with those that are stored. isolation is the wall that plugins
// run behind; kept may be nil where there is no store.
func OpenPolicy(c config.Config, path, isolation string, kept store.Reader) (*policy.Engine, error) {
	if len(c.Policy.Files) == 0 {
		return openPolicy(c, nil, isolation, kept)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return openPolicy(c, policy.Files(dir, c.Policy.Files...), isolation, kept)
}

// OtherPolicy is [OpenPolicy] with documents in the place of the files that the configuration
// names.
func OtherPolicy(c config.Config, documents []policy.Document, isolation string, kept store.Reader) (*policy.Engine, error) {
	return openPolicy(c, func() ([]policy.Document, error) { return documents, nil }, isolation, kept)
}

// openPolicy opens the policies of a configuration; files are those that it names, nil for none.
func openPolicy(c config.Config, files policy.Source, isolation string, kept store.Reader) (*policy.Engine, error) {
	known, err := json.Marshal([]any{c.Tenant, c.Policy.Groups, c.Policy.Roles, c.Policy.Consent}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	o := policy.Options{Standing: standing(c), Known: known, Isolation: isolation, Sources: []policy.Source{
		policy.Approvers(c.Tenant, members(c.Approvals.By)), policy.Configurers(c.Tenant, members(c.Policy.Configure)),
	}}
	if files != nil {
		o.Sources = append(o.Sources, files)
	}
	if c.Policy.Default == config.DefaultTools {
		o.Sources = append(o.Sources, policy.DefaultRules())
	}
	if len(c.Policy.Allow) > 0 {
		o.Sources = append(o.Sources, policy.Rules(c.Policy.Allow))
	}
	if kept != nil {
		o.Sources = append(o.Sources, policy.Stored(func(ctx context.Context) ([]policy.Document, error) { return StoredPolicies(ctx, kept, c.Tenant) }))
	}
	return policy.Open(o)
}

func members(names []string) []plugin.Principal {
	all := make([]plugin.Principal, len(names))
	for i, name := range names {
		all[i] = principal.Parse(name)
	}
	return all
}

// standing returns what the configuration knows of principals. It covers only
// the configuration's own tenant: in another tenant the same name is a
// different principal.
func standing(c config.Config) func(tenant string, who plugin.Principal) policy.Standing {
	known := map[string]policy.Standing{}
	learn := func(name string, what func(*policy.Standing)) {
		name = principal.Name(principal.Parse(name)) // user::ann is ann
		s := known[name]
		what(&s)
		known[name] = s
	}
	for who, effects := range c.Policy.Consent {
		learn(who, func(s *policy.Standing) { s.Consent = append(s.Consent, effects...) })
	}
	for group, members := range c.Policy.Groups {
		for _, member := range members {
			learn(member, func(s *policy.Standing) { s.Groups = append(s.Groups, group) })
		}
	}
	for role, members := range c.Policy.Roles {
		for _, member := range members {
			learn(member, func(s *policy.Standing) { s.Roles = append(s.Roles, role) })
		}
	}
	return func(tenant string, who plugin.Principal) policy.Standing {
		if tenant != c.Tenant {
			return policy.Standing{}
		}
		return known[principal.Name(who)]
	}
}

// StoredPolicies returns the documents of the policies that are kept for a tenant.
func StoredPolicies(ctx context.Context, r store.Reader, tenant string) ([]policy.Document, error) {
	rows, err := r.Policies(ctx, tenant)
	if err != nil {
		return nil, err
	}
	documents := make([]policy.Document, len(rows))
	for i, row := range rows {
		documents[i] = policy.Document{Name: host.StoredPrefix + row.Name, Text: []byte(row.Text)}
	}
	return documents, nil
}

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

// CheckPolicies returns how many policies files have, and what in them may mean two
// things.
func CheckPolicies(files []string) (count int, ambiguous []string, err error) {
	documents, err := policy.Files(".", files...)()
	if err != nil {
		return 0, nil, err
	}
	if count, err = policy.Check(documents); err != nil {
		return count, nil, err
	}
	engine, err := policy.Open(policy.Options{Sources: []policy.Source{func() ([]policy.Document, error) { return documents, nil }}})
	if err != nil {
		return count, nil, nil // it was checked; together with nothing else it may not be a set
	}
	return count, engine.Ambiguous(), nil
}

// ConfiguredPolicies returns the engine of a configuration read from path, with the
// policies that are stored, if there is a store yet that read can open.
func ConfiguredPolicies(c config.Config, path string, read func(do func(store.Store) error) error) (engine *policy.Engine, err error) {
	var wrong error
	err = read(func(st store.Store) error {
		engine, wrong = OpenPolicy(c, path, "", st)
		return nil
	})
	switch {
	case plugin.CodeOf(err) == plugin.CodeNotFound:
		return OpenPolicy(c, path, "", nil)
	case err != nil:
		return nil, err
	}
	return engine, wrong
}

// PolicyNames holds the names in policies against those that are known: in files, or in
// what a configuration read from path has with what is stored.
func PolicyNames(c config.Config, path string, files []string, known policy.Known, stored []policy.Document) (problems, warnings policy.Problems, err error) {
	documents := stored
	if len(files) > 0 {
		documents, err = policy.Files(".", files...)()
	} else {
		var more []policy.Document
		more, err = ConfiguredDocuments(c, path)
		documents = append(documents, more...)
	}
	if err != nil {
		return nil, nil, err
	}
	problems, warnings = policy.Names(documents, known)
	return problems, warnings, nil
}

// KnownNames are all names that policies may speak of in a host with these plugins.
func KnownNames(ctx context.Context, c config.Config, r store.Reader, manifests []*plugin.Manifest) (policy.Known, error) {
	known := ConfiguredNames(c)
	known.Plugins = []string{host.PoliciesPlugin, host.AgentsPlugin, host.SessionsPlugin, host.CallsPlugin, host.KnowledgePlugin, host.ReferencePlugin, host.LedgerPlugin, host.BackupPlugin, host.MetricsPlugin}
	known.Operations, known.Effects, known.Agents = []string{}, []string{}, []string{}
	for _, m := range manifests {
		known.Plugins = append(known.Plugins, m.Name)
		for _, op := range m.Operations {
			known.Operations = append(known.Operations, m.Name+"/"+op.Name)
			known.Effects = append(known.Effects, op.Effects...)
		}
	}
	rows, err := r.Agents(ctx, c.Tenant)
	for _, row := range rows {
		known.Agents = append(known.Agents, row.ID)
	}
	for _, names := range []*[]string{&known.Plugins, &known.Operations, &known.Effects} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	return known, err
}
