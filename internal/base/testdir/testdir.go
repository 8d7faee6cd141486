// Package testdir makes temporary directories that a test can remove as an ordinary user.
package testdir

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
)

// New returns a directory that is removed after the test, with everything in it.
// A test whose host installs packages calls it in place of [testing.TB.TempDir],
// which can remove the read-only trees of packages only if its user is root.
func New(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { // before the cleanup of TempDir
		if err := rmtree.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
