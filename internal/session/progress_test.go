package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/session"
)

// TestAFileIsReadOnceAndTheProgressTold: the bytes of a person's file are hashed
// and kept in one pass, and what is told of it ends with the size.
func TestAFileIsReadOnceAndTheProgressTold(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	in := b.create(t, "t")
	path := filepath.Join(t.TempDir(), "big.log")
	const size = 900 << 10
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	var told []int64
	added, err := b.AddFile(t.Context(), "t", in.ID, path, session.Add{Progress: func(done int64) { told = append(told, done) }})
	if err != nil || added.Size != size {
		t.Fatalf("%+v, %v", added, err)
	}
	if len(told) < 2 || told[len(told)-1] != size {
		t.Errorf("told %d times, last %v; the file has %d bytes", len(told), told[max(0, len(told)-1):], size)
	}
	for i := 1; i < len(told); i++ {
		if told[i] < told[i-1] {
			t.Fatalf("it went back from %d to %d", told[i-1], told[i])
		}
	}
}
