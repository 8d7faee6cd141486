package registry

import (
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// A package file is a package as its author distributes it: a zip, a tar or a tar.gz.
// It is hostile until the last byte is read: the rules are
//
//   - nothing is written before every name in it was looked at;
//   - it holds regular files and directories, whose names are relative, plain
//     and different whatever file system they come to;
//   - what stands in it twice, or in two ways, is refused and not decided;
//   - what comes out of it is counted while it comes.

// The bounds of a package file, beside those of the package in it.
const (
	maxPackedName  = 1 << 10 // of one path
	maxPackedDepth = 32
	maxRatio       = 200     // how many times larger than it was sent a file may become,
	ratioFrom      = 1 << 20 // once it is larger than this
)

// packedSuffixes are the names of package files.
var packedSuffixes = []string{".zip", ".tar", ".tar.gz", ".tgz"}

// packed reports whether a path is that of a package file, by its name.
func packed(path string) bool { return packedSuffix(path) != "" }

func packedSuffix(path string) string {
	name := strings.ToLower(path)
	for _, suffix := range packedSuffixes {
		if strings.HasSuffix(name, suffix) {
			return suffix
		}
	}
	return ""
}

// A packedFile is one file or directory of a package file.
type packedFile struct {
	name       string // slash path
	dir        bool
	executable bool
}

// unpackFile puts what a package file holds into a directory of its own, and
// returns the place in it that plugins are looked for. Nothing stays where it
// fails or ctx ends; otherwise the caller removes dir.
func (d packageStore) unpackFile(ctx context.Context, from string) (dir, root string, err error) {
	file, err := os.OpenFile(from, os.O_RDONLY|nonblock, 0) // a named pipe is not waited for
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
	case info.Size() > maxBytes:
		return "", "", refused("%s is larger than %d MiB, which is more than a package may be", from, maxBytes>>20)
	}
	if dir, err = os.MkdirTemp(d.dir, unfinished); err != nil {
		return "", "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, remove(dir))
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
	read := readTar
	if packedSuffix(from) == ".zip" {
		read = readZip
	}
	if err := read(ctx, file, info.Size(), packedSuffix(from), func(f packedFile, content io.Reader) error { return unpackOne(to, f, until{ctx, content}) }); err != nil {
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
func unpackOne(to *os.Root, f packedFile, content io.Reader) error {
	name, mode := filepath.FromSlash(f.name), fs.FileMode(0o600)
	if f.dir {
		return to.MkdirAll(name, 0o700)
	}
	if err := to.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	if f.executable {
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

// An intake judges the names of a package file, one after another.
type intake struct {
	names  folding
	known  map[string]bool // whether the name is a directory's
	listed map[string]bool // those that stand in it themselves, and not only as a part of others
}

func newIntake() *intake {
	return &intake{names: folding{}, known: map[string]bool{}, listed: map[string]bool{}}
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
	case len(written) > maxPackedName:
		return "", refused("a name in it is longer than %d bytes: %.60q...", maxPackedName, written)
	case !fs.ValidPath(name) || name == "." || strings.Contains(name, `\`):
		return "", refused("%q is no name of a file inside a package", written)
	case strings.Count(name, "/") >= maxPackedDepth:
		return "", refused("%q stands deeper than %d directories", written, maxPackedDepth)
	case in.listed[name]:
		return "", refused("%s stands in it twice", name)
	case len(in.known) >= maxFiles:
		return "", refused("a package has at most %d files and directories", maxFiles)
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
	return in.names.add(name)
}

// inflated returns an error for what becomes larger than anything that is meant.
func inflated(name string, size, from int64) error {
	if size > ratioFrom && size/maxRatio > from {
		return refused("%s becomes more than %d times as large as it was sent", name, maxRatio)
	}
	return nil
}
