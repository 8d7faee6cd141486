package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A child is one started program. Two goroutines belong to it:
//
//	drain  owns stderr and turns its lines into log records
//	reap   owns the exit: it waits, kills what is left of the group, learns the status
//
// Both have ended when stop returns. Whoever holds the child owns stdin and stdout.
type child struct {
	name    string // of the plugin, for messages
	cmd     *exec.Cmd
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	tail    *tail
	scratch string

	exited  chan struct{} // closed once the exit status is known
	drained chan struct{}
	stopped sync.Once

	mu       sync.Mutex // guards the two below
	deadline time.Time  // of reads from stdout, as last asked for
	ended    time.Time  // when the process ended; zero while it runs
}

// Times of the stop ladder and around an exit.
const (
	stopGrace   = 500 * time.Millisecond // after stdin is closed, and again after SIGTERM
	killGrace   = 2 * time.Second        // after SIGKILL: the kernel's own time
	drainGrace  = 250 * time.Millisecond // what is left in the pipes once the process is gone
	launchLimit = 2 * time.Second
)

// environment is all that a plugin finds in its environment, with its scratch
// directory as HOME and TMPDIR. Nothing of the host's own is passed on.
func environment(scratch string) []string {
	return []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"LANG=C.UTF-8",
		"TZ=UTC",
		"HOME=" + scratch,
		"TMPDIR=" + scratch,
	}
}

// launch starts argv in a scratch directory of its own under dir. log hears
// the lines of its stderr.
func (l *launcher) launch(ctx context.Context, name, dir string, argv []string, log func(line string)) (*child, error) {
	failed := func(err error) error {
		return plugin.Errorf(plugin.CodeLaunchFailed, "%s: starting %s: %w", name, argv[0], err)
	}
	scratch, err := os.MkdirTemp(dir, "p-")
	if err != nil {
		return nil, failed(err)
	}
	c := &child{name: name, scratch: scratch, tail: &tail{}, exited: make(chan struct{}), drained: make(chan struct{})}
	c.cmd = &exec.Cmd{Path: argv[0], Args: argv, Dir: scratch, Env: environment(scratch)}
	prepare(c.cmd)
	theirs, err := c.pipes()
	if err != nil {
		_ = os.RemoveAll(scratch)
		return nil, failed(err)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	abandon := func() {
		closeAll(theirs[:]...)
		closeAll(c.stdin, c.stdout, c.stderr)
		_ = os.RemoveAll(scratch)
	}
	timer := time.NewTimer(launchLimit)
	defer timer.Stop()
	started := l.start(c.cmd)
	select {
	case err = <-started:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = plugin.Errorf(plugin.CodeTimeout, "%s: starting %s took longer than %s", name, argv[0], launchLimit)
	}
	if err != nil {
		var typed *plugin.Error
		if errors.As(err, &typed) || ctx.Err() != nil {
			l.stray.Go(func() { // it may still start: end it then
				if <-started == nil {
					signalGroup(c.cmd, syscall.SIGKILL)
					_ = c.cmd.Wait()
				}
				abandon()
			})
			return nil, err
		}
		abandon()
		return nil, failed(err)
	}
	closeAll(theirs[:]...)
	go c.drain(log)
	go c.reap()
	return c, nil
}

// pipes makes the three pipes, keeps the host's ends and returns the child's.
func (c *child) pipes() (theirs [3]*os.File, err error) {
	var in, out, errs [2]*os.File
	for _, p := range []*[2]*os.File{&in, &out, &errs} {
		if p[0], p[1], err = os.Pipe(); err != nil {
			closeAll(in[0], in[1], out[0], out[1])
			return theirs, err
		}
	}
	c.stdin, c.stdout, c.stderr = in[1], out[0], errs[0]
	return [3]*os.File{in[0], out[1], errs[1]}, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// reap waits for the end of the process, kills whatever it left behind in its
// group, and bounds how long its pipes are still read: a grandchild that holds
// them open keeps nobody waiting.
func (c *child) reap() {
	awaitExit(c.cmd)
	signalGroup(c.cmd, syscall.SIGKILL)
	_ = c.cmd.Wait()
	c.mu.Lock()
	c.ended = time.Now()
	deadline := c.deadline
	c.mu.Unlock()
	c.setReadDeadline(deadline)
	_ = c.stderr.SetReadDeadline(c.ended.Add(drainGrace))
	close(c.exited)
}

// setReadDeadline bounds reads from stdout, for a process that has ended by
// what may still be in the pipe. The zero time is no bound.
func (c *child) setReadDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if !c.ended.IsZero() {
		if last := c.ended.Add(drainGrace); t.IsZero() || last.Before(t) {
			t = last
		}
	}
	_ = c.stdout.SetReadDeadline(t)
}

// drain reads stderr to its end.
func (c *child) drain(log func(line string)) {
	defer close(c.drained)
	c.tail.readFrom(c.stderr, log)
}

// stop ends the process by the ladder: close stdin, wait, terminate, wait,
// kill. It returns once the process is reaped and its goroutines have ended,
// and may be called again.
func (c *child) stop() {
	c.stopped.Do(func() {
		_ = c.stdin.Close()
		if !c.waitExit(stopGrace) {
			signalGroup(c.cmd, syscall.SIGTERM)
			if !c.waitExit(stopGrace) {
				c.kill()
				c.waitExit(killGrace)
			}
		}
		c.release()
	})
}

// kill ends the process and its group at once.
func (c *child) kill() {
	select {
	case <-c.exited:
	default:
		signalGroup(c.cmd, syscall.SIGKILL)
	}
}

// destroy is stop without its patience.
func (c *child) destroy() {
	c.stopped.Do(func() {
		c.kill()
		c.waitExit(killGrace)
		c.release()
	})
}

// release closes the host's ends and removes the scratch directory.
func (c *child) release() {
	_ = c.stdin.Close()
	if !c.waitExit(0) { // not even SIGKILL ended it: leave it to the kernel
		_ = c.stderr.SetReadDeadline(time.Now())
	}
	<-c.drained
	closeAll(c.stdout, c.stderr)
	_ = os.RemoveAll(c.scratch)
}

// waitExit reports whether the process ended within d.
func (c *child) waitExit(d time.Duration) bool {
	select {
	case <-c.exited:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
		return false
	}
}

// crashed says how the process ended, with its last words.
func (c *child) crashed(what string) *plugin.Error {
	how := "still running"
	if c.waitExit(drainGrace) {
		how = c.cmd.ProcessState.String()
		select {
		case <-c.drained:
		case <-time.After(drainGrace):
		}
	}
	message := fmt.Sprintf("%s: %s (%s)", c.name, what, how)
	if words := c.tail.last(3); words != "" {
		message += "; its last words: " + words
	}
	return &plugin.Error{Code: plugin.CodeCrashed, Message: message, Retryable: true}
}

// exitOK reports whether the process, which has ended, ended well.
func (c *child) exitOK() bool { return c.cmd.ProcessState.Success() }
