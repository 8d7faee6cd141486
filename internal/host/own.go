package host

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// OwnFile reports whether a path leads into the data directory, or to a file there
// that has another name outside. A path that leads nowhere yet is where it would be.
func OwnFile(path, home string) (bool, error) {
	if home == "" {
		return false, nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return false, err
	}
	home, err = filepath.EvalSymlinks(home)
	if err != nil {
		return false, nil // there is none
	}
	if home, err = filepath.Abs(home); err != nil {
		return false, err
	}
	real, err := filepath.EvalSymlinks(path)
	for rest := ""; err != nil; { // the nearest directory that there is
		rest = filepath.Join(filepath.Base(path), rest)
		if filepath.Dir(path) == path {
			return false, nil
		}
		path = filepath.Dir(path)
		if real, err = filepath.EvalSymlinks(path); err == nil {
			real = filepath.Join(real, rest)
		}
	}
	if real == home || strings.HasPrefix(real, home+string(filepath.Separator)) {
		return true, nil
	}
	info, err := os.Stat(real)
	if err != nil {
		return false, nil // it is not there yet
	}
	entries, err := os.ReadDir(home)
	for _, e := range entries {
		if of, statErr := os.Stat(filepath.Join(home, e.Name())); statErr == nil && of.Mode().IsRegular() && os.SameFile(info, of) {
			return true, nil
		}
	}
	return false, err
}

// OwnFile refuses a path that is of the host's own: its key, its database, whatever is in its
// data directory, under another name too.
func (h *Host) OwnFile(path string) error {
	own, err := OwnFile(path, h.parts.Home)
	if err != nil || !own {
		return err
	}
	return plugin.Errorf(plugin.CodeInvalidInput, "%s is the host's own: no plugin is shown what is in the data directory %s; name another file", path, h.parts.Home)
}
