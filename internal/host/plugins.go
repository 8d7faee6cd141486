package host

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/agent"
	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/plugin"
)

// What is known of plugins, and what becomes of those that are registered.
type (
	PluginInfo      = registry.Info
	PluginShown     = registry.Shown
	PluginReview    = registry.Review
	PluginApproved  = registry.Approved
	PluginHalt      = registry.Halt
	PluginState     = registry.State
	MappingWord     = registry.MappingWord
	RegisterOptions = registry.RegisterOptions
	Registered      = registry.RegisterReport

	RegisteredPlugin = registry.Registered
	FailedPlugin     = registry.Failed
	Problems         = contract.Problems // of a manifest, with their places
	Problem          = contract.Problem
)

// EnableAgain is the command that enables a plugin again for an agent.
func EnableAgain(name, id string) string { return agent.EnableAgain(name, id) }

// PluginActive is the state of a plugin that may be called.
const PluginActive = registry.Active

// Plugins are the plugins as one principal may see and change them. What is
// refused is on the record.
type Plugins struct {
	g        *Guard
	by       plugin.Principal
	caller   *Caller // nil for the user of this process
	registry *registry.Registry
	models   bool // what asks for a model runs

	environments func() (config.Environments, string) // what may be installed, and for which version of Python
	parts        *Parts
}

// List returns the plugins of which they may list or execute something, or
// which they may configure, with those operations.
func (p Plugins) List(ctx context.Context, kinds ...plugin.Kind) ([]registry.Info, error) {
	all, err := p.registry.List(ctx, kinds...)
	if err != nil {
		return nil, err
	}
	shown := []registry.Info{}
	for _, info := range all {
		if info.Halted, err = halted(ctx, p.g, info.Name); err != nil {
			return nil, err
		}
		if p.narrow(&info) && (len(kinds) == 0 || slices.ContainsFunc(info.Kinds, func(kind plugin.Kind) bool { return slices.Contains(kinds, kind) })) {
			shown = append(shown, info)
		}
	}
	return shown, nil
}

// halted returns the agents that the host has disabled a plugin for, by id.
func halted(ctx context.Context, g *Guard, name string) ([]registry.Halt, error) {
	halts, err := agent.Halts(ctx, g.Store, g.Tenant, name)
	var all []registry.Halt
	for _, id := range slices.Sorted(maps.Keys(halts)) {
		all = append(all, registry.Halt{Agent: id, Reason: halts[id].Reason, At: halts[id].At, Enable: agent.EnableAgain(name, id)})
	}
	return all, err
}

// Halted returns all that the host has disabled for agents, by plugin.
func (p Plugins) Halted(ctx context.Context) (map[string][]registry.Halt, error) {
	infos, err := p.registry.List(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string][]registry.Halt{}
	for _, info := range infos {
		halts, err := halted(ctx, p.g, info.Name)
		if err != nil {
			return nil, err
		}
		if len(halts) > 0 {
			found[info.Name] = halts
		}
	}
	return found, nil
}

// Show returns one plugin, with the operations that they may know of. One of
// which they may know nothing is not found.
func (p Plugins) Show(ctx context.Context, ref string) (registry.Shown, error) {
	return p.show(ctx, ref, "see")
}

// show returns one plugin, and says in the entry of a refusal what was tried.
func (p Plugins) show(ctx context.Context, ref, action string) (registry.Shown, error) {
	shown, err := p.registry.ShowFor(ctx, ref, p.sees)
	if err != nil {
		name, _, _ := strings.Cut(ref, "@")
		return shown, p.hide(ctx, name, action, err, false)
	}
	if shown.Halted, err = halted(ctx, p.g, shown.Name); err != nil {
		return shown, err
	}
	operations, whole := p.sees(shown.Manifest)
	if whole {
		return shown, nil
	}
	p.narrow(&shown.Info)
	m := *shown.Manifest
	m.Operations = operations
	shown.Manifest = &m
	return shown, nil
}

// sees returns what they may see of a plugin.
func (p Plugins) sees(m *plugin.Manifest) (operations []*plugin.Operation, whole bool) {
	return p.g.Policy.Visible(m, p.g.call(p.by))
}

// Resolve returns the operation that a reference means to them. What they do not see
// is not found, and the refusal is recorded.
func (p Plugins) Resolve(ctx context.Context, ref, action string) (*plugin.Target, error) {
	t, err := p.registry.ResolveFor(ctx, ref, p.sees)
	if err == nil {
		return t, nil
	}
	name, _, _ := strings.Cut(ref, "@")
	name, _, _ = strings.Cut(name, "/")
	_, real := p.registry.Resolve(ctx, ref)
	return nil, p.hide(ctx, name, action, err, plugin.CodeOf(real) != plugin.CodeNotFound)
}

// hide returns why something of a plugin was not found, and records the refusal where
// that is because they do not see it: partly says that this is so although they see
// another part of the plugin.
func (p Plugins) hide(ctx context.Context, name, action string, missing error, partly bool) error {
	there, err := p.registry.Show(ctx, name)
	if err != nil || plugin.CodeOf(missing) != plugin.CodeNotFound {
		return missing
	}
	if operations, whole := p.sees(there.Manifest); whole || len(operations) > 0 && !partly {
		return missing
	}
	return p.g.refuse(ctx, p.by, use{kind: plugin.EntryPluginRefused, subject: there.Name + "@" + there.Version, action: action},
		plugin.AsError(missing), plugin.Decision{Reasons: []string{principal.Name(p.by) + " may not list it"}})
}

// narrow leaves of a plugin what they may know of, and reports whether that is
// anything.
func (p Plugins) narrow(info *registry.Info) bool {
	operations, whole := p.sees(info.Plugin())
	if whole {
		return true
	}
	known := func(name string) bool {
		return slices.ContainsFunc(operations, func(op *plugin.Operation) bool { return op.Name == name })
	}
	info.Operations = slices.DeleteFunc(slices.Clone(info.Operations), func(name string) bool { return !known(name) })
	info.Kinds = []plugin.Kind{}
	for _, op := range operations {
		if !slices.Contains(info.Kinds, op.Kind) {
			info.Kinds = append(info.Kinds, op.Kind)
		}
	}
	slices.Sort(info.Kinds)
	return len(operations) > 0
}

// Register is [registry.Registry.Register] for those who may configure what is
// registered.
func (p Plugins) Register(ctx context.Context, path string, o registry.RegisterOptions) (registry.RegisterReport, error) {
	o.May = func(m *plugin.Manifest) error { return p.May(ctx, "register", m) }
	return p.registry.Register(p.named(ctx), path, o)
}

// Enable is [registry.Registry.Enable] for those who may configure the plugin.
func (p Plugins) Enable(ctx context.Context, ref string) (registry.Info, error) {
	if err := p.MayChange(ctx, "enable", ref); err != nil {
		return registry.Info{}, err
	}
	return p.registry.Enable(p.named(ctx), ref)
}

// Disable is [registry.Registry.Disable] for those who may configure the plugin.
func (p Plugins) Disable(ctx context.Context, ref string) ([]registry.Info, error) {
	if err := p.MayChange(ctx, "disable", ref); err != nil {
		return nil, err
	}
	return p.registry.Disable(p.named(ctx), ref)
}

// Approve is [registry.Registry.Approve] for those who may configure the plugin. No agent
// approves one, and no program with the token of a service: that a person has looked is
// what it is for.
func (p Plugins) Approve(ctx context.Context, seen registry.Review) (registry.Info, error) {
	if err := p.asPerson(ctx, "approve", seen.Name+"@"+seen.Version); err != nil {
		return registry.Info{}, err
	}
	return p.registry.Approve(p.named(ctx), seen)
}

// Map is [registry.Registry.Map] for those who may approve the plugin: what an operation does
// decides what policy lets it do.
func (p Plugins) Map(ctx context.Context, ref string, word *MappingWord) (registry.Info, error) {
	name, _, _ := strings.Cut(ref, "/")
	if _, version, found := strings.Cut(ref, "@"); found && !strings.Contains(name, "@") {
		name += "@" + version
	}
	if err := p.asPerson(ctx, "map", name); err != nil {
		return registry.Info{}, err
	}
	return p.registry.Map(p.named(ctx), ref, word)
}

// asPerson refuses who may not judge a plugin: those who may not configure it, tokens without
// the scope, agents and programs.
func (p Plugins) asPerson(ctx context.Context, what, ref string) error {
	name, _ := refOf(ref)
	if err := p.g.covered(ctx, p.caller, ScopeApprove, what, name, name+"/*"); err != nil {
		return err
	}
	u := use{kind: plugin.EntryPluginRefused, subject: ref, action: what}
	if p.by.Type == "agent" || p.caller != nil && p.by.Type == "service" {
		return p.g.refuse(ctx, p.by, u, plugin.Errorf(plugin.CodeApprovalSelf, "%s is no person, and approves no plugin", principal.Name(p.by)), plugin.Decision{})
	}
	if err := p.MayChange(ctx, what, ref); err != nil {
		return err
	}
	return p.g.recent(ctx, p.caller, u)
}

// Review is [registry.Registry.Review]; to ask the code too, or where they do not see
// all of the plugin, they must be one who may configure it.
func (p Plugins) Review(ctx context.Context, ref string, ask bool) (registry.Review, error) {
	if ask || !p.seesAll(ctx, ref) {
		if err := p.MayChange(ctx, "approve", ref); err != nil {
			return registry.Review{}, err
		}
	}
	name, _ := refOf(ref)
	if _, err := p.show(ctx, name, "approve"); err != nil {
		return registry.Review{}, err
	}
	return p.registry.Review(ctx, ref, ask)
}

// named has the registry make a change in their name.
func (p Plugins) named(ctx context.Context) context.Context { return registry.By(ctx, p.by.Member()) }

// Refresh asks a mounted server for its tools again. Where a version of the plugin was
// approved and they are others now, they wait beside it for [Plugins.Approve].
func (p Plugins) Refresh(ctx context.Context, ref string) (registry.Registered, error) {
	if err := p.MayChange(ctx, "refresh", ref); err != nil {
		return registry.Registered{}, err
	}
	return p.registry.Repin(p.named(ctx), ref, nil)
}

// Rollback is [registry.Registry.Rollback] for those who may configure the
// plugin.
func (p Plugins) Rollback(ctx context.Context, ref string) (left, back registry.Info, err error) {
	if err := p.MayChange(ctx, "roll back", ref); err != nil {
		return left, back, err
	}
	return p.registry.Rollback(p.named(ctx), ref)
}

// Delete is [registry.Registry.Delete] for those who may configure the plugin.
// Agents do not have it any more once its last version is gone.
func (p Plugins) Delete(ctx context.Context, ref string) (registry.Info, error) {
	if err := p.MayChange(ctx, "delete", ref); err != nil {
		return registry.Info{}, err
	}
	info, err := p.registry.Delete(p.named(ctx), ref)
	if err != nil {
		return info, err
	}
	name, _ := refOf(ref)
	return info, p.unassign(ctx, name)
}

// seesAll reports whether they see every operation of every version of a plugin.
func (p Plugins) seesAll(ctx context.Context, ref string) bool {
	all, err := p.registry.List(ctx)
	name, _ := refOf(ref)
	return err == nil && !slices.ContainsFunc(all, func(info registry.Info) bool {
		operations, whole := p.sees(info.Plugin())
		return strings.EqualFold(info.Name, name) && !whole && len(operations) < max(1, len(info.Plugin().Operations))
	})
}

// MayChange refuses a principal that may not configure an installed plugin: every
// version that ref could mean. To who sees none of these the plugin is not found, as
// one that is not installed.
func (p Plugins) MayChange(ctx context.Context, what, ref string) error {
	all, err := p.registry.List(ctx)
	if err != nil {
		return err
	}
	name, version, _ := strings.Cut(ref, "@")
	version = strings.TrimPrefix(version, "=")
	var meant []registry.Info
	for _, info := range all {
		if strings.EqualFold(info.Name, name) {
			meant = append(meant, info)
		}
	}
	if i := slices.IndexFunc(meant, func(i registry.Info) bool { return i.Version == version }); i >= 0 {
		meant = meant[i : i+1]
	}
	if !slices.ContainsFunc(meant, func(i registry.Info) bool { return p.narrow(&i) }) {
		if _, err := p.show(ctx, ref, what); err != nil {
			return err
		}
	}
	for _, info := range meant {
		if err := p.May(ctx, what, info.Plugin()); err != nil {
			return err
		}
	}
	return nil
}

// May refuses a principal that may not configure a plugin, and records the
// refusal. what is the verb: register, enable, disable, approve, roll back,
// delete.
func (p Plugins) May(ctx context.Context, what string, m *plugin.Manifest) error {
	return p.g.authorise(ctx, p.by, &plugin.Target{Manifest: m}, use{plugin.EntryPluginRefused, m.Name + "@" + m.Version, what, what + " " + m.Name})
}
