package contract

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// Files is a package's directory, as far as a manifest may name things in it.
type Files struct{ Root *os.Root }

// errMissing says that there is no file of a name.
var errMissing error = missing{}

type missing struct{}

func (missing) Error() string        { return "no such file" }
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// Regular returns what the file called name is. Every error says, for the
// manifest's author, why the file will not do.
func (f Files) Regular(name string) (fs.FileInfo, error) {
	clean := strings.TrimPrefix(name, "./")
	switch {
	case clean == "" || strings.ContainsAny(clean, "\\\x00") || path.IsAbs(name) || !filepath.IsLocal(clean):
		return nil, errors.New("a path inside the package belongs here, with / between its parts")
	case path.Clean(clean) != clean:
		return nil, fmt.Errorf("write it as %s", path.Clean(clean))
	case f.Root == nil:
		return nil, errMissing
	}
	// A symbolic link could lead anywhere, and lead somewhere else tomorrow.
	for prefix := range prefixes(clean) {
		info, err := f.Root.Lstat(prefix)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, errMissing
		case err != nil:
			return nil, errors.New("it cannot be read")
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, errors.New("symbolic links are not followed")
		case prefix == clean && !info.Mode().IsRegular():
			return nil, errors.New("it is not a file")
		case prefix == clean:
			return info, nil
		case !info.IsDir():
			return nil, errMissing
		}
	}
	return nil, errMissing
}

// prefixes yields a, a/b and a/b/c for a/b/c.
func prefixes(name string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range len(name) {
			if name[i] == '/' && !yield(name[:i]) {
				return
			}
		}
		yield(name)
	}
}

// Read returns the content of a regular file of at most most bytes.
func (f Files) Read(name string, most int64) ([]byte, error) {
	info, err := f.Regular(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > most {
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}
	file, err := f.Root.OpenFile(strings.TrimPrefix(name, "./"), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	defer file.Close()
	if now, err := file.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, errors.New("it changed while it was read")
	}
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read")
	case int64(len(data)) > most:
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	}
	return data, nil
}
