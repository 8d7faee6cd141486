// Package pack reads and writes package files: a zip, a tar or a tar.gz that comes from anywhere.
//
// A package file is a package as its author distributes it: a zip, a tar or a tar.gz.
// It is hostile until the last byte is read: the rules are
//
//   - nothing is written before every name in it was looked at;
//   - it holds regular files and directories, whose names are relative, plain
//     and different whatever file system they come to;
//   - what stands in it twice, or in two ways, is refused and not decided;
//   - what comes out of it is counted while it comes.
package pack

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/mortise-dev/mortise/plugin"
)

// The bounds of a package.
const (
	MaxFiles   = 20_000 // directories count too
	MaxBytes   = 512 << 20
	MaxHeaders = MaxFiles * 4 << 10 // of what stands around the files
)

// The bounds of a package file, beside those of the package in it.
const (
	maxName   = 1 << 10 // of one path
	maxPart   = 255     // bytes of one part of a name, as file systems have it
	maxDepth  = 32
	maxRatio  = 200     // how many times larger than it was sent a file may become,
	ratioFrom = 1 << 20 // once it is larger than this
)

// Suffixes are the names of package files.
var Suffixes = []string{".zip", ".tar", ".tar.gz", ".tgz"}

// Is reports whether a path is that of a package file, by its name.
func Is(path string) bool { return suffixOf(path) != "" }

func suffixOf(path string) string {
	name := strings.ToLower(path)
	for _, suffix := range Suffixes {
		if strings.HasSuffix(name, suffix) {
			return suffix
		}
	}
	return ""
}

// A File is one file or directory of a package file.
type File struct {
	Name       string // slash path
	Dir        bool
	Executable bool
}

// An intake judges the names of a package file, one after another.
type intake struct {
	names  Names
	known  map[string]bool // whether the name is a directory's
	listed map[string]bool // those that stand in it themselves, and not only as a part of others
}

func newIntake() *intake {
	return &intake{names: Names{}, known: map[string]bool{}, listed: map[string]bool{}}
}

// admit returns the name of a file or directory, cleaned of what tools put
// around it; "" for the top itself.
func (in *intake) admit(written string, dir bool) (string, error) {
	name := written
	if dir {
		name = strings.TrimSuffix(name, "/")
	}
	if name == "." || strings.HasPrefix(name, "./") { // tar -C dir .
		name = strings.TrimPrefix(strings.TrimPrefix(name, "."), "/")
		if name == "" && dir {
			return "", nil
		}
	}
	switch {
	case len(written) > maxName:
		return "", refused("a name in it is longer than %d bytes: %.60q...", maxName, written)
	case !fs.ValidPath(name) || name == "." || strings.Contains(name, `\`):
		return "", refused("%q is no name of a file inside a package", written)
	case slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > maxPart }):
		return "", refused("%.60q... has a part of more than %d bytes, which file systems do not take", written, maxPart)
	case strings.Count(name, "/") >= maxDepth:
		return "", refused("%q stands deeper than %d directories", written, maxDepth)
	case in.listed[name]:
		return "", refused("%s stands in it twice", name)
	case len(in.known) >= MaxFiles:
		return "", refused("a package has at most %d files and directories", MaxFiles)
	}
	in.listed[name] = true
	for above := path.Dir(name); above != "."; above = path.Dir(above) {
		if err := in.add(above, true); err != nil {
			return "", err
		}
	}
	return name, in.add(name, dir)
}

func (in *intake) add(name string, dir bool) error {
	if isDir, known := in.known[name]; known {
		if isDir != dir {
			return refused("%s is a file and a directory in it", name)
		}
		return nil
	}
	in.known[name] = dir
	return in.names.Add(name)
}

// inflated returns an error for what becomes larger than anything that is meant.
func inflated(name string, size, from int64) error {
	if size > ratioFrom && size/maxRatio > from {
		return refused("%s becomes more than %d times as large as it was sent", name, maxRatio)
	}
	return nil
}

// Names holds names that must stay apart on a file system that takes no
// account of letter case.
type Names map[string]string

// Add refuses a name that cannot stand beside the others.
func (f Names) Add(name string) error {
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

// Read reads a package file, which is called name, and gives each file in it to
// visit, once all were looked at.
func Read(ctx context.Context, name string, file *os.File, size int64, visit func(File, io.Reader) error) error {
	if suffix := suffixOf(name); suffix != ".zip" {
		return readTar(ctx, file, size, suffix, visit)
	}
	return readZip(ctx, file, size, visit)
}

func refused(format string, args ...any) error {
	return plugin.Errorf(plugin.CodeInvalidInput, format, args...)
}

// Until returns a reader that fails once ctx has ended. What it fails with is never
// what the plugin could have caused, such as a refusal.
func Until(ctx context.Context, r io.Reader) io.Reader { return until{ctx, r} }

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
