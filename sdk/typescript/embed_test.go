package typescript

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestTheClientIsNotEmbedded: it is for callers. A plugin that could import it would find a second way to the host.
func TestTheClientIsNotEmbedded(t *testing.T) {
	if _, err := os.Stat("client"); err != nil {
		t.Error(err)
	}
	err := fs.WalkDir(Files, ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasPrefix(path, "client") || strings.Contains(path, "/client") {
			t.Errorf("%s is embedded", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
