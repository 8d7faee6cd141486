package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
	"github.com/mortise-dev/mortise/plugin"
)

// caged is a launcher, and what it holds of the host's for one process. It starts one program at most.
type caged struct {
	cage     *cage
	cmd      *exec.Cmd
	spaces   bool          // the kernel ends everything with the launcher
	lifeline *net.UnixConn // to the launcher: when it is closed, everything ends
	report   *os.File
	// reports are the start and the end, which may both be there before the first is read: one decoder reads them, since a
	// second would miss what the first has in its buffer.
	reports  *json.Decoder
	said     wire.Ended
	heard    bool    // said was said
	group    *cgroup // nil for none
	in       bool    // it is in the group
	why      string  // there is no group
	uid, gid int     // of the program
	owner    *owner  // nil where that is the host's own user
	once     sync.Once
}

// fork starts a launcher in namespaces and, where there is one, a cgroup of its own. It has been told nothing.
func (c *cage) fork(ctx context.Context, limits Limits, proxied bool) (_ *caged, err error) {
	k := &caged{cage: c, spaces: c.way.spaces}
	defer func() {
		if err != nil {
			k.release()
		}
	}()
	k.group, k.why = c.groups.take(limits) // before anything is started: a group that is to have others has no process but the host
	k.uid, k.gid, k.owner = c.identity(ctx)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	lifeline, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	k.lifeline = lifeline
	defer theirs.Close()
	report, reports, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	k.report, k.reports = report, json.NewDecoder(io.LimitReader(report, 2*maxReport))
	defer reports.Close()
	request := c.namespaces(k.owner, proxied)
	request.Tasks = k.group.tasks()
	k.cmd, k.in, err = c.forks.fork(ctx, request, null, null, null, theirs, reports) // wire.SpecFD, wire.ReportFD
	if err != nil {
		return nil, err
	}
	return k, nil
}

// socketPair makes a stream to a launcher: our end, and the one that it inherits.
func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "lifeline"), os.NewFile(uintptr(pair[1]), "lifeline")
	defer ours.Close() // the connection has a copy
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// maxReport is the longest line that the launcher may answer with.
const maxReport = 64 << 10

// negotiate sends the order, with files, and waits for what came of it.
func (k *caged) negotiate(ctx context.Context, order *wire.Spec, files []*os.File) (started wire.Started, err error) {
	deadline := time.Now().Add(k.cage.opts.StartLimit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	stop := context.AfterFunc(ctx, func() {
		_ = k.report.SetReadDeadline(time.Now())
		_ = k.lifeline.SetWriteDeadline(time.Now())
	})
	defer stop()
	_ = k.report.SetReadDeadline(deadline)
	_ = k.lifeline.SetWriteDeadline(deadline)
	fail := func(err error) (wire.Started, error) {
		switch {
		case ctx.Err() != nil:
			err = plugin.AsError(context.Cause(ctx))
		case errors.Is(err, os.ErrDeadlineExceeded):
			err = plugin.Errorf(plugin.CodeTimeout, "building its cage took longer than %s", k.cage.opts.StartLimit)
		case errors.Is(err, io.EOF), ended(err):
			err = errors.New("the launcher ended without a word")
		}
		return started, err
	}
	sent := k.send(order, files)
	if sent != nil && !ended(sent) {
		return fail(sent)
	}
	// A launcher that has ended already may have said why.
	if err := k.reports.Decode(&started); err != nil {
		return fail(err)
	}
	if sent != nil && started.Error == "" {
		return fail(sent)
	}
	_ = k.report.SetReadDeadline(time.Time{})
	return started, nil
}

// ended reports whether an error says that the launcher has ended.
func ended(err error) bool {
	return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ESRCH)
}

// send sends the files and the order, and puts the launcher into its cgroup where it is in none.
func (k *caged) send(order *wire.Spec, files []*os.File) error {
	line, err := json.Marshal(order)
	if err != nil {
		return err
	}
	fds, err := duplicates(files)
	if err != nil {
		return err
	}
	_, _, err = k.lifeline.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
	closeAll(fds)
	if err != nil {
		return err
	}
	if _, err := k.lifeline.Write(append(line, '\n')); err != nil || k.group == nil || k.in {
		return err
	}
	if err := k.join(); err != nil { // while the launcher is at work on the rest
		return err
	}
	_, err = k.lifeline.Write([]byte{'\n'})
	return err
}

// join puts the launcher into its cgroup.
func (k *caged) join() error {
	if err := k.group.add(k.cmd.Process.Pid); err != nil {
		return fmt.Errorf("putting it into its cgroup: %w", err)
	}
	k.in = true
	return nil
}

// finished waits until the launcher says how the program ended, or has ended itself. It reports whether nothing is left
// of all that the program started.
func (k *caged) finished(end *State) bool {
	if k.heard = k.reports.Decode(&k.said) == nil; !k.heard || !k.said.Last {
		return false
	}
	k.ended(end)
	return true
}

// ended learns how the program did, from what the launcher said and the kernel counted.
func (k *caged) ended(end *State) {
	if k.heard {
		end.Exit, end.Signal, end.Exceeded = k.said.Exit, syscall.Signal(k.said.Signal), k.said.Exceeded
	}
	if !end.OK() && k.group != nil {
		// What the kernel counted is a fact; what the launcher found lying about
		// may be from before.
		if counted := k.group.exceeded(); end.Exceeded == "" || counted == LimitMemory && end.Signal == syscall.SIGKILL {
			end.Exceeded = counted
		}
	}
}

// hangUp tells a launcher that is not the first process of a namespace to end
// everything, since no PID namespace does that when the launcher ends. It reports false
// where that is not needed.
func (k *caged) hangUp() bool {
	if k.spaces {
		return false
	}
	_ = k.lifeline.Close()
	return true
}

// drop ends a launcher that has started nothing.
func (k *caged) drop() {
	end(k.cmd)
	k.release()
}

// release lets go of what the cage of one process holds, once.
func (k *caged) release() {
	k.once.Do(func() {
		if k.lifeline != nil {
			_ = k.lifeline.Close()
		}
		closeFiles(k.report)
		k.cage.groups.give(k.group)
		k.cage.owners.give(k.owner)
	})
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
