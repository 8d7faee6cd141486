package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store/backup"
)

// Backups that are written to one path at once, by any number of hosts: what
// stands there in the end is one of them, whole, and each of the others said that
// it is not there.
func TestBackupsToOnePathAtOnce(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprintf("force=%t,there=%t", force, there), func(t *testing.T) {
				t.Parallel()
				for range 20 {
					dir := t.TempDir()
					path := filepath.Join(dir, "state.backup")
					if there {
						if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					const writers = 6
					errs := make([]error, writers)
					var all sync.WaitGroup
					for i := range writers {
						all.Go(func() { errs[i] = writeOne(t, path, force, i) })
					}
					all.Wait()
					won := 0
					for _, err := range errs {
						switch {
						case err == nil:
							won++
						case !errors.Is(err, fs.ErrExist) && !errors.Is(err, backup.ErrBusy):
							t.Fatalf("a writer that lost says %v", err)
						}
					}
					switch {
					case !force && there && won != 0:
						t.Fatalf("%d writers won over what was there", won)
					case !force && !there && won != 1:
						t.Fatalf("%d writers won: %v", won, errs)
					case force && won == 0:
						t.Fatalf("no writer won: %v", errs)
					}
					if there && !force {
						if raw, err := os.ReadFile(path); string(raw) != "before" {
							t.Fatalf("what was there is %.40q, %v", raw, err)
						}
					} else if err := whole(path); err != nil {
						t.Fatalf("what stands there is torn: %v", err)
					}
					entries, err := os.ReadDir(dir)
					if err != nil || len(entries) != 1 {
						t.Fatalf("left behind: %v, %v", entries, err)
					}
				}
			})
		}
	}
}

// writeOne writes a backup of its own whose members are all of one byte.
func writeOne(t *testing.T, path string, force bool, i int) error {
	w, err := backup.Create(path, force)
	if err != nil {
		return err
	}
	text := strings.Repeat(string(rune('a'+i)), 3<<20)
	for n := range 3 {
		if err := w.Add(t.Context(), fmt.Sprintf("m%d", n), 0o600, int64(len(text)), strings.NewReader(text)); err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	return w.Finish(t.Context(), &backup.Manifest{})
}

// A part that a dead writer left is no hindrance, and one that is being written
// is left alone.
func TestPartsOfDeadWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "state.backup")
	if err := os.WriteFile(path+".part", []byte("left by one that died"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := backup.Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Create(path, true); !errors.Is(err, backup.ErrBusy) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second writer: %v", err)
	}
	if err := first.Add(t.Context(), "m", 0o600, 1, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("came meanwhile"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.Finish(t.Context(), &backup.Manifest{MadeAt: time.Now()}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over what came meanwhile: %v", err)
	}
	if raw, _ := os.ReadFile(path); string(raw) != "came meanwhile" {
		t.Errorf("it is %.40q", raw)
	}
	if _, err := os.Lstat(path + ".part"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the part is still there: %v", err)
	}
}

// whole returns nil where a backup is complete and all its members are of one writer.
func whole(path string) error {
	_, err := backup.Check(context.Background(), path)
	return err
}
