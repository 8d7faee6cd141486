package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/plugin"
)

// keysDir is where the keys are in a backup that has them. Nothing there is taken for a key
// unless the person who restores asks for that.
const keysDir = "keys"

// maxKey bounds a file that holds one.
const maxKey = 64 << 10

// keys reads the keys that are to be in the backup.
func (b *backingUp) keys() (map[string][]byte, error) {
	if !b.Keys {
		return nil, nil
	}
	found := map[string][]byte{}
	for _, name := range backedKeys {
		text, err := keyIn(filepath.Join(b.home, name))
		if err != nil {
			return nil, err
		}
		if text != nil {
			found[name] = text
		}
	}
	return found, nil
}

// keyIn reads a key, nil where there is none.
func keyIn(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxKey:
		return nil, &setup.Error{Err: fmt.Errorf("%s is no regular file of at most %d bytes", path, maxKey)}
	}
	return os.ReadFile(path)
}

// addKeys adds keys that were read before the database was: they are those of the database,
// unless they were changed in between.
func (b *backingUp) addKeys(ctx context.Context, m *backup.Manifest, before map[string][]byte) error {
	if !b.Keys {
		return nil
	}
	after, err := b.keys()
	if err != nil {
		return err
	}
	for _, name := range backedKeys {
		text := after[name]
		if !bytes.Equal(before[name], text) {
			return plugin.Errorf(plugin.CodeUnavailable, "%s was changed while the backup was made: make it again", name)
		}
		if text == nil {
			m.Notes = append(m.Notes, fmt.Sprintf("%s is not in %s, so it is not in here.", name, b.home))
			continue
		}
		if err := b.w.Add(ctx, keysDir+"/"+name, 0o600, int64(len(text)), bytes.NewReader(text)); err != nil {
			return err
		}
	}
	return nil
}

// takeKeys puts the keys of a backup where they belong, or leaves them out. A key that the data
// directory has is kept, and another one refused.
func (r *Restored) takeKeys(staged string, take bool) error {
	dir := filepath.Join(staged, keysDir)
	left := false
	for _, name := range backedKeys {
		text, err := keyIn(filepath.Join(dir, name))
		if err != nil || text == nil {
			if err != nil {
				return err
			}
			continue
		}
		if left = !take; left {
			continue
		}
		path := filepath.Join(staged, name)
		there, err := keyIn(path)
		if err != nil {
			return err
		}
		if there != nil && !bytes.Equal(there, text) {
			return plugin.Errorf(plugin.CodeInvalidInput, "the %s that is there is not the one in the backup: move it away, or restore without --with-keys", name)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
	if left {
		r.Manifest.Notes = append(r.Manifest.Notes, "The backup has keys, which were left out: --with-keys puts them into the data directory.")
	}
	return rmtree.Remove(dir)
}
