package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/pack"
	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

// RegisterOptions say how a path is registered.
type RegisterOptions struct {
	Dev    bool // link instead of copying, follow every change, be active at once
	Enable bool // enable what is registered
	Force  bool // replace a version that is there with other files

	// ID is what the plugin must be called; the path then holds exactly one.
	// DisplayName and Description take the place of the manifest's.
	ID          string
	DisplayName string
	Description string

	// May is asked of each plugin before anything of it is kept or run, and of
	// what its code then says it is; an error refuses it. Nil lets all in.
	May func(*plugin.Manifest) error

	furnished bool          // the host put the package together, so that it may hold an environment or what a server said of its tools
	signer    signed.Signer // of the package file
}

// A RegisterReport says what became of each plugin under a path.
type RegisterReport struct {
	Named      string // the directory that was registered, absolute; "" for none
	Registered []Registered
	Failed     []Failed
}

// A Registered is a plugin that is in the catalog now.
type Registered struct {
	Info
	Unchanged  bool  // it was there already, with these very files
	NotEnabled error // why it was not enabled, where that was asked for
}

// A Failed is a plugin that was not registered.
type Failed struct {
	Path string
	Err  error // wraps [contract.Problems] where the manifest is at fault
}

// Register registers the plugin in the directory path, or every plugin of the
// tree of directories under it; with Dev, path may be one source file too, and
// without, a package file (.zip, .tar, .tar.gz). A
// bad plugin keeps no other from being registered. Where none could be, the
// error says why, beside the report.
//
// An installed plugin is disabled until it is enabled. One of which any version
// was approved before waits for [Registry.Approve] instead, as long as it is
// not the same files again; those that were approved stay as they are.
func (r *Registry) Register(ctx context.Context, path string, o RegisterOptions) (RegisterReport, error) {
	report, err := r.register(ctx, path, o)
	if err != nil {
		return report, plugin.AsError(err)
	}
	return report, nil
}

func (r *Registry) register(ctx context.Context, path string, o RegisterOptions) (RegisterReport, error) {
	source, root := func(dir string) string { return dir }, path
	if info, err := os.Stat(path); err == nil && !info.IsDir() && pack.Is(path) {
		if o.Dev {
			return RegisterReport{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is a package file, and those cannot be linked: unpack it and link the directory", path)
		}
		file, signer, drop, err := r.signedCopy(ctx, path)
		if err != nil {
			return RegisterReport{}, err
		}
		defer drop()
		o.signer = signer
		dir, inside, err := r.packages.unpackFile(ctx, path, file)
		if err != nil && ctx.Err() != nil {
			return RegisterReport{}, context.Cause(ctx)
		} else if err != nil {
			return RegisterReport{}, err
		}
		defer rmtree.Remove(dir)
		root = inside
		source = fromFile(path, inside)
	}
	named, paths, err := find(ctx, root, o.Dev)
	if err != nil && ctx.Err() != nil {
		return RegisterReport{}, context.Cause(ctx)
	} else if err != nil {
		return RegisterReport{}, err
	}
	if len(paths) > 1 && (o.ID != "" || o.DisplayName != "" || o.Description != "") {
		return RegisterReport{}, plugin.Errorf(plugin.CodeInvalidInput, "%s holds %d plugins: an id, a name or a description can be given to one only", path, len(paths))
	}
	report := RegisterReport{Named: named}
	packages := stagedSet{registry: r}
	defer packages.remove()
	for _, path := range paths {
		var one Registered
		if o.Dev {
			one, err = r.link(ctx, path, named, o)
		} else {
			one, err = r.install(ctx, &packages, path, named, source(path), o)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return report, context.Cause(ctx)
		case err != nil:
			report.Failed = append(report.Failed, Failed{source(path), plugin.AsError(err)})
			continue
		}
		if o.Enable && one.Held {
			one.NotEnabled = r.waitingBeside(one.Name, one.Version)
		} else if o.Enable && one.State != Active {
			if info, err := r.Enable(ctx, label(one.Name, one.Version)); err != nil {
				one.NotEnabled = err
			} else {
				one.Info = info
			}
		}
		report.Registered = append(report.Registered, one)
	}
	if len(report.Registered) > 0 {
		return report, nil
	}
	if len(report.Failed) == 1 {
		return report, report.Failed[0].Err
	}
	var reasons []string
	for _, failed := range report.Failed {
		reasons = append(reasons, failed.Path+": "+plugin.AsError(failed.Err).Message)
	}
	return report, plugin.Errorf(plugin.CodeInvalidInput, "none of the plugins in %s could be registered\n%s", path, strings.Join(reasons, "\n"))
}

// fromFile names what stands below root by the package file that it came of.
func fromFile(file, root string) func(dir string) string {
	if absolute, err := filepath.Abs(file); err == nil {
		file = absolute
	}
	return func(dir string) string {
		below, err := filepath.Rel(root, dir)
		if err != nil || below == "." || !strings.Contains(below, string(filepath.Separator)) {
			return file // the package itself, or the one directory at the top
		}
		return filepath.Join(file, below)
	}
}

// maxTreeDepth is how far below the path plugins are looked for.
const maxTreeDepth = 6

// find returns the absolute path that path stands for, and those of the plugins
// in it.
func find(ctx context.Context, path string, dev bool) (named string, paths []string, err error) {
	if named, err = filepath.Abs(path); err != nil {
		return "", nil, err
	}
	if info, err := os.Stat(named); err == nil && info.IsDir() {
		named = unlinked(named)
		paths, err = findTree(ctx, named)
		return named, paths, err
	}
	return named, []string{named}, isSource(named, dev)
}

// isSource says why the path is not that of one source file that is linked.
func isSource(path string, dev bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return plugin.Errorf(plugin.CodeInvalidInput, "there is no %s", path)
	case err != nil:
		return plugin.Errorf(plugin.CodeInvalidInput, "%s cannot be read: %w", path, err)
	case !info.Mode().IsRegular() || !slices.Contains(contract.Extensions, filepath.Ext(path)):
		return plugin.Errorf(plugin.CodeInvalidInput, "%s is neither a plugin's directory, nor a package file (%s), nor a source file (%s)", path, strings.Join(pack.Suffixes, ", "), strings.Join(contract.Extensions, ", "))
	case !dev:
		return plugin.Errorf(plugin.CodeInvalidInput, "a single file is registered with --dev; give it a manifest to install it")
	}
	return nil
}

// unlinked returns where a directory is that path names by a symbolic link. The
// links on the way to it stay.
func unlinked(path string) string {
	if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return path
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// findTree returns the directories under root that have a manifest, root
// itself included, but none inside another. Symbolic links are not followed: root
// must be none. Of Event Mill, what is in a directory whose name begins with _ is
// no tool.
func findTree(ctx context.Context, root string) ([]string, error) {
	var found []string
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		if seen++; seen > pack.MaxFiles {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s holds more than %d files: register the plugins in it one by one", root, pack.MaxFiles)
		}
		if !entry.IsDir() {
			return nil
		}
		depth := 0
		if path != root {
			below, _ := filepath.Rel(root, path)
			depth = 1 + strings.Count(below, string(filepath.Separator))
			if strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules" || skip(filepath.ToSlash(below)) {
				return fs.SkipDir
			}
		}
		if contract.HasManifest(path) {
			if !underscored(root, path) || !contract.Grouped(path) {
				found = append(found, path)
			}
			return fs.SkipDir
		}
		if depth == maxTreeDepth {
			return fs.SkipDir
		}
		return nil
	})
	if err == nil && len(found) == 0 {
		err = plugin.Errorf(plugin.CodeInvalidInput, "there is no %s in %s or below", strings.Join(contract.Manifests(), ", "), root)
	}
	return found, err
}

// underscored reports whether a directory between root and path, or path
// itself, has a name that begins with _.
func underscored(root, path string) bool {
	below, err := filepath.Rel(root, path)
	return err == nil && below != "." && slices.ContainsFunc(strings.Split(below, string(filepath.Separator)), func(name string) bool { return strings.HasPrefix(name, "_") })
}

// install stages the package of a plugin in named and registers it, as one from source.
func (r *Registry) install(ctx context.Context, packages *stagedSet, dir, named, source string, o RegisterOptions) (Registered, error) {
	tree, place := contract.TreeIn(dir, named)
	staged, err := packages.of(ctx, tree)
	if err != nil {
		return Registered{}, err
	}
	m, err := contract.ReadIn(staged.place(), place)
	if err != nil {
		return Registered{}, unreadable(err)
	}
	if m.Runner.Kind == contract.MCPRunner && !o.furnished {
		return r.mounting(ctx, staged, m, source, o)
	}
	if m.Environment, err = environmentOf(staged.place(), o.furnished); err != nil {
		return Registered{}, err
	}
	record, err := r.record(m, o)
	if err != nil {
		return Registered{}, err
	}
	record.Digest, record.Path, record.Source = staged.digest, r.packages.path(staged.digest), source
	record.State, record.Signer = Disabled, o.signer
	if record.Archive, err = staged.publish(ctx); err != nil {
		return Registered{}, err
	}

	var one Registered
	err = r.change(ctx, func() error {
		replaced, err := r.admit(record)
		if err != nil {
			return err
		}
		ix := r.index.Load()
		if err := ix.older(record, o.Force); err != nil {
			return err
		}
		beside, base := ix.beside(record.Name, record.Version), ix.baseline(record)
		if err := record.remap(m, base, replaced); err != nil {
			return err
		}
		// Of a tree, any tool may be what is different.
		if base == nil && replaced != nil && !replaced.record.Dev && replaced.record.Digest != record.Digest && place == "" && !o.Force {
			return plugin.Errorf(plugin.CodeInvalidInput, "%s is registered with other files: bump the version, or replace it with --force, or `plugins delete %s` first",
				label(record.Name, record.Version), label(record.Name, record.Version))
		}
		if err := staged.install(ctx); err != nil {
			return fmt.Errorf("installing %s: %w", label(record.Name, record.Version), err)
		}
		if same := replaced; same.has(record) {
			if err := same.signedBy(record.Signer); err != nil {
				return err
			}
			if one, err = r.again(ctx, same, record, o); err != nil || beside == nil {
				return err
			}
			return r.drop(ctx, beside) // its author went back to what was approved
		}
		if beside.has(record) {
			one, err = r.again(ctx, beside, record, o)
			return err
		}
		if base != nil {
			record.State = Quarantined
		}
		if replaced != nil && replaced.record.approved() {
			record.Beside, replaced = true, beside
		}
		v, err := r.put(ctx, record, nil, plugin.EntryPluginRegistered)
		if err != nil {
			return err
		}
		one = Registered{Info: v.info()}
		if replaced != nil {
			return r.sweep(replaced.record)
		}
		return nil
	})
	return one, err
}

// has reports whether v is there and installed with the files of a record.
func (v *version) has(record Record) bool {
	return v != nil && !v.record.Dev && v.record.Digest == record.Digest
}

// again registers the files that v has. Texts that are given take the place of
// those it had, and so do the archive and the signer. The caller has the turn.
func (r *Registry) again(ctx context.Context, v *version, as Record, o RegisterOptions) (Registered, error) {
	before, err := v.manifest()
	if err != nil {
		return Registered{}, err
	}
	m := *before
	m.DisplayName, m.Description = cmp.Or(o.DisplayName, m.DisplayName), cmp.Or(o.Description, m.Description)
	if m.DisplayName == before.DisplayName && m.Description == before.Description && v.record.Archive == as.Archive && (as.Signer == "" || v.record.Signer == as.Signer) {
		return Registered{Info: v.info(), Unchanged: true}, nil
	}
	record := v.record
	record.State, record.Archive, record.Signer = v.state, as.Archive, cmp.Or(as.Signer, v.record.Signer)
	if record.Manifest, err = json.Marshal(&m); err != nil {
		return Registered{}, fmt.Errorf("storing the manifest: %w", err)
	}
	if v, err = r.put(ctx, record, v.live, plugin.EntryPluginRegistered); err != nil {
		return Registered{}, err
	}
	return Registered{Info: v.info()}, nil
}

// link registers the author's own copy, a part of what a person named.
func (r *Registry) link(ctx context.Context, path, named string, o RegisterOptions) (Registered, error) {
	to := linkTo(path, named)
	if err := r.mayLink(to, o); err != nil {
		return Registered{}, err
	}
	pkg, m, err := r.load(ctx, to)
	if err != nil {
		return Registered{}, err
	}
	record, err := r.record(m, o)
	if err != nil {
		return Registered{}, err
	}
	record.Digest, record.Path, record.Source, record.Dev = pkg.Digest, path, path, true
	record.State = Active

	var one Registered
	err = r.change(ctx, func() error {
		old, err := r.admit(record)
		if err != nil {
			return err
		}
		v, err := r.put(ctx, record, r.liveDev(path), plugin.EntryPluginRegistered)
		if err != nil {
			return err
		}
		one = Registered{Info: v.info()}
		if old != nil {
			return r.sweep(old.record)
		}
		return nil
	})
	return one, err
}

// mayLink checks the name that is written beside the code, and asks May, before the
// code is run. A file of code alone is called by its name as long as only the code
// knows better.
func (r *Registry) mayLink(to link, o RegisterOptions) error {
	m, err := to.manifest()
	if err != nil && o.May == nil {
		return nil // loading it says more
	}
	if err != nil {
		return unreadable(err)
	}
	if m.Runner.Kind == contract.MCPRunner {
		return refused("%s mounts a server, which is installed and not linked: leave --dev out", m.Name)
	}
	if m.Name == "" {
		m.Name = filepath.Base(to.path)
	}
	if err := r.builtin.refuse(m.Name); err != nil {
		return err
	}
	if err := r.trust.Admit(m.Name, ""); err != nil || o.May == nil {
		return err
	}
	return o.May(m)
}

// record makes a record of a manifest and what it is registered with.
func (r *Registry) record(m *plugin.Manifest, o RegisterOptions) (Record, error) {
	if o.ID != "" && o.ID != m.Name {
		return Record{}, plugin.Errorf(plugin.CodeInvalidInput, "the plugin is called %s, not %s", m.Name, o.ID)
	}
	if o.May != nil {
		if err := o.May(m); err != nil {
			return Record{}, err
		}
	}
	if o.DisplayName != "" {
		m.DisplayName = o.DisplayName
	}
	if o.Description != "" {
		m.Description = o.Description
	}
	manifest, err := json.Marshal(m)
	if err != nil {
		return Record{}, fmt.Errorf("storing the manifest: %w", err)
	}
	return Record{Name: m.Name, Version: m.Version, Manifest: manifest, RegisteredAt: r.now().UTC()}, nil
}

// admit refuses a name that is another's, letter case aside, and returns the
// version that the record would replace. The caller has the turn.
func (r *Registry) admit(record Record) (*version, error) {
	if err := r.builtin.refuse(record.Name); err != nil {
		return nil, err
	}
	if err := r.trust.Admit(record.Name, record.Signer); err != nil {
		return nil, err
	}
	ix := r.index.Load()
	if others := ix.plugins[fold(record.Name)]; len(others) > 0 {
		switch other := others[0].record; {
		case other.Name != record.Name:
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "%s differs in letter case only from %s, which is registered", record.Name, other.Name)
		case other.Source == SourceConfig:
			return nil, plugin.Errorf(plugin.CodeInvalidInput, "the host's configuration binds %s already", record.Name)
		}
	}
	return ix.version(record.Name, record.Version), nil
}
