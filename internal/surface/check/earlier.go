package check

import (
	"context"

	"github.com/Masterminds/semver/v3"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// An Earlier returns the versions of a plugin that the one with a manifest and a digest is
// held against.
type Earlier func(ctx context.Context, m *plugin.Manifest, digest string) ([]*plugin.Manifest, error)

// Registered finds earlier versions in a registry.
func Registered(r *registry.Registry) Earlier {
	return func(ctx context.Context, m *plugin.Manifest, digest string) ([]*plugin.Manifest, error) {
		return predecessors(ctx, r, m, digest)
	}
}

// Named finds the one version in a registry that a reference names.
func Named(ctx context.Context, r *registry.Registry, ref string) (Earlier, error) {
	named, err := r.Show(ctx, ref)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, m *plugin.Manifest, _ string) ([]*plugin.Manifest, error) {
		if m.Name != named.Name {
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "--against names %s@%s, which is another plugin", named.Name, named.Version)
		}
		return []*plugin.Manifest{named.Manifest}, nil
	}, nil
}

// predecessors returns the highest registered version that is lower, and the
// same version where it stands for other files and is not linked.
func predecessors(ctx context.Context, r *registry.Registry, m *plugin.Manifest, digest string) ([]*plugin.Manifest, error) {
	own, err := semver.NewVersion(m.Version)
	if err != nil {
		return nil, err
	}
	shown, err := r.Show(ctx, m.Name)
	if plugin.CodeOf(err) == plugin.CodeNotFound {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var found []*plugin.Manifest
	for _, version := range shown.Versions { // the highest first
		v, err := semver.NewVersion(version)
		if err != nil || own.LessThan(v) {
			continue
		}
		one, err := r.Show(ctx, m.Name+"@"+version)
		switch {
		case err != nil:
			return nil, err
		case own.Equal(v) && (one.Dev || one.Digest == digest):
			continue
		}
		found = append(found, one.Manifest)
		if v.LessThan(own) {
			break
		}
	}
	return found, nil
}
