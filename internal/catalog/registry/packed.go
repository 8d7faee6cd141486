package registry

import (
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/internal/catalog/pack"
	"github.com/mortise-dev/mortise/plugin"
)

// unpackFile puts what a package file called from, whose bytes are at a path, holds into a directory of its own, and
// returns the place in it that plugins are looked for. Nothing stays where it
// fails or ctx ends; otherwise the caller removes dir.
func (d packageStore) unpackFile(ctx context.Context, from, at string) (dir, root string, err error) {
	file, err := os.OpenFile(at, os.O_RDONLY|nonblock, 0) // a named pipe is not waited for
	if err != nil {
		return "", "", refused("%s cannot be read: %w", from, err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", "", err
	case !info.Mode().IsRegular():
		return "", "", refused("%s is not a file", from)
	case info.Size() > pack.MaxBytes:
		return "", "", refused("%s is larger than %d MiB, which is more than a package may be", from, pack.MaxBytes>>20)
	}
	if dir, err = os.MkdirTemp(d.dir, unfinished); err != nil {
		return "", "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, rmtree.Remove(dir))
			dir, root = "", ""
		}
	}()
	// One level deeper: nothing may take what stands beside dir for a part of the package.
	root = filepath.Join(dir, "package")
	if err := os.Mkdir(root, 0o700); err != nil {
		return dir, root, err
	}
	to, err := os.OpenRoot(root)
	if err != nil {
		return dir, root, err
	}
	defer to.Close()
	if err := pack.Read(ctx, from, file, info.Size(), func(f pack.File, content io.Reader) error { return unpackOne(to, f, pack.Until(ctx, content)) }); err != nil {
		return dir, root, notUnpacked(from, err)
	}
	root, err = oneTop(from, root)
	return dir, root, err
}

// notUnpacked says what is wrong with a package file, or that it could not be read.
func notUnpacked(from string, err error) error {
	var refusal *plugin.Error
	var corrupt flate.CorruptInputError
	switch {
	case errors.As(err, &refusal):
		return refused("%s is refused: %s", from, refusal.Message)
	case errors.As(err, &corrupt), errors.Is(err, io.ErrUnexpectedEOF):
		return refused("%s is damaged: what is compressed in it cannot be read", from)
	}
	return fmt.Errorf("unpacking %s: %w", from, err)
}

// unpackOne writes one file or directory.
func unpackOne(to *os.Root, f pack.File, content io.Reader) error {
	name, mode := filepath.FromSlash(f.Name), fs.FileMode(0o600)
	if f.Dir {
		return to.MkdirAll(name, 0o700)
	}
	if err := to.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if f.Executable {
		mode = 0o700
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}

// oneTop returns where in a package file plugins are looked for: at its top where
// the manifest is there, or where one directory holds everything. A package of Shu
// may have files beside its directory, and further directories without a manifest:
// neither is a part of it.
func oneTop(from, root string) (string, error) {
	if contract.HasManifest(root) {
		return root, nil
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return root, err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		return root, nil
	}
	var found []string
	for _, entry := range entries {
		if dir := filepath.Join(root, entry.Name()); entry.IsDir() && contract.HasManifest(dir) {
			found = append(found, dir)
		}
	}
	if len(found) == 1 && contract.Bundled(found[0]) {
		return found[0], nil
	}
	return root, refused("%s has %d files and directories at its top and no %s among them: put the manifest there, or everything into one directory",
		from, len(entries), strings.Join(contract.Manifests(), ", "))
}
