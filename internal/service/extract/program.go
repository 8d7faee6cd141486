package extract

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/base/carried"
)

// What make build put there: bin/docread.gz, the program of workers (cmd/docread). What
// parses documents is in it and not in the host, which is smaller for that and starts faster.
//
//go:embed all:bin
var bin embed.FS

// unpack puts the program of workers into a directory and returns its path.
func unpack(dir string) (string, error) {
	program, err := carried.Find(bin, "bin/docread.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("this host was built without the program that does it; build it with make build")
	}
	if err != nil {
		return "", err
	}
	if dir == "" {
		return "", errors.New("it has no directory")
	}
	path, err := filepath.Abs(filepath.Join(dir, "docread"))
	if err != nil {
		return "", err
	}
	if err := program.Install(path); err != nil {
		return "", fmt.Errorf("putting it into %s: %w", dir, err)
	}
	return path, nil
}
