package registry

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/near"
	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/service/mount"
	"github.com/mortise-dev/mortise/plugin"
)

// Define asks the server that a manifest mounts for its tools, and returns them as they are
// kept in [mount.File].
type Define func(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]byte, error)

// Repin puts what a mounted server says of its tools into the plugin's package, in place of
// what was there: what it says now, or definition where that is not nil. A plugin of which a
// version was approved then waits beside the approved one, until a person has looked at the
// difference; where the server went back to what was approved, nothing waits any longer.
//
// The error is invalid_input for a plugin that mounts no server, and what the server's runner
// says of a server that cannot be reached.
func (r *Registry) Repin(ctx context.Context, ref string, definition []byte) (Registered, error) {
	one, err := r.repin(ctx, ref, definition)
	if err != nil {
		return one, plugin.AsError(err)
	}
	return one, nil
}

func (r *Registry) repin(ctx context.Context, ref string, definition []byte) (Registered, error) {
	v, stored, err := r.changeable(ctx, ref)
	if err != nil {
		return Registered{}, err
	}
	if stored.Runner.Kind != contract.MCPRunner || v.record.Dev {
		return Registered{}, plugin.Errorf(plugin.CodeInvalidInput, "%s mounts no server", label(v.record.Name, v.record.Version))
	}
	if err := r.CheckPackage(ctx, v.pkg); err != nil {
		return Registered{}, err
	}
	if definition == nil {
		if definition, err = r.ask(ctx, v.pkg, stored); err != nil {
			return Registered{}, err
		}
	}
	o := RegisterOptions{Force: true, DisplayName: stored.DisplayName, signer: v.record.Signer}
	if stored.Description != "" {
		o.Description = stored.Description // which may have been given when it was registered
	}
	return r.mount(ctx, v.pkg.Dir, v.record.Source, definition, o)
}

// mounting asks the server of a package that was just staged for its tools, and installs the
// package with them.
func (r *Registry) mounting(ctx context.Context, staged *stagedPackage, m *plugin.Manifest, source string, o RegisterOptions) (Registered, error) {
	if m.Dir != "" {
		return Registered{}, refused("a mounted server has a package of its own")
	}
	if err := bringsTools(staged.place()); err != nil {
		return Registered{}, err
	}
	if err := r.mayMount(m, o); err != nil {
		return Registered{}, err
	}
	definition, err := r.ask(ctx, plugin.Package{Dir: staged.place(), Digest: staged.digest}, m)
	if err != nil {
		return Registered{}, err
	}
	return r.mount(ctx, staged.place(), source, definition, o)
}

// ask asks a server for its tools. One that waits for approval, or will, gets meanwhile nothing
// that was not approved; see [granted].
func (r *Registry) ask(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]byte, error) {
	withheld, base := []string(nil), r.index.Load().baseline(Record{Name: m.Name, Version: m.Version})
	if base != nil {
		approved, err := base.manifest()
		if err != nil {
			return nil, err
		}
		m, withheld = granted(m, approved)
	}
	definition, err := r.define(ctx, pkg, m)
	if err != nil && len(withheld) > 0 {
		e := *plugin.AsError(err)
		e.Message += fmt.Sprintf("; it had not %s, which is not approved: if it cannot list its tools without, 'mortise plugins delete %s', and register it again", strings.Join(withheld, ", "), m.Name)
		err = &e
	}
	return definition, err
}

// mayMount refuses a name that the plugin cannot have, and asks May, before the server is
// started or reached.
func (r *Registry) mayMount(m *plugin.Manifest, o RegisterOptions) error {
	if r.define == nil {
		return plugin.Errorf(plugin.CodeUnavailable, "this host mounts no servers")
	}
	if _, err := r.admit(Record{Name: m.Name, Signer: o.signer}); err != nil {
		return err
	}
	if err := r.lookalike(m.Name); err != nil || o.May == nil {
		return err
	}
	return o.May(m)
}

// lookalike refuses the name of a server that is read as that of another one.
func (r *Registry) lookalike(name string) error {
	for other := range r.index.Load().plugins {
		if other == fold(name) || !near.Alike(fold(name), other) {
			continue
		}
		for _, v := range r.index.Load().plugins[other] {
			m, err := v.manifest()
			if err == nil && m.Runner.Kind == contract.MCPRunner {
				return plugin.Errorf(plugin.CodeInvalidInput, "%s is easily taken for %s, another mounted server: give it another name", name, m.Name)
			}
		}
	}
	return nil
}

// mount installs a copy of the package in dir that has a definition.
func (r *Registry) mount(ctx context.Context, dir, source string, definition []byte, o RegisterOptions) (Registered, error) {
	temp, err := os.MkdirTemp(r.packages.dir, unfinished)
	if err != nil {
		return Registered{}, err
	}
	defer func() { _ = rmtree.Remove(temp) }()
	root := filepath.Join(temp, "package")
	if err := os.CopyFS(root, os.DirFS(dir)); err != nil {
		return Registered{}, err
	}
	file := filepath.Join(root, mount.File)
	if err := rmtree.Remove(file); err != nil {
		return Registered{}, err
	}
	if err := os.WriteFile(file, definition, 0o600); err != nil {
		return Registered{}, err
	}
	packages := stagedSet{registry: r}
	defer packages.remove()
	o.furnished = true
	return r.install(ctx, &packages, root, root, source, o)
}

// bringsTools refuses a package that says itself what its server has.
func bringsTools(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Lstat(mount.File); err == nil {
		return refused("%s is where the host keeps what a server said of its tools: no package brings it along", mount.File)
	}
	return nil
}
