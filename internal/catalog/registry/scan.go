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
	"unicode"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/plugin"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// The bounds of a package.
const (
	maxFiles = 20_000 // directories count too
	maxBytes = 512 << 20
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
	names := folding{}
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
		if seen++; seen > maxFiles {
			return refused("a package has at most %d files and directories", maxFiles)
		}
		if err := names.add(name); err != nil {
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
		if size += info.Size(); size > maxBytes {
			return refused("a package is at most %d MiB large", maxBytes>>20)
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

// A folding holds names that must stay apart on a file system that takes no
// account of letter case.
type folding map[string]string

func (f folding) add(name string) error {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(name, `\`) {
		return refused("the file name %q does not work everywhere", name)
	}
	folded := cases.Fold().String(norm.NFC.String(name))
	if other, taken := f[folded]; taken && other != name {
		return refused("the file names %s and %s differ in letter case only", other, name)
	}
	f[folded] = name
	return nil
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

// An until is a reader that fails once ctx has ended. What it fails with is never
// what the plugin could have caused, such as a refusal.
type until struct {
	ctx  context.Context
	from io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.from.Read(p)
}

// copyExactly copies a file whose size is known, no more and no less, until ctx ends.
func copyExactly(ctx context.Context, w io.Writer, r io.Reader, f file) error {
	n, err := io.Copy(w, until{ctx, io.LimitReader(r, f.info.Size()+1)})
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", f.name, err)
	case n != f.info.Size():
		return fmt.Errorf("reading %s: %w", f.name, errChanged)
	}
	return nil
}
