package session_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/service/session"
)

// TestAPersonsFileKeepsItsNameAndTime in the view of its session, the same bytes
// with another time in another session too, linked from the blobs or copied.
func TestAPersonsFileKeepsItsNameAndTime(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*session.Options){"inline": inline, "among blobs": amongBlobs} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t, change)
			times := []time.Time{time.Date(2019, 3, 4, 5, 6, 7, 8000, time.UTC), time.Date(2021, 1, 2, 3, 4, 5, 0, time.UTC)}
			var shown []string
			for _, at := range times {
				path := filepath.Join(t.TempDir(), "auth.log.1")
				if err := os.WriteFile(path, []byte("line\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
				s := b.create(t, "t")
				a, err := b.AddFile(t.Context(), "t", s.ID, path, session.Add{Name: "renamed.log"})
				if err != nil || !strings.Contains(string(a.Metadata), `"original_filename":"auth.log.1"`) {
					t.Fatalf("%+v, %v", a, err)
				}
				v, err := b.View(t.Context(), "t", s.ID)
				if err != nil {
					t.Fatal(err)
				}
				shown = append(shown, v.Path(a))
			}
			for i, path := range shown { // after both were shown
				info, err := os.Stat(path)
				if err != nil || !info.ModTime().Equal(times[i]) || filepath.Base(path) != "renamed.log" {
					t.Errorf("%s: %v, %v", path, info.ModTime(), err)
				}
			}
		})
	}
}
