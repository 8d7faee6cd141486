package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// A link is the author's own copy of a plugin: a directory, or one source file.
type link struct {
	path string
	file bool

	// The package, and the plugin's place in it: a tool of a tree has all of
	// the tree for a package.
	tree, place string
}

// linkTo looks at the path, which should be absolute, of what is in named: the
// package is not wider than that, whatever the files say (see [contract.TreeIn]).
func linkTo(path, named string) link {
	if slices.Contains(contract.Extensions, filepath.Ext(path)) {
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return link{path: path, file: true, tree: filepath.Dir(path)}
		}
	}
	tree, place := contract.TreeIn(path, named)
	return link{path: path, tree: tree, place: place}
}

// packageDir returns the directory that holds a record's package.
func packageDir(r Record) string {
	if !r.Dev {
		return r.Path
	}
	var m struct {
		Dir string `json:"dir"`
	}
	if json.Unmarshal(r.Manifest, &m) == nil && m.Dir != "" { // as it was when the manifest was read
		return strings.TrimSuffix(r.Path, string(filepath.Separator)+filepath.FromSlash(m.Dir))
	}
	if l := linkTo(r.Path, r.Path); l.file {
		return l.tree
	}
	return r.Path
}

func (l link) dir() string { return l.tree }

// files returns what counts as the package. Of a source file that is only
// itself: what lies beside it may be anything.
func (l link) files(ctx context.Context, root *os.Root) ([]file, error) {
	if !l.file {
		return scan(ctx, root.FS(), false)
	}
	name := filepath.Base(l.path)
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, refused("%s is not a file", name)
	}
	return []file{{name, info}}, nil
}

// stamp tells whether anything may have changed.
func (l link) stamp(ctx context.Context) (stamp, error) {
	root, err := os.OpenRoot(l.dir())
	if err != nil {
		return stamp{}, err
	}
	defer root.Close()
	files, err := l.files(ctx, root)
	if err != nil {
		return stamp{}, err
	}
	return stampOf(files), nil
}

func (l link) digest(ctx context.Context) (string, error) {
	root, err := os.OpenRoot(l.dir())
	if err != nil {
		return "", err
	}
	defer root.Close()
	files, err := l.files(ctx, root)
	if err != nil {
		return "", err
	}
	return digestOf(ctx, root, files)
}

func (l link) manifest() (*plugin.Manifest, error) {
	if l.file {
		return contract.ReadFile(l.path)
	}
	return contract.ReadIn(l.tree, l.place)
}

// load reads what is linked and asks its code for the rest.
func (r *Registry) load(ctx context.Context, l link) (plugin.Package, *plugin.Manifest, error) {
	digest, err := l.digest(ctx)
	if err != nil {
		return plugin.Package{}, nil, unreadable(err)
	}
	pkg := plugin.Package{Digest: digest, Dir: l.dir(), Dev: true}
	m, err := l.manifest()
	if err != nil {
		return pkg, nil, unreadable(err)
	}
	m, err = r.merge(ctx, pkg, m)
	return pkg, m, err
}

// unreadable says that what is linked cannot be used as it is.
func unreadable(err error) error {
	if plugin.CodeOf(err) != plugin.CodeInternal {
		return err
	}
	return unacceptable(err)
}

// liveDev follows the author's changes.
func (r *Registry) liveDev(path string) *live {
	l := newLive()
	l.look = func(ctx context.Context, now *version) (*release, error) {
		to := linkTo(path, packageDir(now.record)) // a tool may move within what was linked, and no further
		seen, err := to.stamp(ctx)
		if err != nil {
			return nil, unreadable(err)
		}
		if seen == l.stamp {
			return nil, nil
		}
		next, err := r.follow(ctx, to, now)
		if err != nil {
			l.stamp = stamp{} // look again even if nothing changes: the cause may be elsewhere
			return nil, err
		}
		l.stamp = seen
		return next, nil
	}
	return l
}

// follow returns the release that the files are now, nil if they are still
// those of the one there is.
func (r *Registry) follow(ctx context.Context, to link, now *version) (*release, error) {
	digest, err := to.digest(ctx)
	if err != nil {
		return nil, unreadable(err)
	}
	if digest == now.record.Digest {
		return nil, nil
	}
	pkg, m, err := r.load(ctx, to)
	if err != nil {
		return nil, err
	}
	record := now.record
	if m.Name != record.Name {
		return nil, plugin.Errorf(plugin.CodeInvalidInput, "it was registered as %s and is called %s now: register it again", record.Name, m.Name)
	}
	if before, err := now.manifest(); err == nil && m.DisplayName == "" {
		m.DisplayName = before.DisplayName // given when it was registered
	}
	record.Version, record.Digest = m.Version, pkg.Digest
	if record.Manifest, err = json.Marshal(m); err != nil {
		return nil, fmt.Errorf("storing the manifest: %w", err)
	}
	return newRelease(record, now.live)
}
