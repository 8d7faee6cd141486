package plugins_test

import (
	"io/fs"
	"os"
	"path"
	"testing"

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
	if _, err := os.Stat("network_forensics/pcap_metadata_summary/bin/pcapsum"); err == nil && programs == 0 {
		t.Error("the reader of captures is not embedded")
	}
}
