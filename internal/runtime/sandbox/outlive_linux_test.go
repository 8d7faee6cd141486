package sandbox_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/carried"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// Where user namespaces are forbidden there is no PID namespace that ends what a
// program started. The launcher does, when it is told to and when the host is gone;
// other processes of the same user live on.
func TestNothingOutlivesTheHostAtLevelPartial(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a user to whom user namespaces are forbidden: run the test as root")
	}
	full(t) // makes sure that the launcher is built
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "outlive-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	copied, scratch := filepath.Join(dir, "program"), filepath.Join(dir, "scratch")
	text, err := os.ReadFile(program)
	if err == nil {
		err = errors.Join(carried.Write(copied, text), os.Chmod(copied, 0o755))
	}
	if err == nil {
		err = os.Mkdir(scratch, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	const overflowID = 65534
	for _, path := range []string{dir, scratch} {
		if err := os.Chown(path, overflowID, overflowID); err != nil {
			t.Fatal(err)
		}
	}
	theirs, other := sleepTime(1), sleepTime(9)
	as := &syscall.Credential{Uid: overflowID, Gid: overflowID}
	bystander := exec.Command("/bin/sleep", other)
	bystander.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = bystander.Process.Kill(), bystander.Wait() }()
	cmd := exec.Command(copied, "role", "partial", scratch, theirs)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: as, Cloneflags: unix.CLONE_NEWUSER, GidMappingsEnableSetgroups: true,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: overflowID, HostID: overflowID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: overflowID, HostID: overflowID, Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("needs user namespaces, which this machine forbids; mortise doctor says how to allow them: %v", err)
	}
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if line != "ready\n" {
		t.Skipf("needs level partial without user namespaces, and Landlock from ABI 6 on (Linux 6.12): %s", line)
	}
	if !sleeping(t, theirs) {
		t.Fatal("its child is not to be found")
	}
	_ = cmd.Process.Kill()
	testwait.Until(t, "what the host had started has ended", func() bool { return !sleeping(t, theirs) })
	if !sleeping(t, other) {
		t.Error("a process of the same user that is in no cage was ended too")
	}
}

// partial is host on a machine that forbids user namespaces.
func partial(args []string) {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		fmt.Println("forbidding user namespaces:", err)
		return
	}
	s, err := sandbox.New(sandbox.Options{Dir: args[0], Mode: sandbox.BestEffort, StartLimit: testwait.Limit})
	if err != nil {
		panic(err)
	}
	if r := s.Report(); r.Level != sandbox.Partial {
		fmt.Printf("level %s is reached without user namespaces: %+v\n", r.Level, r.Missing())
		return
	}
	for _, layer := range s.Report().Layers {
		var abi int
		if _, err := fmt.Sscanf(layer.Why, "ABI %d", &abi); layer.Name == sandbox.LayerLandlock && err == nil && abi < 6 {
			fmt.Println("Landlock keeps signals within a cage from ABI 6 on; this is", abi)
			return
		}
	}
	host(args)
}
