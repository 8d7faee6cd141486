package rmtree_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/carried"
	"github.com/mortise-dev/mortise/internal/base/rmtree"
)

// removes names a tree that this program removes in place of its tests.
const removes = "RMTREE_TEST_REMOVES"

func TestMain(m *testing.M) {
	if dir := os.Getenv(removes); dir != "" {
		if err := rmtree.Remove(dir); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestAnOrdinaryUserRemovesReadOnlyTrees runs Remove without privileges: as
// another user if the test is root, and in this process otherwise.
func TestAnOrdinaryUserRemovesReadOnlyTrees(t *testing.T) {
	for name, mode := range map[string]os.FileMode{"read-only": 0o555, "not readable": 0o300, "no rights": 0} {
		t.Run(name, func(t *testing.T) {
			outer, err := os.MkdirTemp("", "rmtree-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = rmtree.Remove(outer) })
			dir := filepath.Join(outer, "tree")
			kept := filepath.Join(outer, "kept")
			for _, d := range []string{filepath.Join(dir, "a", "b"), kept} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "a", "b", "file"), nil, 0o400); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(kept, filepath.Join(dir, "a", "link")); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(kept, 0o555); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{filepath.Join(dir, "a", "b"), filepath.Join(dir, "a"), dir} {
				if err := os.Chmod(d, mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := remove(t, outer, dir); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the tree is still there: %v", err)
			}
			if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o555 {
				t.Errorf("a directory that a link led to changed: %v, %v", info.Mode(), err)
			}
		})
	}
}

// unprivileged is a user without privileges.
const unprivileged = 65534

func remove(t *testing.T, outer, dir string) error {
	t.Helper()
	if os.Getuid() != 0 {
		return rmtree.Remove(dir)
	}
	err := filepath.WalkDir(outer, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, unprivileged, unprivileged))
	})
	if err != nil {
		t.Fatal(err)
	}
	// The directory of the test binary may be closed to others, so the child gets a copy.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(outer, "program")
	if err := errors.Join(carried.Write(copied, program), os.Chmod(copied, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied)
	cmd.Env = append(os.Environ(), removes+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(err.Error() + ": " + string(out))
	}
	return nil
}

// TestTheHostRemovesTreesWithThisPackage finds calls of os.RemoveAll in the code of
// the host: as an ordinary user they leave behind what the host wrote read-only.
func TestTheHostRemovesTreesWithThisPackage(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		// This package, a server of tests, and the command line, which removes a directory with one file of its own.
		if strings.Contains(path, "/rmtree/") || strings.Contains(path, "/pgtest/") || strings.Contains(path, "/surface/cli/") {
			return nil
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "os.RemoveAll(") {
			t.Errorf("%s calls os.RemoveAll; call rmtree.Remove", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
