package check

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxFile is how long a file of a plugin may be that a check reads.
const maxFile = 4 << 20

// read returns a file below a plugin's directory, by its slash path: a regular
// one of bounded size. A link that leads out of the directory is not followed,
// and a named pipe is not waited for.
func read(dir, name string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readIn(root, name)
}

// readIn is read for a directory that is open.
func readIn(root *os.Root, name string) ([]byte, error) {
	file, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no such file%w", silent{fs.ErrNotExist})
	case err != nil:
		return nil, errors.New("it cannot be read")
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read")
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	case info.Size() > maxFile:
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read")
	case len(text) > maxFile:
		return nil, fmt.Errorf("it is longer than %d bytes", maxFile)
	}
	return text, nil
}

// A silent error can be told from others and adds nothing to a message.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// entriesOf returns the entries of a directory below a plugin's, none where there is none.
func entriesOf(dir, name string) ([]fs.DirEntry, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}
