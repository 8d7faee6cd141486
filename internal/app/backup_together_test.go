package app_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/host/archive"
	"github.com/mortise-dev/mortise/internal/store/backup"
	"github.com/mortise-dev/mortise/plugin"
)

// Backups of several hosts to one file at once: one of them is there, whole, and
// each of the others says so.
func TestBackupsOfSeveralHostsToOneFile(t *testing.T) {
	t.Parallel()
	homes := make([]string, 3)
	for i := range homes {
		homes[i] = t.TempDir()
		write(t, homes[i], "mortise.yaml", allowAll+"sandbox: off\n")
		open(t, homes[i])
	}
	file := filepath.Join(t.TempDir(), "state.backup")
	busy, err := backup.Create(file, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Backup(t.Context(), archive.BackupOptions{Home: homes[0], File: file}); plugin.CodeOf(err) != plugin.CodeUnavailable || !strings.Contains(err.Error(), file) {
		t.Errorf("while another is written: %v", err)
	}
	if err := busy.Abort(); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(homes))
	var all sync.WaitGroup
	for i, home := range homes {
		all.Go(func() { _, errs[i] = archive.Backup(t.Context(), archive.BackupOptions{Home: home, File: file}) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		switch code := plugin.CodeOf(err); {
		case err == nil:
			won++
		case code != plugin.CodeUnavailable && code != plugin.CodeInvalidInput || !strings.Contains(err.Error(), file):
			t.Errorf("one that lost: %v", err)
		}
	}
	if _, err := backup.Check(t.Context(), file); err != nil || won != 1 {
		t.Errorf("%d won, and what is there: %v", won, err)
	}
}
