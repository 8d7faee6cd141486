package registry

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/environment"
	"github.com/mortise-dev/mortise/plugin"
)

// BuildEnvironment installs what requirements.txt asks for into dir, which is empty. temp is
// a directory for what is needed on the way. Nil stands for no environment.
type BuildEnvironment func(ctx context.Context, requirements []byte, dir, temp string) (*plugin.Environment, error)

// Environment gives a plugin an environment of its own, in place of the one it has, or takes
// that away where build is nil. What is installed becomes a part of the package, so it has
// all that the files of a package have: a digest, which is looked at before each launch;
// other nodes; quarantine, until a person has approved the difference. ref is a name or
// name@versions; of a version with one that waits beside it, the one that waits is meant.
//
// The error is invalid_input for a plugin that cannot have one: one that is linked, bound,
// part of the host or of a tree, or that Python does not run from a source file.
func (r *Registry) Environment(ctx context.Context, ref string, build BuildEnvironment) (Registered, error) {
	one, err := r.environment(ctx, ref, build)
	if err != nil {
		return one, plugin.AsError(err)
	}
	return one, nil
}

func (r *Registry) environment(ctx context.Context, ref string, build BuildEnvironment) (Registered, error) {
	v, stored, err := r.furnishable(ctx, ref)
	if err != nil {
		return Registered{}, err
	}
	if err := r.CheckPackage(ctx, v.pkg); err != nil {
		return Registered{}, err
	}
	temp, err := os.MkdirTemp(r.packages.dir, unfinished)
	if err != nil {
		return Registered{}, err
	}
	defer func() { _ = rmtree.Remove(temp) }()
	root := filepath.Join(temp, "package")
	if err := os.CopyFS(root, os.DirFS(v.pkg.Dir)); err != nil {
		return Registered{}, err
	}
	if err := furnish(ctx, root, temp, build); err != nil {
		return Registered{}, err
	}
	written, err := contract.ReadIn(root, "")
	if err != nil {
		return Registered{}, unreadable(err)
	}
	o := RegisterOptions{Force: true, furnished: true, DisplayName: stored.DisplayName}
	if written.Description != "" {
		o.Description = stored.Description // which may have been given when it was registered
	}
	packages := stagedSet{registry: r}
	defer packages.remove()
	return r.install(ctx, &packages, root, root, v.record.Source, o)
}

// furnishable returns the version that is to have an environment.
func (r *Registry) furnishable(ctx context.Context, ref string) (*version, *plugin.Manifest, error) {
	v, m, err := r.changeable(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	why := ""
	switch {
	case v.record.Dev:
		why = "it is linked, and runs with what is installed on this machine"
	case v.record.Source == SourceConfig:
		why = "the configuration binds it"
	case v.record.Source == SourceBundled:
		why = "it is part of the host"
	case m.Dir != "":
		why = "it shares its package with other plugins"
	case m.Runner.Kind != "process" || len(m.Runner.Command) > 0 || filepath.Ext(m.Runner.Entry) != ".py":
		why = "the host does not start it with Python"
	default:
		return v, m, nil
	}
	return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s has no environment of its own: %s", label(v.record.Name, v.record.Version), why)
}

// changeable returns the version that the host changes the package of: the active one that ref
// allows, or else the highest, or the one that waits beside it.
func (r *Registry) changeable(ctx context.Context, ref string) (*version, *plugin.Manifest, error) {
	want, err := parsePlugin(ref)
	if err != nil {
		return nil, nil, err
	}
	if err := r.Refresh(ctx); err != nil {
		return nil, nil, err
	}
	ix := r.index.Load()
	v, err := ix.choose(want, func(v *version) bool { return v.state == Active })
	if err != nil {
		if v, err = ix.choose(want, func(*version) bool { return true }); err != nil {
			return nil, nil, err
		}
	}
	if beside := ix.beside(v.record.Name, v.record.Version); beside != nil {
		v = beside
	}
	m, err := v.manifest()
	if err != nil {
		return nil, nil, err
	}
	return v, m, nil
}

// furnish puts an environment into the package in root, in place of the one that is there.
func furnish(ctx context.Context, root, temp string, build BuildEnvironment) error {
	dir, list := filepath.Join(root, environment.Dir), filepath.Join(root, environment.ListFile)
	if err := rmtree.Remove(dir); err != nil {
		return err
	}
	if err := os.Remove(list); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if build == nil {
		return nil
	}
	info, err := os.Stat(filepath.Join(root, environment.File))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refused("its package has no %s, which would say what it requires", environment.File)
	case err != nil:
		return err
	case info.Size() > environment.MaxBytes:
		return refused("%s is larger than %d bytes", environment.File, environment.MaxBytes)
	}
	requirements, err := os.ReadFile(filepath.Join(root, environment.File))
	if err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	made, err := build(ctx, requirements, dir, temp)
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(list, append(raw, '\n'), 0o600)
}

// maxList is how many bytes the list of an environment has at most.
const maxList = 4 << 20

// environmentOf returns the environment that a package holds, nil for none. A package that
// the host did not put together has none: what claims to be one is refused.
func environmentOf(dir string, furnished bool) (*plugin.Environment, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if !furnished {
		for _, name := range []string{environment.Dir, environment.ListFile} {
			if _, err := root.Lstat(name); err == nil {
				return nil, refused("%s is where the host puts what an administrator has installed for a plugin: no package brings it along", name)
			}
		}
		return nil, nil
	}
	raw, err := root.ReadFile(environment.ListFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	made := new(plugin.Environment)
	if len(raw) > maxList {
		return nil, refused("%s is larger than %d bytes", environment.ListFile, maxList)
	}
	return made, json.Unmarshal(raw, made)
}
