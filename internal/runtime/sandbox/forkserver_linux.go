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

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// A forkServer is the client of the fork server: a small process that forks the
// launchers and does nothing else. A child with a user namespace of its own begins as a
// copy of the process that forks it. For a small process that takes a tenth of a
// millisecond; for a host with 100 MiB it takes seven, and most of them fall to the
// host's other calls, which then write to memory that the kernel has to copy first (ADR
// 0050). The launchers are children of the host (CLONE_PARENT).
type forkServer struct {
	launcher *launcher
	starter  *starter // the fork server and all its children end with its thread

	mu   sync.Mutex // guards the rest, and is held during a fork
	line *os.File   // the socket to the process; nil while there is none
	cmd  *exec.Cmd

	reaping sync.WaitGroup // goroutines that wait for killed fork servers
}

// fork starts a launcher with these files as its descriptors from 0 on. The caller keeps
// its own and closes them. in is whether the launcher is in the cgroups of the request.
func (n *forkServer) fork(ctx context.Context, req wire.Fork, files ...*os.File) (_ *exec.Cmd, in bool, err error) {
	order, err := json.Marshal(req)
	if err != nil {
		return nil, false, err
	}
	fds, err := duplicates(files) // a caller that gives up waiting closes the files
	if err != nil {
		return nil, false, err
	}
	cmd := &exec.Cmd{Args: []string{wire.Launcher}}
	began := make(chan bool, 1) // in; a caller that has given up does not read it
	begin := func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		process, in, err := n.forkLocked(order, fds)
		cmd.Process = process
		began <- in
		return err
	}
	if err := n.starter.start(ctx, cmd, begin, func() { closeAll(fds) }); err != nil {
		return nil, false, err
	}
	return cmd, <-began, nil
}

// forkLocked sends the request and returns the new process. It starts the fork server
// again, once, if the old one ended before it read the request. The lock is held.
func (n *forkServer) forkLocked(order []byte, fds []int) (process *os.Process, in bool, err error) {
	if n.line != nil {
		n.reap(n.cmd.Process.Pid)
	}
	forked, took, err := n.ask(order, fds)
	if err != nil && !took { // the fork server was killed: start another, once
		n.end()
		forked, _, err = n.ask(order, fds)
	}
	switch {
	case err != nil: // a late answer must not be taken for the next request's
		n.end()
		return nil, false, err
	case forked.Error != "":
		if forked.Errno != 0 {
			return nil, false, syscall.Errno(forked.Errno)
		}
		return nil, false, errors.New(forked.Error)
	}
	process, err = os.FindProcess(forked.PID)
	return process, forked.In, err
}

// ask sends a request, with descriptors, and returns the answer. If took is false, the
// fork server never read the request, and the caller may send it to another one. The
// lock is held.
func (n *forkServer) ask(order []byte, fds []int) (forked wire.Forked, took bool, err error) {
	if n.line == nil {
		if err := n.open(); err != nil {
			return forked, false, err
		}
	}
	line := int(n.line.Fd())
	if err := unix.Sendmsg(line, order, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL); err != nil {
		return forked, false, fmt.Errorf("asking the fork server: %w", err)
	}
	answer := make([]byte, wire.MaxFork)
	size, err := unix.Read(line, answer)
	for errors.Is(err, unix.EINTR) {
		size, err = unix.Read(line, answer)
	}
	if err == nil && size == 0 {
		err = io.EOF
	}
	if err != nil {
		return forked, !errors.Is(err, unix.ECONNRESET), fmt.Errorf("waiting for the fork server: %w", err) // reset: it ended before it read
	}
	return forked, true, json.Unmarshal(answer[:size], &forked)
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

// open starts the fork server. The lock is held.
func (n *forkServer) open() error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "forkserver"), os.NewFile(uintptr(pair[1]), "forkserver")
	defer theirs.Close()
	limit := unix.NsecToTimeval(int64(n.starter.limit))
	if err := unix.SetsockoptTimeval(pair[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		_ = ours.Close()
		return err
	}
	cmd := &exec.Cmd{Path: n.launcher.path, Args: []string{wire.Launcher, wire.ForkServer}, Env: []string{"GOMAXPROCS=1"}, Dir: "/"}
	cmd.ExtraFiles = []*os.File{theirs} // wire.SpecFD
	if n.launcher.file != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, n.launcher.file)
		cmd.Path = fmt.Sprintf("/proc/self/fd/%d", wire.SpecFD+1)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return fmt.Errorf("starting the fork server: %w", err)
	}
	n.line, n.cmd = ours, cmd
	return nil
}

// end kills the fork server, if there is one. The lock is held.
func (n *forkServer) end() {
	if n.line == nil {
		return
	}
	_ = n.line.Close()
	n.line = nil
	cmd := n.cmd
	_ = cmd.Process.Kill()
	n.reaping.Go(func() {
		_ = cmd.Wait()
		n.reap(cmd.Process.Pid)
	})
}

// reap waits for dead launchers whose process ids were never reported, because their user
// namespace could be created and not used. They are in the fork server's process group.
func (n *forkServer) reap(group int) {
	for {
		if pid, err := unix.Wait4(-group, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
			return
		}
	}
}

func (n *forkServer) close() {
	n.mu.Lock()
	n.end()
	n.mu.Unlock()
	n.reaping.Wait()
}
