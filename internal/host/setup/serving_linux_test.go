package setup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A host that was killed serves nothing, also where no one waits for its process: commands
// would look for its socket for five seconds each.
func TestAKilledHostServesNothing(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	cmd := exec.Command("sleep", "60")
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
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if pid, _ := Serving(home); pid == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("a host that was killed serves")
		}
	}
}
