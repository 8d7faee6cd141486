package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// bundle installs the host's own plugins. Those that are installed already cost a hash
// each; those that another node installed are unpacked here, and that is on no record.
// They count as approved, since they are part of the host that the owner installed.
// What an administrator did counts: a plugin all of whose versions are disabled gets
// its next one disabled, and one that stands under the same name already is left alone.
func (r *Registry) bundle(ctx context.Context, tree fs.FS, dirs []string) error {
	if dirs == nil {
		entries, err := fs.ReadDir(tree, ".")
		if err != nil {
			return fmt.Errorf("reading the bundled plugins: %w", err)
		}
		for _, entry := range entries {
			if entry.IsDir() && hasManifest(tree, entry.Name()) {
				dirs = append(dirs, entry.Name())
			}
		}
	}
	for _, dir := range dirs {
		if err := r.bundleOne(ctx, tree, dir); err != nil {
			return fmt.Errorf("installing the bundled plugin %s: %w", dir, err)
		}
	}
	return nil
}

func hasManifest(tree fs.FS, dir string) bool {
	for _, name := range contract.Manifests() {
		if _, err := fs.Stat(tree, dir+"/"+name); err == nil {
			return true
		}
	}
	return false
}

func (r *Registry) bundleOne(ctx context.Context, tree fs.FS, dir string) error {
	sub, err := fs.Sub(tree, dir)
	if err != nil {
		return err
	}
	digest, err := digestFS(ctx, sub)
	if err != nil {
		return err
	}
	known := r.index.Load().bundled(digest)
	if known && r.packages.has(digest) {
		return nil
	}
	staged, err := r.packages.stageFS(ctx, sub)
	if err != nil {
		return err
	}
	defer rmtree.Remove(staged.dir) // an installed package has left this directory
	if known {
		return r.packages.install(ctx, staged)
	}
	m, err := contract.ReadIn(staged.dir, "") // a package by itself, whatever stands around it
	if err != nil {
		return err
	}
	archive, err := r.publish(ctx, staged)
	if err != nil {
		return err
	}
	return r.change(ctx, func() error {
		ix := r.index.Load()
		if ix.bundled(digest) { // another node was faster
			return r.packages.install(ctx, staged)
		}
		record := Record{
			Name: m.Name, Version: m.Version, Digest: staged.digest, Path: r.packages.path(staged.digest), Archive: archive,
			State: Active, RegisteredAt: r.now().UTC(), Source: SourceBundled, ApprovedBy: r.principal,
		}
		if record.Manifest, err = json.Marshal(m); err != nil {
			return err
		}
		versions := ix.plugins[fold(m.Name)]
		off := len(versions) > 0
		for _, v := range versions {
			if v.waits() {
				continue // it may never be approved
			}
			if v.record.Source != SourceBundled {
				return nil
			}
			off = off && v.state == Disabled
		}
		if off {
			record.State = Disabled
		}
		if err := r.packages.install(ctx, staged); err != nil {
			return err
		}
		replaced := ix.version(m.Name, m.Version)
		if _, err := r.put(ctx, record, r.liveBundled(), plugin.EntryPluginRegistered); err != nil {
			return err
		}
		if replaced != nil {
			return r.sweep(replaced.record)
		}
		return nil
	})
}

// bundled reports whether a host's own plugin of that digest is on record.
func (ix *index) bundled(digest string) bool {
	for v := range ix.all {
		if v.record.Digest == digest && v.record.Source == SourceBundled {
			return true
		}
	}
	return false
}

// liveBundled asks the code of a bundled plugin for what its manifest leaves
// open, once, when it is first used: the host's start waits for no plugin.
func (r *Registry) liveBundled() *live {
	l := newLive()
	l.once = true
	l.look = func(ctx context.Context, now *version) (*release, error) {
		m, err := now.manifest()
		if err != nil || !contract.NeedsDescribe(m) {
			return nil, err
		}
		merged, err := r.merge(ctx, now.pkg, m)
		if err != nil {
			return nil, err
		}
		record := now.record
		if record.Manifest, err = json.Marshal(merged); err != nil {
			return nil, fmt.Errorf("storing the manifest: %w", err)
		}
		if string(record.Manifest) == string(now.record.Manifest) {
			return nil, nil
		}
		return newRelease(record, l)
	}
	return l
}
