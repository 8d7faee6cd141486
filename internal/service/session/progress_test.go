package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/service/session"
)

// TestAFileIsReadOnceAndTheProgressTold: the bytes of a person's file are hashed
// and kept in one pass, and what is told of it ends with the size.
func TestAFileIsReadOnceAndTheProgressTold(t *testing.T) {
	b := newBundle(t) // not beside other tests, because it counts what the process reads
	in := b.create(t, "t")
	path := filepath.Join(t.TempDir(), "big.log")
	const size = 900 << 10
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	var told []int64
	before := bytesRead(t)
	added, err := b.AddFile(t.Context(), "t", in.ID, path, session.Add{Progress: func(done int64) { told = append(told, done) }})
	if err != nil || added.Size != size {
		t.Fatalf("%+v, %v", added, err)
	}
	if read := bytesRead(t) - before; before > 0 && read > size*3/2 {
		t.Errorf("of a file of %d bytes %d were read", size, read)
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

// bytesRead is how many bytes this process has read by system calls; 0 where the system
// does not say.
func bytesRead(t *testing.T) (n int64) {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Logf("how often the file is read cannot be told here: %v", err)
		return 0
	}
	if _, err := fmt.Sscanf(string(raw), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
