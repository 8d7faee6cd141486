package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A check remembers that the files of one package were those of its digest.
type check struct {
	mu    sync.Mutex // held while the files are read, so that they are read once
	good  bool
	stamp stamp // when they were
}

// CheckPackage makes sure, before a package is launched, that its files are
// those that were registered: by their stamps, and by their content when a
// stamp differs or nothing is known yet. Nothing is skipped here: a compiled
// module slipped into __pycache__ counts. A package that has changed is held:
// the error is quarantined, now and for every call until it is registered
// again and enabled.
//
// Linked packages and programs that the configuration names are not the
// host's to keep, and pass.
//
// Where nodes share an [Archive], what is not on this one is fetched first; the
// error is unavailable where that cannot be.
func (r *Registry) CheckPackage(ctx context.Context, pkg plugin.Package) error {
	if pkg.Dev || pkg.Dir != r.packages.path(pkg.Digest) {
		return nil
	}
	switch err := r.bring(ctx, pkg.Digest); {
	case errors.Is(err, errChanged):
		return r.hold(pkg.Digest)
	case err != nil:
		return plugin.AsError(err)
	}
	err := r.checkOf(pkg.Digest).run(ctx, pkg)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the files were not read to their end
		return context.Cause(ctx)
	case tampered(err):
		return r.hold(pkg.Digest)
	default:
		return plugin.AsError(fmt.Errorf("checking the files of a package: %w", err))
	}
}

// Has reports whether a version that is registered here is of an installed package.
func (r *Registry) Has(digest string) bool {
	for v := range r.index.Load().all {
		if v.record.Digest == digest && !v.record.Dev {
			return true
		}
	}
	return false
}

func (r *Registry) checkOf(digest string) *check {
	r.checksMu.Lock()
	defer r.checksMu.Unlock()
	c := r.checks[digest]
	if c == nil {
		c = &check{}
		r.checks[digest] = c
	}
	return c
}

func (c *check) run(ctx context.Context, pkg plugin.Package) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, err := stampDir(ctx, pkg.Dir, true)
	if err != nil {
		return err
	}
	if c.good && before == c.stamp {
		return nil
	}
	c.good = false
	found, err := digestDir(ctx, pkg.Dir, true)
	if err != nil {
		return err
	}
	after, err := stampDir(ctx, pkg.Dir, true)
	if err != nil {
		return err
	}
	if found != pkg.Digest || after != before {
		return errChanged
	}
	c.good, c.stamp = true, after
	return nil
}

// tampered tells a package that is no longer what it was from a machine that
// cannot read it at the moment.
func tampered(err error) bool {
	var refused *plugin.Error
	return errors.Is(err, errChanged) || errors.Is(err, fs.ErrNotExist) || errors.As(err, &refused)
}

// hold quarantines every version that has the package.
func (r *Registry) hold(digest string) error {
	held := Record{Digest: digest}
	for v := range r.index.Load().all {
		if v.record.Digest == digest && !v.record.Dev {
			held = v.record
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := r.change(ctx, func() error {
		for v := range r.index.Load().all {
			if v.record.Digest != digest || v.record.Dev || v.state == Quarantined {
				continue
			}
			// It is held here whether or not that can be written down.
			r.index.Store(r.index.Load().with(&version{release: v.release, state: Quarantined}))
			if err := r.catalog.SetState(ctx, v.record, Quarantined, plugin.EntryPluginQuarantined); err != nil {
				return err
			}
		}
		return nil
	})
	refusal := tamperedWith(held)
	refusal.Err = err
	return refusal
}

func tamperedWith(r Record) *plugin.Error {
	return plugin.Errorf(plugin.CodeQuarantined, "%s is held: its files were changed after it was registered; register it again and enable it", r.title())
}
