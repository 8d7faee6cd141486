//go:build !linux

package sandbox

import (
	"os/exec"
	"syscall"
)

// prepare puts the child into a process group of its own. Elsewhere than on
// Linux nothing ties its life to the host's.
func prepare(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func awaitExit(*exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, sig syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, sig) }
