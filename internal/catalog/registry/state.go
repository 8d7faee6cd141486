package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// Enable lets a version be called: the highest one that ref, a name or
// name@versions, allows. Where the manifest leaves operations or schemas open,
// the plugin's code is asked for them first; if that fails it stays as it
// was. A version whose files were changed is enabled only if they are again
// those that were registered; one that is not what was approved waits for
// [Registry.Approve] instead, and the error is quarantined.
func (r *Registry) Enable(ctx context.Context, ref string) (Info, error) {
	info, err := r.enable(ctx, ref)
	if err != nil {
		return Info{}, plugin.AsError(err)
	}
	return info, nil
}

func (r *Registry) enable(ctx context.Context, ref string) (Info, error) {
	want, err := parsePlugin(ref)
	if err != nil {
		return Info{}, err
	}
	if err := r.Refresh(ctx); err != nil {
		return Info{}, err
	}
	v, err := r.index.Load().choose(want, func(*version) bool { return true })
	if err != nil {
		return Info{}, err
	}
	if v.state == Active {
		return v.info(), nil
	}
	if err := r.mayRun(v); err != nil {
		return Info{}, err
	}
	switch {
	case v.waits():
		return Info{}, v.held()
	case !v.record.Dev && !v.record.approved() && r.index.Load().baseline(v.record) != nil:
		return Info{}, r.holdBack(ctx, v)
	case v.state == Quarantined:
		if err := r.CheckPackage(ctx, v.pkg); err != nil {
			return Info{}, err
		}
	}
	// The code is asked before the turn is taken: it may be slow.
	merged, err := r.asked(ctx, v)
	if err != nil {
		return Info{}, err
	}
	err = r.change(ctx, func() error {
		now := r.index.Load().version(v.record.Name, v.record.Version)
		if now == nil || now.release != v.release {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s was replaced in the meantime: enable it again", label(v.record.Name, v.record.Version))
		}
		record := v.record
		record.State = Active
		if !record.Dev && !record.approved() {
			record.ApprovedBy = Author(ctx, r.principal)
		}
		if record.Manifest, err = json.Marshal(merged); err != nil {
			return fmt.Errorf("storing the manifest: %w", err)
		}
		v, err = r.put(ctx, record, v.live, plugin.EntryPluginEnabled)
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return v.info(), nil
}

// merge fills a manifest with what the code knows, where it leaves that open.
func (r *Registry) merge(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) (*plugin.Manifest, error) {
	if !contract.NeedsDescribe(m) {
		return m, nil
	}
	if err := r.CheckPackage(ctx, pkg); err != nil {
		return nil, err
	}
	if r.describe == nil {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "the manifest leaves operations or schemas open, and the code cannot be asked here")
	}
	described, err := r.describe(ctx, pkg, m)
	if err != nil {
		if e := plugin.AsError(err); e.Code != plugin.CodeInternal {
			return nil, &plugin.Error{Code: e.Code, Message: "asking the code what it does: " + e.Message, Details: e.Details, Err: err}
		}
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "asking the code what it does: %w", err)
	}
	merged, err := contract.Merge(m, described)
	if err != nil {
		return nil, unacceptable(err)
	}
	return merged, nil
}

// unacceptable gives the problems of a manifest their code.
func unacceptable(err error) error {
	return plugin.Errorf(plugin.CodeInvalidInput, "the plugin is not acceptable\n%w", err)
}

// Disable lets no version be called that ref, a name or name@versions, allows.
func (r *Registry) Disable(ctx context.Context, ref string) ([]Info, error) {
	var infos []Info
	err := r.onVersions(ctx, ref, func(v *version) error {
		if v.state == Active {
			var err error
			if v, err = r.setState(ctx, v, Disabled, plugin.EntryPluginDisabled); err != nil {
				return err
			}
		}
		infos = append(infos, v.info())
		return nil
	})
	if err != nil {
		return nil, plugin.AsError(err)
	}
	return infos, nil
}

// setState gives a version another state. The caller has the turn.
func (r *Registry) setState(ctx context.Context, v *version, to State, kind plugin.EntryKind) (*version, error) {
	if err := r.catalog.SetState(ctx, v.record, to, kind); err != nil {
		return v, fmt.Errorf("making %s %s: %w", label(v.record.Name, v.record.Version), to, err)
	}
	next := &version{release: v.release, state: to}
	r.index.Store(r.index.Load().with(next))
	return next, nil
}

// Delete removes a plugin: the version that ref names, or the only one there
// is, with what waits beside it. Its package goes too, unless another version
// has the same.
func (r *Registry) Delete(ctx context.Context, ref string) (Info, error) {
	var info Info
	named := ""
	err := r.onVersions(ctx, ref, func(v *version) error {
		if named != "" && named != v.record.Version {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s has several versions: name the one to delete, as in %s; there is %s",
				v.record.Name, label(v.record.Name, v.record.Version), numbers(r.index.Load().versions(v.record.Name)))
		}
		named = v.record.Version
		return nil
	}, func(v *version) error {
		if v.record.Source == SourceBundled {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s is part of Mortise: disable it instead", v.record.Name)
		}
		if !v.record.Beside {
			info = v.info()
		}
		return r.drop(ctx, v)
	})
	if err != nil {
		return info, plugin.AsError(err)
	}
	return info, nil
}

// drop removes one version. The caller has the turn.
func (r *Registry) drop(ctx context.Context, v *version) error {
	if err := r.catalog.Delete(ctx, v.record); err != nil {
		return fmt.Errorf("deleting %s: %w", label(v.record.Name, v.record.Version), err)
	}
	r.index.Store(r.index.Load().without(v))
	return r.sweep(v.record)
}

// onVersions takes the turn and does each step, one after another, on all
// versions that ref allows.
func (r *Registry) onVersions(ctx context.Context, ref string, steps ...func(*version) error) error {
	want, err := parsePlugin(ref)
	if err != nil {
		return err
	}
	return r.change(ctx, func() error {
		versions := r.index.Load().versions(want.Plugin)
		var meant []*version
		for _, v := range versions {
			if want.Constraint == "" || want.allows(v) {
				meant = append(meant, v)
			}
		}
		switch {
		case len(versions) == 0:
			return r.index.Load().unknown(want.Plugin)
		case versions[0].record.Source == SourceConfig:
			return plugin.Errorf(plugin.CodeInvalidInput, "%s is bound in the host's configuration: change it there", want.Plugin)
		case len(meant) == 0:
			return plugin.Errorf(plugin.CodeNotFound, "%s has no version %s; there is %s", want.Plugin, want.Constraint, numbers(versions))
		}
		for _, step := range steps {
			for _, v := range meant {
				if err := step(v); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// lookTime bounds the question whether another registry has a package.
const lookTime = 5 * time.Second

// sweep removes the package of a record that is gone, if no other has it.
func (r *Registry) sweep(gone Record) error {
	if gone.Dev || !r.packages.has(gone.Digest) {
		return nil
	}
	for v := range r.index.Load().all {
		if v.record.Digest == gone.Digest && !v.record.Dev {
			return nil
		}
	}
	if r.held != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lookTime)
		defer cancel()
		if held, err := r.held(ctx, gone.Digest); held || err != nil {
			return err
		}
	}
	r.checksMu.Lock()
	delete(r.checks, gone.Digest)
	r.checksMu.Unlock()
	if err := r.packages.discard(gone.Digest); err != nil {
		return fmt.Errorf("removing the package of %s: %w", label(gone.Name, gone.Version), err)
	}
	return nil
}

// parsePlugin reads a reference that names no operation.
func parsePlugin(ref string) (wanted, error) {
	want, err := parseWanted(ref)
	if err == nil && want.Operation != "" {
		err = plugin.Errorf(plugin.CodeInvalidInput, "a plugin is meant here as a whole: %s, without /%s", want.Plugin, want.Operation)
	}
	return want, err
}
