package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/sandbox/wire"
)

// A nursery is the process that launchers are started from: one of their own
// kind, which does nothing else. A program with a user namespace of its own
// begins as a copy of whoever starts it. Of a small process that takes a tenth
// of a millisecond; of a host with 100 MiB it takes seven, and most of them
// fall to the host's other calls, which then write to memory that the kernel
// has to copy first (ADR 0050). What is born is a child of the host.
type nursery struct {
	launcher *launcher
	starter  *starter // the nursery and all its children end with its thread

	mu   sync.Mutex // guards the rest, and is held while something is born
	line *os.File   // to the process; nil while there is none
	cmd  *exec.Cmd
}

// bear starts a launcher with these files, from 0 on. They stay the caller's.
func (n *nursery) bear(ctx context.Context, birth wire.Birth, files ...*os.File) (*exec.Cmd, error) {
	order, err := json.Marshal(birth)
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Args: []string{"cage"}}
	err = n.starter.start(ctx, cmd, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		fds := make([]int, len(files)) // not sooner: whoever gave up waiting has closed them
		for i, file := range files {
			fds[i] = int(file.Fd())
		}
		var born wire.Born
		err := n.ask(order, fds, &born)
		if err != nil { // somebody has ended it: begin again, once
			n.end()
			err = n.ask(order, fds, &born)
		}
		if err == nil && born.Error != "" {
			err = errors.New(born.Error)
		}
		if err == nil {
			cmd.Process, err = os.FindProcess(born.PID)
		}
		return err
	})
	return cmd, err
}

// ask sends an order, with descriptors, and takes the answer. The lock is held.
func (n *nursery) ask(order []byte, fds []int, born *wire.Born) error {
	if n.line == nil {
		if err := n.open(); err != nil {
			return err
		}
	}
	line := int(n.line.Fd())
	if err := unix.Sendmsg(line, order, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("asking the nursery: %w", err)
	}
	answer := make([]byte, wire.MaxBirth)
	size, err := unix.Read(line, answer)
	for errors.Is(err, unix.EINTR) {
		size, err = unix.Read(line, answer)
	}
	if err == nil && size == 0 {
		err = io.EOF
	}
	if err != nil {
		return fmt.Errorf("waiting for the nursery: %w", err)
	}
	return json.Unmarshal(answer[:size], born)
}

// open starts the process. The lock is held.
func (n *nursery) open() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "nursery"), os.NewFile(uintptr(pair[1]), "nursery")
	defer theirs.Close()
	limit := unix.NsecToTimeval(int64(2 * startLimit))
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		_ = ours.Close()
		return err
	}
	cmd := &exec.Cmd{Path: n.launcher.path, Args: []string{"cage", wire.Nursery}, Env: []string{"GOMAXPROCS=1"}, Dir: "/"}
	cmd.ExtraFiles = []*os.File{theirs} // wire.SpecFD
	if n.launcher.file != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, n.launcher.file)
		cmd.Path = fmt.Sprintf("/proc/self/fd/%d", wire.SpecFD+1)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return fmt.Errorf("starting the nursery: %w", err)
	}
	n.line, n.cmd = ours, cmd
	return nil
}

// end ends the process, if there is one. The lock is held.
func (n *nursery) end() {
	if n.line == nil {
		return
	}
	_ = n.line.Close()
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
	n.line = nil
}

func (n *nursery) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end()
}
