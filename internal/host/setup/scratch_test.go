package setup

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/filelock"
)

// The scratch of killed hosts is removed by the next one, and that of hosts that
// are alive never is, however many begin at once.
func TestScratchOfKilledHostsIsRemoved(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	alive, err := OpenScratch(root, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"h-dead", "h-locked"} { // without a lock, and with one that is free
		if err := os.MkdirAll(filepath.Join(root, name, "p-1", "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	lock, err := filelock.Acquire(filepath.Join(root, "h-locked.lock"))
	if err != nil {
		t.Fatal(err)
	}
	lock.Release()
	var all sync.WaitGroup
	opened := make([]*Scratch, 16)
	for i := range opened {
		all.Go(func() {
			s, err := OpenScratch(root, func() bool { return false })
			if err != nil {
				t.Error(err)
				return
			}
			if err := os.WriteFile(filepath.Join(s.Dir, "mine"), nil, 0o600); err != nil {
				t.Error(err)
			}
			opened[i] = s
		})
	}
	all.Wait()
	for _, s := range append(slices.Clone(opened), alive) {
		if _, err := os.Stat(s.Dir); err != nil {
			t.Errorf("a host that is alive lost its scratch: %v", err)
		}
	}
	for _, s := range append(opened, alive) {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(root); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What hosts left directly in the scratch directory, before each had a directory
// there, is removed by a host that is the only one alive, and by no other.
func TestScratchOfTheOldLayoutIsRemovedByAHostThatIsAlone(t *testing.T) {
	t.Parallel()
	for _, alone := range []bool{false, true} {
		home := t.TempDir()
		root, nodes := filepath.Join(home, "scratch"), filepath.Join(home, "nodes")
		loose := []string{"p-123", "x-123", "contract-123"}
		for _, dir := range append(slices.Clone(loose), "of-a-person") {
			if err := os.MkdirAll(filepath.Join(root, dir, "deep"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(nodes, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, alive := range map[string]bool{"own": true, "dead": false, "other": !alone} {
			lock, err := filelock.Acquire(filepath.Join(nodes, name+".lock"))
			if err != nil {
				t.Fatal(err)
			}
			if alive {
				defer lock.Release()
			} else {
				lock.Release()
			}
		}
		s, err := OpenScratch(root, func() bool { return OnlyHost(home) })
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range loose {
			if _, err := os.Stat(filepath.Join(root, dir)); (err != nil) != alone {
				t.Errorf("alone: %t; %s: %v", alone, dir, err)
			}
		}
		if _, err := os.Stat(filepath.Join(root, "of-a-person")); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if OnlyHost(t.TempDir()) {
		t.Error("without locks of hosts nothing is known of them")
	}
}
