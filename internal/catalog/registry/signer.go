package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/catalog/pack"
	"github.com/mortise-dev/mortise/internal/catalog/signed"
	"github.com/mortise-dev/mortise/plugin"
)

// signedCopy returns where the bytes of a package file are to be read, and who signed
// them: "" where no signature stands beside the file, or one of a key that no one is
// trusted with. What is signed is copied first, so that nothing can be put in its place
// between the two; drop removes the copy.
func (r *Registry) signedCopy(ctx context.Context, path string) (at string, by signed.Signer, drop func(), err error) {
	drop = func() {}
	signature, err := readSignature(path + signed.Suffix)
	if err != nil || signature == nil {
		return path, "", drop, err
	}
	dir, err := os.MkdirTemp(r.packages.dir, unfinished)
	if err != nil {
		return "", "", drop, err
	}
	drop = func() { _ = rmtree.Remove(dir) } // what stays is taken away at a later start
	defer func() {
		if err != nil {
			drop()
		}
	}()
	at = filepath.Join(dir, filepath.Base(path))
	if err := copyPackage(ctx, at, path); err != nil {
		return "", "", drop, err
	}
	copied, err := os.Open(at)
	if err != nil {
		return "", "", drop, err
	}
	defer copied.Close()
	by, err = r.trust.Verify(signature, pack.Until(ctx, copied))
	if err != nil {
		err = fmt.Errorf("%s: %w", path+signed.Suffix, err)
		if plugin.CodeOf(err) == plugin.CodeInvalidInput {
			err = refused("%s is refused: %s", path, plugin.AsError(err).Message)
		}
	}
	return at, by, drop, err
}

// readSignature returns what stands in a file of a signature, nil where there is none.
func readSignature(file string) ([]byte, error) {
	opened, err := os.OpenFile(file, os.O_RDONLY|nonblock, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, refused("%s cannot be read: %w", file, err)
	}
	defer opened.Close()
	text, err := io.ReadAll(io.LimitReader(opened, signed.MaxSignature+1))
	if err != nil {
		return nil, refused("%s cannot be read: %w", file, err)
	}
	return text, nil
}

// copyPackage copies a package file of at most the size that one may have.
func copyPackage(ctx context.Context, to, from string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return refused("%s cannot be read: %w", from, err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, pack.Until(ctx, io.LimitReader(in, pack.MaxBytes+1)))
	if err = errors.Join(err, out.Close()); err == nil && n > pack.MaxBytes {
		err = refused("%s is larger than %d MiB, which is more than a package may be", from, pack.MaxBytes>>20)
	}
	return err
}

// mayRun says why a version may not be called now, by who signed it. What comes with
// the host, and what its configuration binds, is the host's own.
func (r *Registry) mayRun(v *version) error {
	if v.record.Source == SourceBundled || v.record.Source == SourceConfig {
		return nil
	}
	return r.trust.Admit(v.record.Name, v.record.Signer)
}

// signedBy refuses to let another publisher take over the files that v has.
func (v *version) signedBy(by signed.Signer) error {
	if old := v.record.Signer; old != "" && by != "" && old.Publisher() != by.Publisher() {
		return plugin.Errorf(plugin.CodeConflict, "%s is registered with these files as %s's, and this is %s's signature: delete it first",
			label(v.record.Name, v.record.Version), old.Publisher(), by.Publisher())
	}
	return nil
}

// older refuses a version below one that was approved, unless it is registered
// itself or that is forced: an old version brings back what a newer one has mended.
func (ix *index) older(record Record, forced bool) error {
	if forced || ix.version(record.Name, record.Version) != nil || ix.beside(record.Name, record.Version) != nil {
		return nil
	}
	for _, v := range ix.versions(record.Name) {
		if v.record.approved() && Newer(v.record.Version, record.Version) {
			return plugin.Errorf(plugin.CodeConflict, "%s is older than %s, which was approved: register it with --force if that is meant",
				label(record.Name, record.Version), label(v.record.Name, v.record.Version))
		}
	}
	return nil
}
