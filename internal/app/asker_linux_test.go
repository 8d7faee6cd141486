package app_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/internal/host"
)

// TestInAUserNamespaceNoUserIsKnown: there a user chooses which number they have,
// so that one would be as many persons as they like.
func TestInAUserNamespaceNoUserIsKnown(t *testing.T) {
	if os.Getenv("MORTISE_TEST_WHO") != "" {
		os.Stdout.WriteString("asker=" + host.OSUser() + "\n")
		return
	}
	if host.OSUser() == "" {
		t.Skip("not run: this test is in a user namespace itself")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInAUserNamespaceNoUserIsKnown$", "-test.v")
	cmd.Env = append(os.Environ(), "MORTISE_TEST_WHO=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{ContainerID: 1234, HostID: os.Getuid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(string(out), "asker=") {
		t.Skipf("not run: no user namespace can be made here: %v", err)
	}
	if !strings.Contains(string(out), "asker=\n") {
		t.Errorf("%s", out)
	}
}
