package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/testinput"
)

// watched are the directories with files that tests hand to programs: the cache
// of Go's tests sees only files that the test itself opens.
var watched = []string{"plugins", "sdk", "docs", "test/compat", "internal/surface/cli/testdata"}

// buildInputs builds the programs of package testinput and copies them to a directory whose name is
// the hash of their content and of the watched files. Tests read the name from
// MORTISE_TEST_INPUTS, so their cached results are valid for the same content only.
func buildInputs(j *job) error {
	dir := filepath.Join(j.env.root, "bin", "test", "inputs")
	building := filepath.Join(dir, "building")
	if err := os.MkdirAll(building, 0o755); err != nil {
		return err
	}
	for name, pkg := range testinput.Packages {
		built := filepath.Join(building, name)
		if name == "mortise" { // made by the part build
			if err := copyFile(filepath.Join(j.env.root, "bin", "mortise"), built); err != nil {
				return err
			}
			continue
		}
		if err := j.command(".", nil, "go", "build", "-ldflags=-s -w", "-o", built, pkg); err != nil {
			return err
		}
	}
	sum, err := hashInputs(j.env.root, building)
	if err != nil {
		return err
	}
	final := filepath.Join(dir, sum[:16])
	if _, err := os.Stat(final); err != nil {
		if err := removeOldInputs(dir); err != nil {
			return err
		}
		if err := os.Rename(building, final); err != nil {
			return err
		}
	}
	j.env.mu.Lock()
	defer j.env.mu.Unlock()
	j.env.inputs = final
	return nil
}

// removeOldInputs removes all but the newest two directories of inputs.
func removeOldInputs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return e.Name() == "building" })
	slices.SortFunc(entries, func(a, b os.DirEntry) int {
		ai, _ := a.Info()
		bi, _ := b.Info()
		if ai == nil || bi == nil {
			return 0
		}
		return bi.ModTime().Compare(ai.ModTime())
	})
	for _, e := range entries[min(2, len(entries)):] {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// hashInputs returns the hash of the programs in the directory built and of the
// watched files.
func hashInputs(root, built string) (string, error) {
	files, err := listFiles(root, watched)
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, ".go") })
	for name := range testinput.Packages {
		files = append(files, filepath.Join(built, name))
	}
	return hashFiles(root, files)
}

// listFiles returns the absolute paths of the files of the repository below dirs,
// without those that git ignores.
func listFiles(root string, dirs []string) ([]string, error) {
	list := exec.Command("git", append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard"}, dirs...)...)
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for i, name := range files {
		files[i] = filepath.Join(root, name)
	}
	return files, nil
}

// hashFiles returns a hash of the names and the content of files. A file that
// does not exist, because it was deleted in the working tree, counts by its name.
func hashFiles(root string, files []string) (string, error) {
	slices.Sort(files)
	h := sha256.New()
	for _, name := range files {
		label, _ := filepath.Rel(root, name)
		fmt.Fprintf(h, "%s\x00", label)
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		n, err := io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "\x00%d\x00", n)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return err
}
