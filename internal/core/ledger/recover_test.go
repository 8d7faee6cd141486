package ledger_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
)

// dieRecovering is killed in the middle of settling what another process left:
// by itself in the transaction, or by its parent right after.
func dieRecovering(dir, when string) {
	st, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	fail(err)
	_, err = ledger.Open(context.Background(), st, ledger.Options{
		Recover: func(context.Context, store.Tx, store.NodeRow, time.Time) error {
			if when == "inside" {
				self, err := os.FindProcess(os.Getpid())
				fail(errors.Join(err, self.Kill()))
				testwait.Block()
			}
			return nil
		},
	})
	fail(err)
	os.Stdout.WriteString("recovered\n")
	testwait.Block()
}

// start runs the test binary as another process.
func start(t *testing.T, as string, args ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), role+"="+as)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewReader(out)
}

// A recovering process may be killed too, during recovery or right after it, and
// several may recover at once: the result equals that of one recovery.
func TestKilledRecoveriesEndLikeOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, out := start(t, "die", dir)
	if line, err := out.ReadString('\n'); line != "claimed\n" {
		t.Fatalf("the first said %q, %v", line, err)
	}
	kill := func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	kill()
	for range 5 {
		if cmd, _ = start(t, "recover", dir, "inside"); cmd.Wait() == nil {
			t.Fatal("it was not killed")
		}
	}
	cmd, out = start(t, "recover", dir, "after")
	if line, err := out.ReadString('\n'); line != "recovered\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	kill()

	var wg sync.WaitGroup
	for range 2 {
		st := openStore(t, dir)
		wg.Go(func() {
			l, err := ledger.Open(context.Background(), st, ledger.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { l.Close() })
		})
	}
	wg.Wait()

	st := openStore(t, dir)
	var kinds []string
	for e, err := range st.Entries(t.Context(), store.EntryFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, string(e.Kind))
	}
	slices.Sort(kinds)
	// The one that was killed right after its recovery was on the books as well.
	want := []string{"call.failed", "call.started", "call.started", "call.unknown", "node.unclean", "node.unclean"}
	if !slices.Equal(kinds, want) {
		t.Errorf("the entries are %q, want %q", kinds, want)
	}
	for key, state := range map[string]store.CallState{"k:pure": store.CallFailed, "k:effect": store.CallUnknown} {
		row, err := st.CallByKey(t.Context(), "t", operation, key)
		if err != nil || row == nil || row.State != state || row.Attempt != 1 || row.Code == "" {
			t.Errorf("%s: %+v, %v", key, row, err)
		}
	}
	if calls, err := st.Calls(t.Context(), store.CallFilter{State: store.CallRunning}); err != nil || len(calls) != 0 {
		t.Errorf("still running are %+v, %v", calls, err)
	}
}
