package registry

import (
	"context"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

// An Info is what lists show of one version of a plugin.
type Info struct {
	Name         string        `json:"name"`
	Version      string        `json:"version"`
	DisplayName  string        `json:"display_name,omitempty"`
	Description  string        `json:"description,omitempty"`
	State        State         `json:"state"`
	Kinds        []plugin.Kind `json:"kinds"`      // of its operations, each once
	Operations   []string      `json:"operations"` // but for hidden ones; none while only the code knows them
	Dialect      string        `json:"dialect"`
	Source       string        `json:"source"`
	Digest       string        `json:"digest"`
	Signer       signed.Signer `json:"signer,omitempty"` // the publisher whose signature it came with, and the key: acme/0123456789ABCDEF
	Path         string        `json:"path"`
	Dev          bool          `json:"dev"`
	ApprovedBy   string        `json:"approved_by,omitempty"` // who let it be called
	Held         bool          `json:"held,omitzero"`         // quarantined until its differences are approved
	RegisteredAt time.Time     `json:"registered_at"`
	Problem      string        `json:"problem,omitempty"`      // why an active one cannot be used at the moment
	Halted       []Halt        `json:"disabled_for,omitempty"` // agents that the host has disabled it for

	manifest *plugin.Manifest
}

// Plugin returns the manifest, with at least name and version where it cannot
// be read.
func (i Info) Plugin() *plugin.Manifest {
	if i.manifest != nil {
		return i.manifest
	}
	return &plugin.Manifest{Name: i.Name, Version: i.Version, Dialect: i.Dialect}
}

// Of returns i as one of a version with this manifest: what is known of it where the registry
// is another process's.
func (i Info) Of(m *plugin.Manifest) Info {
	i.manifest = m
	return i
}

// described returns the manifest, as [Info.Plugin] does.
func (v *version) described() *plugin.Manifest {
	if m, err := v.manifest(); err == nil {
		return m
	}
	return &plugin.Manifest{Name: v.record.Name, Version: v.record.Version}
}

func (v *version) info() Info {
	r := v.record
	info := Info{
		Name: r.Name, Version: r.Version, State: v.state, Source: r.Source, Digest: r.Digest, Signer: r.Signer, Path: r.Path,
		Dev: r.Dev, ApprovedBy: r.ApprovedBy, Held: v.waits(), RegisteredAt: r.RegisteredAt, Kinds: []plugin.Kind{}, Operations: []string{},
	}
	m, err := v.manifest()
	if err != nil {
		info.Problem = err.Error()
		return info
	}
	info.manifest = m
	info.DisplayName, info.Description, info.Dialect = m.DisplayName, m.Description, m.Dialect
	for _, op := range m.Operations {
		if !slices.Contains(info.Kinds, op.Kind) {
			info.Kinds = append(info.Kinds, op.Kind)
		}
	}
	slices.Sort(info.Kinds)
	info.Operations = append(info.Operations, operationNames(m)...)
	if v.live != nil {
		if err := v.live.err(); err != nil {
			info.Problem = plugin.AsError(broken(v, err)).Message
		}
	}
	return info
}

// List returns all versions of all plugins: by name, the highest version
// first. Where kinds are given, only plugins with an operation of one of them.
// Linked directories are not looked at; they are when they are used.
func (r *Registry) List(ctx context.Context, kinds ...plugin.Kind) ([]Info, error) {
	if err := r.Refresh(ctx); err != nil {
		return nil, plugin.AsError(err)
	}
	return r.list(ctx, kinds)
}

// Known is [Registry.List] as Resolve knows it: what another process has changed lately, in the
// last second, may not be there yet. It reads nothing from the store that has not changed.
func (r *Registry) Known(ctx context.Context) ([]Info, error) {
	if err := r.keepUp(ctx, r.now()); err != nil {
		return nil, plugin.AsError(err)
	}
	return r.list(ctx, nil)
}

func (r *Registry) list(ctx context.Context, kinds []plugin.Kind) ([]Info, error) {
	infos := []Info{}
	for v := range r.index.Load().all {
		if v.record.Source == SourceConfig {
			if err := r.freshen(ctx, v); err != nil {
				return nil, plugin.AsError(err)
			}
			v = r.index.Load().holding(v.live)
		}
		info := v.info()
		fits := func(kind plugin.Kind) bool { return slices.Contains(kinds, kind) }
		if len(kinds) == 0 || slices.ContainsFunc(info.Kinds, fits) {
			infos = append(infos, info)
		}
	}
	return infos, nil
}

// A Halt is an agent that the host has disabled a plugin for.
type Halt struct {
	Agent  string    `json:"agent"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	Enable string    `json:"enable"` // the command that enables it again
}

// A Shown is one version of a plugin with its whole manifest.
type Shown struct {
	Info
	Manifest *plugin.Manifest `json:"manifest"`
	Versions []string         `json:"versions"` // all there are, the highest first
	Waiting  []string         `json:"waiting"`  // those that wait for approval, the highest first; one may be in Versions as well
}

// Show returns the highest version that ref, a name or name@versions, allows,
// whatever its state; an active one goes first. A linked plugin is looked at.
func (r *Registry) Show(ctx context.Context, ref string) (Shown, error) {
	return r.ShowFor(ctx, ref, nil)
}

// ShowFor is [Registry.Show] for a principal: versions of which they see nothing are
// not there, neither as what is shown nor in what the error says. The manifest is
// whole.
func (r *Registry) ShowFor(ctx context.Context, ref string, sees Sees) (Shown, error) {
	shown, err := r.show(ctx, ref, sees)
	if err != nil {
		return Shown{}, plugin.AsError(err)
	}
	return shown, nil
}

func (r *Registry) show(ctx context.Context, ref string, sees Sees) (Shown, error) {
	want, err := parsePlugin(ref)
	if err != nil {
		return Shown{}, err
	}
	if err := r.Refresh(ctx); err != nil {
		return Shown{}, err
	}
	for _, v := range r.index.Load().as(sees).versions(want.Plugin) {
		if v.state != Active {
			continue
		}
		if err := r.freshen(ctx, v); err != nil {
			return Shown{}, err
		}
	}
	ix := r.index.Load().as(sees)
	v, err := ix.choose(want, func(v *version) bool { return v.state == Active })
	if err != nil {
		if v, err = ix.choose(want, func(*version) bool { return true }); err != nil {
			return Shown{}, err
		}
	}
	m, err := v.manifest()
	if err != nil {
		return Shown{}, err
	}
	shown := Shown{Info: v.info(), Manifest: m, Waiting: []string{}}
	for _, other := range ix.versions(want.Plugin) {
		if !other.record.Beside {
			shown.Versions = append(shown.Versions, other.record.Version)
		}
		if other.waits() {
			shown.Waiting = append(shown.Waiting, other.record.Version)
		}
	}
	return shown, nil
}
