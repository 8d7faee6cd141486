package sandbox

import (
	"syscall"
	"testing"
)

// A nursery that somebody ended is replaced by the next start.
func TestANurseryThatEndedIsReplaced(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	level := s.Report().Level
	if level == None {
		t.Skip("no cage can be built here: " + s.Report().lacks())
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		before := s.cage.nursery.cmd.Process
		if err := before.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_, _ = before.Wait()
		if r := s.try(); r.Level != level {
			t.Errorf("after %v the level is %s: %s", sig, r.Level, r.lacks())
		}
		if s.cage.nursery.cmd.Process == before {
			t.Errorf("after %v it is the same nursery", sig)
		}
	}
}
