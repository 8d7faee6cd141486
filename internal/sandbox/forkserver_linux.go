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

// A nursery is the process that launchers are started from: one of their own kind,
// which does nothing else. A program with a user namespace of its own begins as a copy
// of the process that starts it. Of a small process that takes a tenth of a
// millisecond; of a host with 100 MiB it takes seven, and most of them fall to the
// host's other calls, which then write to memory that the kernel has to copy first (ADR
// 0050). What is born is a child of the host.
type nursery struct {
	launcher *launcher
	starter  *starter // the nursery and all its children end with its thread

	mu   sync.Mutex // guards the rest, and is held while something is born
	line *os.File   // to the process; nil while there is none
	cmd  *exec.Cmd

	burials sync.WaitGroup // of processes that were ended
}

// bear starts a launcher with these files, from 0 on. They stay the caller's.
func (n *nursery) bear(ctx context.Context, birth wire.Birth, files ...*os.File) (*exec.Cmd, error) {
	order, err := json.Marshal(birth)
	if err != nil {
		return nil, err
	}
	fds, err := duplicates(files) // a caller that gives up waiting closes the files
	if err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{Args: []string{wire.Launcher}}
	begin := func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		process, err := n.birth(order, fds)
		cmd.Process = process
		return err
	}
	return cmd, n.starter.start(ctx, cmd, begin, func() { closeAll(fds) })
}

// birth has a launcher started. The lock is held.
func (n *nursery) birth(order []byte, fds []int) (*os.Process, error) {
	if n.line != nil {
		n.bury(n.cmd.Process.Pid)
	}
	born, took, err := n.ask(order, fds)
	if err != nil && !took { // the nursery was killed: begin again, once
		n.end()
		born, _, err = n.ask(order, fds)
	}
	switch {
	case err != nil: // what it may still answer is not for the next
		n.end()
		return nil, err
	case born.Error != "":
		if born.Errno != 0 {
			return nil, syscall.Errno(born.Errno)
		}
		return nil, errors.New(born.Error)
	}
	return os.FindProcess(born.PID)
}

// ask sends an order, with descriptors, and takes the answer. Without took, the
// nursery never had the order, and it may be given to another one. The lock is
// held.
func (n *nursery) ask(order []byte, fds []int) (born wire.Born, took bool, err error) {
	if n.line == nil {
		if err := n.open(); err != nil {
			return born, false, err
		}
	}
	line := int(n.line.Fd())
	if err := unix.Sendmsg(line, order, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return born, false, fmt.Errorf("asking the nursery: %w", err)
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
		return born, !errors.Is(err, unix.ECONNRESET), fmt.Errorf("waiting for the nursery: %w", err) // reset: it ended before it read
	}
	return born, true, json.Unmarshal(answer[:size], &born)
}

// duplicates returns descriptors of the same files.
func duplicates(files []*os.File) (fds []int, err error) {
	for _, file := range files {
		fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			closeAll(fds)
			return nil, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// open starts the process. The lock is held.
func (n *nursery) open() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "nursery"), os.NewFile(uintptr(pair[1]), "nursery")
	defer theirs.Close()
	limit := unix.NsecToTimeval(int64(startLimit))
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		_ = ours.Close()
		return err
	}
	cmd := &exec.Cmd{Path: n.launcher.path, Args: []string{wire.Launcher, wire.Nursery}, Env: []string{"GOMAXPROCS=1"}, Dir: "/"}
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
	n.line = nil
	cmd := n.cmd
	_ = cmd.Process.Kill()
	n.burials.Go(func() {
		_ = cmd.Wait()
		n.bury(cmd.Process.Pid)
	})
}

// bury takes note of the ends of launchers that were never told of: their user
// namespace could be made and not be used. They die in the nursery's group.
func (n *nursery) bury(group int) {
	for {
		if pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

func (n *nursery) close() {
	n.mu.Lock()
	n.end()
	n.mu.Unlock()
	n.burials.Wait()
}
