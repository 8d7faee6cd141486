//go:build !linux

package sandbox

import (
	"os/exec"
	"syscall"
)

// prepare gives the child a session of its own, so that the host's terminal is
// out of its reach. Elsewhere than on Linux nothing ties its life to the host's.
func prepare(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func awaitExit(*exec.Cmd) {}

func signalGroup(cmd *exec.Cmd, sig syscall.Signal) { _ = syscall.Kill(-cmd.Process.Pid, sig) }
