package app

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/store"
)

// A scratch is where one host has the scratch directories of its plugins. Its
// lock says that the host is alive.
type scratch struct {
	dir  string
	lock *store.Lock
}

// scratchPrefix begins the name of a host's directory; that of its lock ends in
// .lock besides.
const scratchPrefix = "h-"

// openScratch makes this host's directory beneath root, and removes those of
// hosts that were killed. The lock comes before the directory: one without a lock
// that is held has nobody.
func openScratch(root string) (*scratch, error) {
	sweepScratch(root)
	dir := filepath.Join(root, scratchPrefix+uuid.NewString()[:13])
	lock, err := store.AcquireLock(dir + ".lock")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		lock.Remove()
		return nil, err
	}
	return &scratch{dir, lock}, nil
}

func (s *scratch) close() error {
	err := os.RemoveAll(s.dir)
	s.lock.Remove()
	return err
}

// sweepScratch removes what killed hosts left. What cannot be removed is left to
// the next host.
func sweepScratch(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		name, _ := strings.CutSuffix(e.Name(), ".lock")
		if !strings.HasPrefix(name, scratchPrefix) {
			continue
		}
		dir := filepath.Join(root, name)
		if _, err := os.Lstat(dir); err != nil && e.IsDir() {
			continue // it was both, and is gone by now
		}
		lock, err := store.TryLock(dir + ".lock")
		if err != nil || lock == nil {
			continue
		}
		if os.RemoveAll(dir) == nil {
			lock.Remove()
		} else {
			lock.Release()
		}
	}
}
