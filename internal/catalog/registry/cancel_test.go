package registry_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/catalog/registry"
	"github.com/mortise-dev/mortise/plugin"
)

// hugeSize is that of the one large file in a package, near the bound.
const hugeSize = 480 << 20

// huge makes a plugin with a large file that takes no room on the disk.
func huge(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "huge")
	write(t, dir+"/manifest.yaml", "name: huge\nversion: 1.0.0\noperations: {x: {}}\n")
	write(t, dir+"/plugin.py", "")
	write(t, dir+"/a.bin", "")
	if err := os.Truncate(dir+"/a.bin", hugeSize); err != nil {
		t.Fatal(err)
	}
	return dir
}

// grain writes the large file of an archive, which is hard enough to compress
// that it is no bomb.
func grain(w io.Writer) error {
	block := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{})
	for at := 0; at < len(block); at += 4 << 10 {
		_, _ = source.Read(block[at : at+128])
	}
	for range 256 {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// packedHuge makes a package file with a large file in it.
func packedHuge(t *testing.T, suffix string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "huge"+suffix)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	small := map[string]string{"manifest.yaml": "name: huge\nversion: 1.0.0\noperations: {x: {}}\n", "plugin.py": ""}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if suffix == ".zip" {
		to := zip.NewWriter(file)
		for name, text := range small {
			w, err := to.Create(name)
			check(err)
			_, err = io.WriteString(w, text)
			check(err)
		}
		w, err := to.CreateHeader(&zip.FileHeader{Name: "a.bin", Method: zip.Store})
		check(err)
		check(grain(w))
		check(to.Close())
		return path
	}
	var out io.Writer = file
	if suffix == ".tar.gz" {
		squeezed, err := gzip.NewWriterLevel(file, gzip.BestSpeed)
		check(err)
		defer func() { check(squeezed.Close()) }()
		out = squeezed
	}
	to := tar.NewWriter(out)
	for name, text := range small {
		check(to.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644}))
		_, err := io.Copy(to, bytes.NewBufferString(text))
		check(err)
	}
	check(to.WriteHeader(&tar.Header{Name: "a.bin", Size: 256 << 20, Mode: 0o644}))
	check(grain(to))
	check(to.Close())
	return path
}

// A counted context ends after it was looked at so many times: in the middle of a large file.
type counted struct {
	context.Context
	mu   sync.Mutex
	left int
	end  func()
}

func (c *counted) Err() error {
	c.mu.Lock()
	if c.left--; c.left == 0 {
		c.end()
	}
	c.mu.Unlock()
	return c.Context.Err()
}

// Whatever reads the files of a package ends with the context, within a second,
// and nothing that was half made stays.
func TestTheEndOfTheContextEndsWhatReadsAPackage(t *testing.T) {
	dir := huge(t)
	for name, c := range map[string]struct {
		path string
		dev  bool
	}{
		"copied": {path: dir}, "linked": {path: dir, dev: true},
		"a zip": {path: packedHuge(t, ".zip")}, "a tar": {path: packedHuge(t, ".tar")}, "a tar.gz": {path: packedHuge(t, ".tar.gz")},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			inner, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var asked time.Time
			stopped := plugin.Errorf(plugin.CodeCancelled, "asked to stop")
			ctx := &counted{Context: inner, left: 200, end: func() {
				asked = time.Now()
				cancel(stopped)
			}}
			_, err := b.Register(ctx, c.path, registry.RegisterOptions{Dev: c.dev})
			if inner.Err() == nil {
				t.Fatalf("it was done before it was cancelled: %v", err)
			}
			took := time.Since(asked)
			t.Run("time", func(t *testing.T) {
				if testing.Short() {
					t.Skip("make test-long: the time that cancelling takes")
				}
				if took > time.Second {
					t.Errorf("it ended after %v", took)
				}
			})
			if !errors.Is(err, stopped) {
				t.Errorf("%v", err)
			}
			if entries, _ := os.ReadDir(b.options.Dir); len(entries) > 0 {
				t.Errorf("%v stays", entries)
			}
		})
	}
}

// A check of files that was cancelled is no finding: it holds no package, and says
// that it was cancelled.
func TestACancelledCheckHoldsNoPackage(t *testing.T) {
	t.Parallel()
	b := open(t)
	b.install(grove(t, "fetch"))
	target, err := b.Resolve(t.Context(), "fetch")
	if err != nil {
		t.Fatal(err)
	}
	b.reopen() // what was checked before is forgotten
	stopped := plugin.Errorf(plugin.CodeInvalidInput, "asked to stop")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if err := b.CheckPackage(ctx, target.Package); !errors.Is(err, stopped) {
		t.Errorf("%v", err)
	}
	b.expect("fetch", "fetch/fetch@1.0.0")
	if err := b.CheckPackage(t.Context(), target.Package); err != nil {
		t.Error(err)
	}
}
