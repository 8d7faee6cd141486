package registry

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/registry/difference"
	"github.com/mortise-dev/mortise/plugin"
)

// A Review is what the approver of a quarantined version has to know.
type Review struct {
	Name       string                `json:"name"`
	Version    string                `json:"version"`
	Digest     string                `json:"digest"`
	Approved   *Approved             `json:"approved"` // what it is compared with; null if nothing is
	Difference difference.Difference `json:"difference"`
	Hash       string                `json:"difference_hash"`
	Open       bool                  `json:"open"` // its code, which was not asked, may say more
}

// Approved is the version that another is compared with: the one of the same
// number, or else the highest that is active, or else the highest.
type Approved struct {
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

// baseline returns the approved version that a record is compared with, nil if
// nothing of its name was approved.
func (ix *index) baseline(record Record) *version {
	var found *version
	for _, v := range ix.versions(record.Name) {
		switch {
		case !v.record.approved():
		case v.record.Version == record.Version:
			return v
		case found == nil, found.state != Active && v.state == Active:
			found = v
		}
	}
	return found
}

// held says why a quarantined version cannot be called.
func (v *version) held() *plugin.Error {
	if v.waits() {
		return waiting(v.record.Name, v.record.Version)
	}
	return tamperedWith(v.record)
}

func waiting(name, version string) *plugin.Error {
	return plugin.Errorf(plugin.CodeQuarantined, "%s is held, because it is not what was approved before: `mortise plugins approve %s` shows the difference and lets it be called",
		label(name, version), label(name, version))
}

// waitingBeside is waiting for a plugin that was just registered. Where the name is
// that of a plugin that ships with the host, that is probably not meant.
func (r *Registry) waitingBeside(name, version string) *plugin.Error {
	err := waiting(name, version)
	for _, v := range r.index.Load().plugins[fold(name)] {
		if v.record.Source == SourceBundled {
			err.Message = fmt.Sprintf("%s is the name of a plugin that ships with mortise, which stays in use: give yours another name, or else: %s", v.record.Name, err.Message)
			break
		}
	}
	return err
}

// holdBack quarantines a version that was never approved while another was.
func (r *Registry) holdBack(ctx context.Context, v *version) error {
	err := r.change(ctx, func() error {
		now := r.index.Load().version(v.record.Name, v.record.Version)
		if now == nil || now.release != v.release || now.state == Quarantined {
			return nil
		}
		_, err := r.setState(ctx, now, Quarantined, plugin.EntryPluginQuarantined)
		return err
	})
	if err != nil {
		return err
	}
	return waiting(v.record.Name, v.record.Version)
}

// asked returns the manifest of a version with what its code says where that
// is left open. If the code of an approved one says something else than when
// it was approved, what it says now waits beside it, and that is the error.
func (r *Registry) asked(ctx context.Context, v *version) (*plugin.Manifest, error) {
	stored, err := v.manifest()
	if err != nil {
		return nil, err
	}
	if !v.record.approved() || v.record.Source == SourceBundled {
		return r.merged(ctx, v, stored)
	}
	if err := r.CheckPackage(ctx, v.pkg); err != nil {
		return nil, err
	}
	written, err := contract.ReadIn(v.pkg.Dir, stored.Dir)
	if err != nil {
		return nil, unreadable(err)
	}
	if !contract.NeedsDescribe(written) {
		return stored, nil
	}
	written.Environment = stored.Environment
	said, err := r.merge(ctx, v.pkg, written)
	if err != nil {
		return nil, err
	}
	remap(said, stored)
	said.DisplayName = stored.DisplayName // given when it was registered
	if written.Description != "" {
		said.Description = stored.Description
	}
	differs, err := difference.Between(difference.Side{Manifest: stored}, difference.Side{Manifest: said})
	if err != nil || differs.Empty() {
		return stored, err
	}
	record := v.record
	record.State, record.ApprovedBy, record.Beside = Quarantined, "", true
	if record.Manifest, err = json.Marshal(said); err != nil {
		return nil, fmt.Errorf("storing the manifest: %w", err)
	}
	err = r.change(ctx, func() error {
		before := r.index.Load().beside(record.Name, record.Version)
		if _, err := r.put(ctx, record, nil, plugin.EntryPluginQuarantined); err != nil || before == nil {
			return err
		}
		return r.sweep(before.record)
	})
	if err != nil {
		return nil, err
	}
	return nil, waiting(record.Name, record.Version)
}

// Review says what is different in the version that waits for approval: the
// highest that ref, a name or name@versions, allows. With ask set its code is
// asked for what the manifest leaves open; without, none of it runs.
func (r *Registry) Review(ctx context.Context, ref string, ask bool) (Review, error) {
	v, err := r.waitingFor(ctx, ref)
	if err != nil {
		return Review{}, plugin.AsError(err)
	}
	review, _, err := r.review(ctx, v, ask)
	if err != nil {
		return Review{}, plugin.AsError(err)
	}
	return review, nil
}

// waitingFor returns the version that ref means among those that wait.
func (r *Registry) waitingFor(ctx context.Context, ref string) (*version, error) {
	want, err := parsePlugin(ref)
	if err != nil {
		return nil, err
	}
	if err := r.Refresh(ctx); err != nil {
		return nil, err
	}
	ix := r.index.Load()
	versions := ix.versions(want.Plugin)
	for _, v := range versions {
		if v.waits() && (want.Constraint == "" || want.allows(v)) {
			return v, nil
		}
	}
	if len(versions) == 0 {
		return nil, ix.unknown(want.Plugin)
	}
	return nil, plugin.Errorf(plugin.CodeNotFound, "nothing of %s waits for approval", ref)
}

// review compares a version that waits with what was approved, and returns its
// manifest too.
func (r *Registry) review(ctx context.Context, v *version, ask bool) (Review, *plugin.Manifest, error) {
	review := Review{Name: v.record.Name, Version: v.record.Version, Digest: v.record.Digest}
	if err := r.CheckPackage(ctx, v.pkg); err != nil {
		return review, nil, err
	}
	m, err := v.manifest()
	if err != nil {
		return review, nil, err
	}
	if review.Open = !ask && contract.NeedsDescribe(m); ask {
		if m, err = r.merged(ctx, v, m); err != nil {
			return review, nil, err
		}
	}
	after := difference.Side{Manifest: m, Signer: string(v.record.Signer)}
	if after.Files, err = listFiles(ctx, v.pkg.Dir); err != nil {
		return review, nil, err
	}
	before := difference.Side{}
	if base := r.index.Load().baseline(v.record); base != nil {
		before.Signer = string(base.record.Signer)
		review.Approved = &Approved{base.record.Version, base.record.Digest}
		if before.Manifest, err = base.manifest(); err != nil {
			return review, nil, err
		}
		if err := r.bring(ctx, base.record.Digest); err != nil && !errors.Is(err, errChanged) {
			return review, nil, err
		}
		// Files that are not what was approved are nothing to compare with.
		if found, err := digestDir(ctx, base.pkg.Dir, true); err == nil && found == base.record.Digest {
			if before.Files, err = listFiles(ctx, base.pkg.Dir); err != nil {
				return review, nil, err
			}
		} else if ctx.Err() != nil {
			return review, nil, ctx.Err()
		}
	}
	if review.Difference, err = difference.Between(before, after); err != nil {
		return review, nil, err
	}
	review.Hash, err = review.Difference.Hash()
	return review, m, err
}

// listFiles hashes the files of an installed package one by one.
func listFiles(ctx context.Context, dir string) ([]difference.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files, err := scan(ctx, root.FS(), true)
	if err != nil {
		return nil, err
	}
	list := make([]difference.File, 0, len(files))
	for _, f := range files {
		content, err := hashIn(ctx, root, f)
		if err != nil {
			return nil, err
		}
		list = append(list, difference.File{Path: f.name, Hash: digestPrefix + hex.EncodeToString(content), Executable: f.executable()})
	}
	return list, nil
}

// errVoid tells apart what changed between showing and approving.
var errVoid = errors.New("it is not what was shown")

// Approve lets a version be called that an administrator has seen as the review shows
// it. Its code is asked for what its manifest leaves open. If anything is not as it was
// shown - files, manifest, what the code says, what it was compared with - nothing
// happens, and the error is approval_void.
func (r *Registry) Approve(ctx context.Context, seen Review) (Info, error) {
	info, err := r.approve(ctx, seen)
	switch {
	case errors.Is(err, errVoid):
		name := label(seen.Name, seen.Version)
		return info, plugin.Errorf(plugin.CodeApprovalVoid, "%s changed after its difference was shown: look at it again with `mortise plugins diff %s`", name, name)
	case err != nil:
		return info, plugin.AsError(err)
	}
	return info, nil
}

func (r *Registry) approve(ctx context.Context, seen Review) (Info, error) {
	v, err := r.waitingFor(ctx, label(seen.Name, seen.Version))
	if err != nil {
		return Info{}, err
	}
	if v.record.Digest != seen.Digest {
		return Info{}, errVoid
	}
	if err := r.mayRun(v); err != nil {
		return Info{}, err
	}
	base := r.index.Load().baseline(v.record)
	review, m, err := r.review(ctx, v, true)
	if err != nil {
		return Info{}, err
	}
	if review.Hash != seen.Hash || !sameApproved(review.Approved, seen.Approved) {
		return Info{}, errVoid
	}
	record := v.record
	record.State, record.ApprovedBy, record.Beside = Active, Author(ctx, r.principal), false
	if record.Manifest, err = json.Marshal(m); err != nil {
		return Info{}, fmt.Errorf("storing the manifest: %w", err)
	}
	made, err := newRelease(record, nil)
	if err != nil {
		return Info{}, err
	}
	next := &version{release: made, state: Active}
	err = r.change(ctx, func() error {
		ix := r.index.Load()
		if now := ix.find(v.record.Name, v.record.Version, v.record.Beside); now == nil || now.release != v.release || !now.waits() || !sameRelease(ix.baseline(v.record), base) {
			return errVoid
		}
		approval := Approval{After: record.Digest, Difference: review.Hash}
		if review.Approved != nil {
			approval.Before = review.Approved.Digest
		}
		if err := r.catalog.Approve(ctx, v.record, record, approval); err != nil {
			return fmt.Errorf("approving %s: %w", label(record.Name, record.Version), err)
		}
		replaced := ix.version(record.Name, record.Version)
		r.index.Store(ix.without(v).with(next))
		if replaced != nil && replaced != v {
			return r.sweep(replaced.record)
		}
		return nil
	})
	return next.info(), err
}

func sameApproved(a, b *Approved) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func sameRelease(a, b *version) bool {
	return a == nil && b == nil || a != nil && b != nil && a.release == b.release
}
