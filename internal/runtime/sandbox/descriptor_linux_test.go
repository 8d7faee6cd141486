package sandbox_test

import (
	"os"
	"testing"
)

// However many files the host has open, the launcher is what is executed: on
// the way there a child's own files pass through numbers above theirs.
func TestTheLauncherIsFoundUnderAnyNumberOfDescriptors(t *testing.T) {
	s := full(t)
	for n := range 160 {
		file, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if got := run(t, s, shell(t, "exit 7")); got.Exit != 7 {
			t.Fatalf("with %d files more: %v, %s", n+1, got.State, got.err)
		}
	}
}
