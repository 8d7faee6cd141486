package setup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/base/rmtree"
)

// A Scratch is where one host has the scratch directories of its plugins. Its
// lock says that the host is alive.
type Scratch struct {
	Dir  string
	lock *filelock.Lock
}

// scratchPrefix begins the name of a host's directory; that of its lock ends in
// .lock besides.
const scratchPrefix = "h-"

// OpenScratch creates this host's directory beneath root, and removes those of
// hosts that were killed. The lock is taken before the directory is created: a
// directory whose lock is free has no owner. alone reports whether no other
// host can be alive.
func OpenScratch(root string, alone func() bool) (*Scratch, error) {
	sweepScratch(root, alone)
	dir := filepath.Join(root, scratchPrefix+uuid.NewString()[:13])
	lock, err := filelock.Acquire(dir + ".lock")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		lock.Remove()
		return nil, err
	}
	return &Scratch{dir, lock}, nil
}

// Close removes the directory.
func (s *Scratch) Close() error {
	err := rmtree.Remove(s.Dir)
	s.lock.Remove()
	return err
}

// sweepScratch removes what killed hosts left. What cannot be removed is left to
// the next host.
func sweepScratch(root string, alone func() bool) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	sweepLoose(root, entries, alone)
	for _, e := range entries {
		name, _ := strings.CutSuffix(e.Name(), ".lock")
		if !strings.HasPrefix(name, scratchPrefix) {
			continue
		}
		dir := filepath.Join(root, name)
		if _, err := os.Lstat(dir); err != nil && e.IsDir() {
			continue // it was both, and is gone by now
		}
		lock, err := filelock.Try(dir + ".lock")
		if err != nil || lock == nil {
			continue
		}
		if rmtree.Remove(dir) == nil {
			lock.Remove()
		} else {
			lock.Release()
		}
	}
}

// loosePrefixes begin the names of directories that hosts made directly in the
// scratch directory before each had a directory of its own there.
var loosePrefixes = []string{"p-", "x-", "contract-"}

// sweepLoose removes those of them that are listed, unless another host may be
// alive: nothing else tells which host one of them belongs to. The list is older
// than the check, so that what a host makes which starts meanwhile is not in it.
func sweepLoose(root string, listed []os.DirEntry, alone func() bool) {
	listed = slices.DeleteFunc(slices.Clone(listed), func(e os.DirEntry) bool {
		return !e.IsDir() || !slices.ContainsFunc(loosePrefixes, func(prefix string) bool { return strings.HasPrefix(e.Name(), prefix) })
	})
	if len(listed) == 0 || !alone() {
		return
	}
	for _, e := range listed {
		_ = rmtree.Remove(filepath.Join(root, e.Name())) // what cannot be removed is left to the next host
	}
}

// OnlyHost reports whether of all hosts on the SQLite database of a data directory
// this one alone is alive. It does not know where the database is elsewhere.
func OnlyHost(home string) bool {
	dir := filepath.Join(home, "nodes")
	locks, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	held := 0
	for _, e := range locks {
		lock, err := filelock.Try(filepath.Join(dir, e.Name()))
		switch {
		case err != nil:
			return false
		case lock == nil:
			held++
		default:
			lock.Release()
		}
	}
	return held == 1
}
