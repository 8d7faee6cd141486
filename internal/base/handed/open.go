// Package handed turns the files that a person hands on with a call into
// capabilities, and finds the ones that an input names.
//
// A name is not an authority. A path in an input gives access to nothing,
// whatever its origin: [Open] opens a file as the user who runs the surface,
// and what it returns travels beside the input; [Resolve] accepts the names of
// such files, and of artifacts of the call's session, and refuses every other
// one.
package handed

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/plugin"
)

// Open opens a file as the user of this process, which shows that they may read
// it, and returns it to be handed on. Nothing of it is read.
func Open(path string) (plugin.File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return plugin.File{}, err
	}
	file, err := os.OpenFile(absolute, os.O_RDONLY|nonblock, 0)
	return opened(path, absolute, file, err)
}

// OpenBeneath is Open for a path within a directory, out of which no link leads.
func OpenBeneath(dir, path string) (plugin.File, error) {
	base, err := filepath.Abs(dir)
	if err != nil {
		return plugin.File{}, err
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return plugin.File{}, err
	}
	defer root.Close()
	file, err := root.OpenFile(path, os.O_RDONLY|nonblock, 0)
	return opened(path, filepath.Join(base, path), file, err)
}

func opened(given, absolute string, file *os.File, err error) (plugin.File, error) {
	if err != nil {
		return plugin.File{}, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return plugin.File{}, plugin.Errorf(plugin.CodeInvalidInput, "%w", err)
	case info.IsDir():
		return plugin.File{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is a directory; name a file", given)
	case !info.Mode().IsRegular():
		return plugin.File{}, plugin.Errorf(plugin.CodeInvalidInput, "%s is not a regular file; write what it has to one, and name that", given)
	case !utf8.ValidString(absolute):
		return plugin.File{}, plugin.Errorf(plugin.CodeInvalidInput, "the name %s is not UTF-8, as JSON must be; link the file under another", given)
	}
	is := identity(info)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %+v", absolute, is))
	return plugin.File{Handle: "art_" + hex.EncodeToString(sum[:8]), Name: filepath.Base(absolute), Size: info.Size(), Path: absolute, Is: is}, nil
}

// ErrChanged says that a file is not the one that was handed on.
var ErrChanged = errors.New("it is not the file that was handed on")

// Same returns nil if the file is, to its last byte, the one that was handed on,
// as far as the file system can tell.
func Same(f plugin.File) error {
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: it is gone", ErrChanged)
	}
	if err != nil {
		return err
	}
	if identity(info) != f.Is {
		return ErrChanged
	}
	return nil
}

// Identity returns which file a path leads to now.
func Identity(path string) (plugin.FileID, error) {
	info, err := os.Stat(path)
	if err != nil {
		return plugin.FileID{}, err
	}
	return identity(info), nil
}
