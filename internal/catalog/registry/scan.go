package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/pack"
	"github.com/mortise-dev/mortise/plugin"
)

// skipped are the names of files and directories that are no part of a
// package: what tools leave behind, and what cannot be moved to another place.
// They are neither hashed nor copied.
var skipped = []string{".git", ".venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".DS_Store"}

// skip reports whether the file or directory at the slash path is no part of a package.
func skip(name string) bool {
	base := path.Base(name)
	switch {
	case slices.Contains(skipped, base), strings.HasSuffix(base, ".pyc"):
		return true
	case base == ".cache" || base == ".bin":
		return path.Base(path.Dir(name)) == "node_modules"
	}
	return false
}

// A file is one regular file of a package.
type file struct {
	name string // slash path within the package
	info fs.FileInfo
}

// executable reports whether its owner may run it.
func (f file) executable() bool { return f.info.Mode()&0o100 != 0 }

// mode is what an installed file may be used for.
func (f file) mode() fs.FileMode {
	if f.executable() {
		return 0o555
	}
	return 0o444
}

// scan returns the files of a package, sorted by name. What a package may not
// hold is an error that names it. With all set, nothing is skipped. It ends with ctx.
func scan(ctx context.Context, tree fs.FS, all bool) ([]file, error) {
	var files []file
	seen, size := 0, int64(0)
	names := pack.Names{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		if !all && skip(name) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if seen++; seen > pack.MaxFiles {
			return refused("a package has at most %d files and directories", pack.MaxFiles)
		}
		if err := names.Add(name); err != nil {
			return err
		}
		if entry.IsDir() {
			return nil
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			return refused("%s is a symbolic link: a package holds files only", name)
		}
		if !entry.Type().IsRegular() {
			return refused("%s is neither a file nor a directory", name)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); size > pack.MaxBytes {
			return refused("a package is at most %d MiB large", pack.MaxBytes>>20)
		}
		files = append(files, file{name, info})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files, nil
}

// refused is an error whose text is for the person who registers.
func refused(format string, args ...any) error {
	return plugin.Errorf(plugin.CodeInvalidInput, format, args...)
}

// open opens a file that scan has seen, and makes sure that it still is the
// one that was seen: a link or a pipe may have taken its place.
func open(root *os.Root, f file) (*os.File, error) {
	opened, err := root.OpenFile(f.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	now, err := opened.Stat()
	if err == nil && (!now.Mode().IsRegular() || !os.SameFile(f.info, now)) {
		err = errChanged
	}
	if err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

var errChanged = errors.New("the package changed while it was read")

// copyExactly copies a file whose size is known, no more and no less, until ctx ends.
func copyExactly(ctx context.Context, w io.Writer, r io.Reader, f file) error {
	n, err := io.Copy(w, pack.Until(ctx, io.LimitReader(r, f.info.Size()+1)))
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", f.name, err)
	case n != f.info.Size():
		return fmt.Errorf("reading %s: %w", f.name, errChanged)
	}
	return nil
}
