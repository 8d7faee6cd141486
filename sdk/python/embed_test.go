package python

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestEveryModuleIsEmbedded holds the patterns of Files against the disk: a
// module in a new folder would be missing only where the host is installed.
func TestEveryModuleIsEmbedded(t *testing.T) {
	found := 0
	for _, root := range []string{"mortise", "eventmill", "shu"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".py" {
				return err
			}
			found++
			want, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			got, err := fs.ReadFile(Files, filepath.ToSlash(path))
			if err != nil || string(got) != string(want) {
				t.Errorf("%s is not embedded as it is: %v", path, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 60 {
		t.Errorf("only %d modules were found", found)
	}
}

// TestTheClientIsNotEmbedded: it is for callers. A plugin that could import it would find a second way to the host.
func TestTheClientIsNotEmbedded(t *testing.T) {
	for _, root := range []string{"mortise_client", "client_tests"} {
		if _, err := os.Stat(root); err != nil {
			t.Error(err)
		}
		if _, err := fs.Stat(Files, root); err == nil {
			t.Errorf("%s is embedded", root)
		}
	}
}
