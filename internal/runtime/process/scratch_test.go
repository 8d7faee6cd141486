package process

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWhatLiesBeneathIsReadWithoutWaiting: a FIFO without a writer blocks no reader,
// and no name leads out.
func TestWhatLiesBeneathIsReadWithoutWaiting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files := scratchFiles{root}
	pipe, err := files.Open("pipe") // a test that hangs here has found the fault
	if err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	file, err := files.Open("file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if raw, err := io.ReadAll(file); err != nil || string(raw) != "text" {
		t.Errorf("%q %v", raw, err)
	}
	for _, name := range []string{"out", "../x", "/etc/passwd", "absent", ""} {
		if f, err := files.Open(name); err == nil || f != nil {
			t.Errorf("%q was opened", name)
		}
		if _, err := fs.Stat(files, name); err == nil {
			t.Errorf("%q was found", name)
		}
	}
}
