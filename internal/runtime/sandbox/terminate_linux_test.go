package sandbox_test

import (
	"os"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// A program in a cage hears that it shall end, whichever thread of the launcher
// is told first.
func TestAProgramInACageIsAskedToEnd(t *testing.T) {
	t.Parallel()
	s := full(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for range 20 {
		spec := shell(t, `trap "exit 7" TERM; : >ready; while :; do :; done`)
		spec.Scratch, spec.Limits = t.TempDir(), usual
		p, err := s.Start(t.Context(), spec, sandbox.Files{Stdin: null, Stdout: null, Stderr: null})
		if err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "the program is ready", func() bool {
			_, err := p.Scratch().Stat("ready")
			return err == nil
		})
		p.Terminate()
		select {
		case <-p.Done():
		case <-time.After(testwait.Limit):
			t.Error("it was not asked to end")
			p.Kill()
		}
		if got := p.Wait(); got.Exit != 7 {
			t.Errorf("it ended with %s", got)
		}
		p.Release()
	}
}
