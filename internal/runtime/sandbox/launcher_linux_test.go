package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What make build put there is what the source says.
func TestTheLauncherThatIsCarriedIsUpToDate(t *testing.T) {
	t.Parallel()
	have, err := bin.ReadFile("bin/cage")
	if err != nil {
		t.Skip("needs the embedded launcher: run make build before the tests")
	}
	built := filepath.Join(t.TempDir(), "cage")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-tags=grpcnotrace", "-gcflags=all=-dwarf=false",
		"-ldflags=-s -w -buildid=", "-o", built, "../../../cmd/cage")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	want, err := os.ReadFile(built)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("internal/runtime/sandbox/bin/cage is not what cmd/cage makes: run make build")
	}
}

// Where a system runs nothing from memory, the launcher is a file, and is restored if
// it was changed.
func TestTheLauncherOnTheDiskIsItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var l launcher
	for range 2 {
		if err := l.keepFile(dir, []byte("the launcher")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(l.path)
		if err != nil || info.Mode().Perm() != 0o500 {
			t.Fatalf("%v %v", info, err)
		}
		if text, err := os.ReadFile(l.path); err != nil || string(text) != "the launcher" {
			t.Fatalf("%q %v", text, err)
		}
		if err := os.Chmod(l.path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.path, []byte("another"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}
