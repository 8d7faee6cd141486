package plugins_test

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/mortise-dev/mortise/plugins"
)

// TestProgramsOfPluginsMayBeRun looks at every embedded file: those in a
// directory bin are programs, and no others, however one asks.
func TestProgramsOfPluginsMayBeRun(t *testing.T) {
	t.Parallel()
	programs := 0
	for _, dir := range plugins.Dirs {
		tree, err := fs.Sub(plugins.Files, dir)
		if err != nil {
			t.Fatal(err)
		}
		err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			listed, err := entry.Info()
			if err != nil {
				return err
			}
			opened, err := fs.Stat(tree, name)
			if err != nil {
				return err
			}
			want := path.Base(path.Dir(name)) == "bin"
			if got := listed.Mode()&0o111 != 0; got != want || opened.Mode() != listed.Mode() {
				t.Errorf("%s/%s has mode %v in its directory and %v opened; a program: %v", dir, name, listed.Mode(), opened.Mode(), want)
			}
			if want {
				programs++
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat("bin/pcapsum.gz"); err == nil && programs == 0 {
		t.Error("the reader of captures is not embedded")
	}
}

// TestFilesAreThoseOfTheSources holds what the host carries against the directories that it
// comes from, programs included.
func TestFilesAreThoseOfTheSources(t *testing.T) {
	t.Parallel()
	if err := fstest.TestFS(plugins.Files, "log_analysis/pattern_extractor/manifest.yaml"); err != nil {
		t.Error(err)
	}
	for _, dir := range plugins.Dirs {
		err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && entry.Name() == "__pycache__" {
				return fs.SkipDir
			}
			if entry.IsDir() || filepath.Ext(name) == ".pyc" {
				return nil
			}
			want, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			got, err := fs.ReadFile(plugins.Files, filepath.ToSlash(name))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s has %d bytes in the host and %d in the sources: %v", name, len(got), len(want), err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
