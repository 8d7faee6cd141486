package input

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of a directory that is added as one.
const (
	directoryFiles = 1000
	directoryBytes = 4 << 30
)

// ErrLarge says that a directory holds more than is added at once.
var ErrLarge = errors.New("more than is added as one")

// Directory returns the regular files beneath a directory, and how many other
// entries there are.
func Directory(dir string) (files []string, left int, err error) {
	size := int64(0)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			left++
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files, size = append(files, path), size+info.Size()
		if len(files) > directoryFiles || size > directoryBytes {
			return plugin.Errorf(plugin.CodeInvalidInput, "it holds over %d files or %d GiB, %w; name those that you want", directoryFiles, directoryBytes>>30, ErrLarge)
		}
		return nil
	})
	return files, left, err
}
