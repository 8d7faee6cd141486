package client

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// cutVersions takes apart a name@versions.
func cutVersions(ref string) (name, versions string) {
	name, versions, _ = strings.Cut(ref, "@")
	return name, versions
}

// infoOf is a version of a plugin. Where its files are is known on the socket alone.
func infoOf(p rest.Plugin) host.PluginInfo {
	info := host.PluginInfo{
		Name: p.Name, Version: p.Version, DisplayName: p.DisplayName, Description: p.Description, State: host.PluginState(p.State), Kinds: p.Kinds, Operations: p.Operations,
		Dialect: p.Dialect, Source: p.Source, Digest: p.Digest, Path: p.Path, Dev: p.Dev, ApprovedBy: p.ApprovedBy, Held: p.Held, RegisteredAt: p.RegisteredAt, Problem: p.Problem,
	}
	for _, h := range p.Halted {
		info.Halted = append(info.Halted, haltOf(p.Name, h))
	}
	return info.Of(&plugin.Manifest{Name: p.Name, Version: p.Version, VersionText: p.VersionText, Dialect: p.Dialect})
}

func haltOf(name string, h rest.PluginHalt) host.PluginHalt {
	return host.PluginHalt{Agent: h.Agent, Reason: h.Reason, At: h.At, Enable: host.EnableAgain(name, h.Agent)}
}

// List implements [Plugins], in the order of the host's own list.
func (p plugins) List(ctx context.Context, kinds ...plugin.Kind) ([]host.PluginInfo, error) {
	all, err := listed(ctx, p.remote, "plugins", infoOf, "plugins")
	if len(kinds) > 0 {
		all = slices.DeleteFunc(all, func(i host.PluginInfo) bool {
			return !slices.ContainsFunc(i.Kinds, func(k plugin.Kind) bool { return slices.Contains(kinds, k) })
		})
	}
	slices.SortStableFunc(all, func(a, b host.PluginInfo) int {
		switch {
		case a.Name != b.Name:
			return strings.Compare(a.Name, b.Name)
		case host.Newer(a.Version, b.Version):
			return -1
		}
		return 1
	})
	return all, err
}

// Show implements [Plugins].
func (p plugins) Show(ctx context.Context, ref string) (s host.PluginShown, err error) {
	var got rest.PluginShown
	if err := p.get(ctx, &got, nil, "plugins", ref); err != nil {
		return s, err
	}
	s = host.PluginShown{Info: infoOf(got.Plugin), Versions: got.Versions, Waiting: got.Waiting}
	s.Halted = nil
	for _, h := range got.Halted {
		s.Halted = append(s.Halted, haltOf(got.Name, h))
	}
	if len(got.Manifest) > 0 {
		s.Manifest = new(plugin.Manifest)
		err = json.Unmarshal(got.Manifest, s.Manifest)
	}
	return s, err
}

// Actions implements [Plugins].
func (p plugins) Actions(ctx context.Context, ref string) ([]host.Action, error) {
	var all rest.PluginActions
	err := p.get(ctx, &all, nil, "plugins", ref, "actions")
	return each(all.Actions, func(a rest.PluginAction) host.Action { return host.Action(a) }), err
}

// changed asks for a change, and returns the versions that it was of.
func (p plugins) changed(ctx context.Context, method string, body any, path ...string) ([]host.PluginInfo, error) {
	var got rest.Plugins
	err := p.change(ctx, method, body, &got, "", path...)
	return each(got.Plugins, infoOf), err
}

// one is the version that a change was of.
func one(all []host.PluginInfo, err error) (host.PluginInfo, error) {
	if len(all) == 0 {
		return host.PluginInfo{}, err
	}
	return all[0], err
}

// Enable implements [Plugins].
func (p plugins) Enable(ctx context.Context, ref string) (host.PluginInfo, error) {
	return one(p.changed(ctx, http.MethodPost, nil, "plugins", ref+":enable"))
}

// Disable implements [Plugins].
func (p plugins) Disable(ctx context.Context, ref string) ([]host.PluginInfo, error) {
	return p.changed(ctx, http.MethodPost, nil, "plugins", ref+":disable")
}

// Delete implements [Plugins].
func (p plugins) Delete(ctx context.Context, ref string) (host.PluginInfo, error) {
	return one(p.changed(ctx, http.MethodDelete, nil, "plugins", ref))
}

// Needs implements [Plugins].
func (p plugins) Needs(ctx context.Context, name string) (n host.PluginNeeds, err error) {
	return n, p.get(ctx, &n, nil, "plugins", name, "needs")
}

// Subscribe implements [Plugins].
func (p plugins) Subscribe(ctx context.Context, name string) (n host.PluginNeeds, err error) {
	return n, p.post(ctx, nil, &n, "plugins", name+":subscribe")
}

// Unsubscribe implements [Plugins].
func (p plugins) Unsubscribe(ctx context.Context, name string) (n host.PluginNeeds, err error) {
	return n, p.post(ctx, nil, &n, "plugins", name+":unsubscribe")
}

// Map implements [Plugins].
func (p plugins) Map(ctx context.Context, ref string, word *host.MappingWord) (host.PluginInfo, error) {
	name, operation, _ := strings.Cut(ref, "/")
	operation, version, found := strings.Cut(operation, "@")
	if found {
		name += "@" + version
	}
	spec := rest.MappingSpec{Operation: operation, Declared: word == nil}
	if word != nil {
		spec.Effects, spec.Tool, spec.Brokered, spec.Approval = word.Effects, word.Tool, word.Brokered, word.Approval
	}
	return one(p.changed(ctx, http.MethodPost, spec, "plugins", name+":map"))
}

// Environment implements [Plugins]. A directory is one of the machine that the host runs on.
func (p plugins) Environment(ctx context.Context, ref, from string) (host.RegisteredPlugin, error) {
	if from != "" && p.who.Manner != OverSocket {
		return host.RegisteredPlugin{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is a directory of this machine, and is read where the host runs: run this there", from)
	}
	return p.furnish(ctx, ref, rest.EnvironmentSpec{From: from})
}

// Refresh implements [Plugins].
func (p plugins) Refresh(ctx context.Context, ref string) (host.RegisteredPlugin, error) {
	var got rest.PluginRegistered
	err := p.post(ctx, nil, &got, "plugins", ref+":refresh")
	return host.RegisteredPlugin{Info: infoOf(got.Plugin), Unchanged: got.Unchanged}, err
}

// RemoveEnvironment implements [Plugins].
func (p plugins) RemoveEnvironment(ctx context.Context, ref string) (host.RegisteredPlugin, error) {
	return p.furnish(ctx, ref, rest.EnvironmentSpec{Remove: true})
}

func (p plugins) furnish(ctx context.Context, ref string, spec rest.EnvironmentSpec) (host.RegisteredPlugin, error) {
	var got rest.PluginRegistered
	err := p.post(ctx, spec, &got, "plugins", ref+":environment")
	return host.RegisteredPlugin{Info: infoOf(got.Plugin), Unchanged: got.Unchanged}, err
}

// Rollback implements [Plugins].
func (p plugins) Rollback(ctx context.Context, ref string) (left, back host.PluginInfo, err error) {
	var got rest.PluginRolledBack
	err = p.post(ctx, nil, &got, "plugins", ref+":rollback")
	return infoOf(got.Left), infoOf(got.Back), err
}

// Review implements [Plugins].
func (p plugins) Review(ctx context.Context, ref string, ask bool) (v host.PluginReview, err error) {
	if ask {
		return v, p.post(ctx, nil, &v, "plugins", ref+":review")
	}
	return v, p.get(ctx, &v, nil, "plugins", ref, "review")
}

// Approve implements [Plugins].
func (p plugins) Approve(ctx context.Context, seen host.PluginReview) (host.PluginInfo, error) {
	body := rest.PluginApproval{Digest: seen.Digest, Hash: seen.Hash, Approved: (*rest.PluginApproved)(seen.Approved)}
	return one(p.changed(ctx, http.MethodPost, body, "plugins", seen.Name+"@"+seen.Version+":approve"))
}

// Register implements [Plugins]. The host reads the files, where they are: this is for the
// machine that it runs on.
func (p plugins) Register(ctx context.Context, path string, o host.RegisterOptions) (report host.Registered, err error) {
	if p.who.Manner != OverSocket {
		return report, plugin.Errorf(plugin.CodeInvalidInput, "%s is a path of this machine, and a plugin is registered where its host runs: run this there", path)
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return report, err
	}
	var got rest.PluginsRegistered
	err = p.post(ctx, rest.RegisterSpec{Path: whole, Dev: o.Dev, Enable: o.Enable, Force: o.Force, ID: o.ID, DisplayName: o.DisplayName, Description: o.Description}, &got, "plugins:register")
	report.Named = got.Named
	for _, r := range got.Registered {
		one := host.RegisteredPlugin{Info: infoOf(r.Plugin), Unchanged: r.Unchanged}
		if r.NotEnabled != nil {
			one.NotEnabled = failureOf(r.NotEnabled)
		}
		report.Registered = append(report.Registered, one)
	}
	for _, f := range got.Failed {
		failed := host.FailedPlugin{Path: f.Path, Err: failureOf(&f.Error)}
		if len(f.Problems) > 0 {
			problems := host.Problems(each(f.Problems, func(p rest.PluginProblem) host.Problem { return host.Problem(p) }))
			failed.Err = &plugin.Error{Code: f.Error.Code, Message: f.Error.Message, Err: problems}
		}
		report.Failed = append(report.Failed, failed)
	}
	if err == nil && got.Error != nil {
		err = failureOf(got.Error)
	}
	return report, err
}

// failureOf is the error of a failure.
func failureOf(f *rest.Failure) error {
	_, err := resultOf(&rest.Outcome{Error: f})
	return err
}
