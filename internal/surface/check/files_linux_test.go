package check

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Files of a plugin are read beneath its directory, soon, and within bounds; an
// example names no file elsewhere.
func TestFilesOfAPluginAreReadBeneathIt(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "plugin")
	if err := os.MkdirAll(filepath.Join(dir, "examples"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"../secret": "SECRET", "good": "good", "examples/in": "in"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": "../secret", "zero": "/dev/zero", "away": "..", "round": "round", "inside": "good"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "huge"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "huge"), 1<<40); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for name, want := range map[string]string{"good": "good", "examples/in": "in", "inside": "good"} {
		if text, err := read(dir, name); err != nil || string(text) != want {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	for _, name := range []string{"out", "zero", "away/secret", "round", "pipe", "huge", "examples", "../secret", "/etc/passwd", "gone"} {
		if text, err := read(dir, name); err == nil {
			t.Errorf("%s was read: %.40q", name, text)
		}
		if shown := frame(dir, "at f ("+name+":1:1)"); shown != "" {
			t.Errorf("a frame shows %s: %q", name, shown)
		}
	}
	for _, path := range []string{"../secret", filepath.Join(top, "secret"), "/etc/passwd", "out", "away/secret"} {
		for _, key := range []string{"path", "file_path"} {
			if _, _, err := atHome([]byte(`{"artifacts":[{"`+key+`":"`+path+`"}]}`), dir); err == nil || !strings.Contains(err.Error(), "not in the plugin's directory") {
				t.Errorf("an example names %s: %v", path, err)
			}
		}
	}
	if _, _, err := atHome([]byte(`{"artifacts":[{"path":"examples/in"}]}`), dir); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}
