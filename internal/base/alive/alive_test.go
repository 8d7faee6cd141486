package alive_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/alive"
	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// stays is set where this program is the child that the test starts.
const stays = "ALIVE_TEST_STAYS"

func TestMain(m *testing.M) {
	if os.Getenv(stays) != "" {
		testwait.Block()
	}
	os.Exit(m.Run())
}

func TestAProcessRunsUntilItEnds(t *testing.T) {
	t.Parallel()
	for _, none := range []int{0, -1, 1 << 30} {
		if alive.Process(none) {
			t.Errorf("process %d runs", none)
		}
	}
	if !alive.Process(os.Getpid()) {
		t.Error("this process does not run")
	}
	if !alive.Process(1) && runtime.GOOS != "windows" {
		t.Error("the first process, which may be another user's, does not run")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stays+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if !alive.Process(pid) {
		t.Error("a child does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" { // no one has waited for it yet
		testwait.Until(t, "the killed child has ended", func() bool { return !alive.Process(pid) })
	}
	_ = cmd.Wait()
	if alive.Process(pid) {
		t.Error("a child that ended runs")
	}
}
