package job_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/store/job"
)

// The queue is its owner's only, with the files beside it, also where an earlier
// release made it readable for others.
func TestTheQueueIsItsOwnersOnly(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]func(path string) error{
		"new": func(string) error { return nil },
		"old": func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		home := t.TempDir()
		if err := before(filepath.Join(home, job.File)); err != nil {
			t.Fatal(err)
		}
		q := job.Open(job.Options{Home: home})
		if err := q.Wake(context.Background(), job.Call, "t", "1", time.Time{}); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(home, job.File+"*"))
		if len(files) == 0 {
			t.Errorf("%s: there is no %s", name, job.File)
		}
		for _, path := range files {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %s has mode %v, %v", name, filepath.Base(path), info.Mode(), err)
			}
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
}
