package interpreter

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
)

// A kit is an SDK that the host carries, and its place on disk: a directory
// named by the hash of its files, so that hosts of several versions share dir.
type kit struct {
	name  string
	files fs.FS
	dir   string

	mu   sync.Mutex // guards the two below, and is held while files are written
	hash string
	done bool // in this process
}

// SDK lays out the SDK of a language (python, typescript) and returns its
// directory, for editors and for readers.
func (i *Interpreters) SDK(language string) (string, error) {
	for _, k := range []*kit{i.pythonSDK, i.nodeSDK} {
		if k.name == language {
			return k.layOut()
		}
	}
	return "", fmt.Errorf("there is no SDK of that name to lay out: %q", language)
}

// layOut returns the directory, with everything in it.
func (k *kit) layOut() (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.hash == "" {
		k.hash = hashFiles(k.files)
	}
	place := filepath.Join(k.dir, k.name+"-"+k.hash)
	if k.done && isDir(place) || intact(place, k.files) {
		k.done = true
		return place, nil
	}
	if err := k.write(place); err != nil {
		return "", fmt.Errorf("laying out the SDK: %w", err)
	}
	k.done = true
	return place, nil
}

// write makes the directory beside its place and moves it there.
func (k *kit) write(place string) error {
	if err := os.MkdirAll(k.dir, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(k.dir, ".new-*")
	if err != nil {
		return err
	}
	defer rmtree.Remove(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	fresh, old := filepath.Join(temp, "fresh"), filepath.Join(temp, "old")
	if err := os.CopyFS(fresh, k.files); err != nil {
		return err
	}
	if os.Rename(fresh, place) == nil || intact(place, k.files) {
		return nil // if not by us, then by another process
	}
	// The directory is damaged, by a power cut or by hand.
	if err := os.Rename(place, old); err != nil {
		return err
	}
	if err := os.Rename(fresh, place); err != nil && !intact(place, k.files) {
		return err
	}
	return nil
}

// intact reports whether all files are in the directory with their sizes.
func intact(dir string, files fs.FS) bool {
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		want, err := entry.Info()
		if err != nil {
			return err
		}
		got, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if !got.Mode().IsRegular() || got.Size() != want.Size() {
			return fs.ErrInvalid
		}
		return nil
	})
	return err == nil
}

// hashFiles returns the first half of a hash of all names and contents.
func hashFiles(files fs.FS) string {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		fmt.Fprintf(sum, "%q %d\n", name, len(data))
		sum.Write(data)
		return err
	})
	if err != nil {
		panic(err) // the files are part of this program
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
