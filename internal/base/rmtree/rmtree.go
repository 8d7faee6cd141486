// Package rmtree removes directory trees that the host wrote, read-only ones included.
//
// The host keeps installed packages and views of sessions in directories without
// write permission. [os.RemoveAll] cannot empty them unless the user is root.
package rmtree

import (
	"errors"
	"io/fs"
	"os"
)

// Remove removes path with everything in it. It returns nil if path does not
// exist. Directories that refuse the removal are made writable first, also for
// users without privileges. Symbolic links are removed and never followed.
func Remove(path string) error {
	err := os.RemoveAll(path)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if err := unlock(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// unlock gives the owner all rights on each directory of the tree. It changes
// files below path only: a link that leads out of it is refused by [os.Root].
func unlock(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return err
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		return root.Chmod(name, 0o700) // before its entries are read
	})
}
