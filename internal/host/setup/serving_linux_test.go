package setup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// A host that was killed serves nothing, also where no one waits for its process: commands
// would look for its socket for five seconds each.
func TestAKilledHostServesNothing(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	cmd := exec.Command("cat") // it reads its input until it is killed
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	if err := os.WriteFile(filepath.Join(home, ServeLock), fmt.Appendf(nil, "%d\n", cmd.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	if pid, _ := Serving(home); pid != cmd.Process.Pid {
		t.Errorf("process %d serves, and %d is said to", cmd.Process.Pid, pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the killed host serves nothing", func() bool {
		pid, _ := Serving(home)
		return pid == 0
	})
}
