package registry

import (
	"context"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
)

// Unpack unpacks a zip into a package directory below dir, and removes it again.
func Unpack(dir string, data []byte) error {
	s, err := openPackageStore(filepath.Join(dir, "packages"))
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "p.zip")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	to, _, err := s.unpackFile(context.Background(), file, file)
	if err != nil {
		return err
	}
	return rmtree.Remove(to)
}
