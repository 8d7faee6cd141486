package process

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// A child is one started program. Two goroutines belong to it:
//
//	drain  owns stderr and turns its lines into log records
//	reap   waits for the exit and bounds what is still read then
//
// Both have ended when stop returns. The owner of the child owns stdin and stdout.
type child struct {
	name    string // of the plugin, for messages
	proc    *sandbox.Process
	limits  sandbox.Limits
	graces  graces
	stdin   *os.File
	stdout  *os.File
	stderr  *os.File
	tail    *tail
	scratch string

	exited  chan struct{} // closed once the exit status is known
	drained chan struct{}
	stopped sync.Once

	mu       sync.Mutex // guards the rest
	deadline time.Time  // of reads from stdout, as last asked for
	ended    time.Time  // when the process ended; zero while it runs
	root     *os.Root   // scratch, where it is not the cage's; opened when it is first asked for
}

// stopGrace is the time after stdin is closed, and again after SIGTERM.
const stopGrace = 500 * time.Millisecond

// graces are the waits of a runner that no option sets. Tests that need another
// wait set it before the first call.
type graces struct {
	kill          time.Duration // after SIGKILL: the kernel's own time
	exit          time.Duration // between the end of stdout and that of the process, cage and all
	drain         time.Duration // to read what is left in the pipes once the process is gone
	onceHandshake time.Duration // of a plugin of protocol 1, for its handshake
	onceExit      time.Duration // of a plugin of protocol 1, between its answer and its exit
	hook          time.Duration // for a hook whose caller sets no bound
}

var defaultGraces = graces{
	kill:          2 * time.Second,
	exit:          1500 * time.Millisecond,
	drain:         250 * time.Millisecond,
	onceHandshake: 2 * time.Second,
	onceExit:      500 * time.Millisecond,
	hook:          5 * time.Second,
}

// files returns what the process has in its scratch directory, beneath a
// descriptor of it. They can be read until the child is released.
func (c *child) files() fs.FS {
	if caged := c.proc.Scratch(); caged != nil {
		return scratchFiles{caged}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.root == nil {
		root, err := os.OpenRoot(c.scratch)
		if err != nil {
			return none{err}
		}
		c.root = root
	}
	return scratchFiles{c.root}
}

// none is a file system that cannot be read.
type none struct{ err error }

func (n none) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: n.err}
}

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

// A launch is what is needed to start a program.
type launch struct {
	name string   // of the plugin, for messages
	argv []string // the program, an absolute path, and its arguments
	env  []string // variables beside those that every plugin has
	read []string // what it may read besides, by the host's word

	proxy bool // it has one

	named []string       // likewise, because something of the plugin's named it
	data  []sandbox.File // artifacts it may read
}

// launch starts a program in a scratch directory of its own. log hears the
// lines of its stderr.
func (r *Runner) launch(ctx context.Context, l launch, log func(line string)) (*child, error) {
	failed := func(err error) error {
		return plugin.Errorf(plugin.CodeLaunchFailed, "%s: starting %s: %w", l.name, l.argv[0], err)
	}
	scratch, err := os.MkdirTemp(r.opts.Scratch, "p-")
	if err != nil {
		return nil, failed(err)
	}
	if real, err := filepath.EvalSymlinks(scratch); err == nil { // as the program sees it
		scratch = real
	}
	c := &child{name: l.name, limits: r.opts.Limits, graces: r.graces, scratch: scratch, tail: &tail{}}
	c.exited, c.drained = make(chan struct{}), make(chan struct{})
	theirs, err := c.pipes()
	if err != nil {
		_ = rmtree.Remove(scratch)
		return nil, failed(err)
	}
	c.proc, err = r.sandbox.Start(ctx, sandbox.Spec{
		Argv: l.argv, Env: append(environment(scratch), l.env...), Read: l.read, Named: l.named, Artifacts: l.data, Proxy: l.proxy, Hide: r.opts.Hide, Own: []string{r.opts.Own}, Scratch: scratch, Limits: r.opts.Limits,
	}, sandbox.Files{Stdin: theirs[0], Stdout: theirs[1], Stderr: theirs[2]})
	closeAll(theirs[:]...)
	if err != nil {
		closeAll(c.stdin, c.stdout, c.stderr)
		_ = rmtree.Remove(scratch)
		return nil, named(l.name, plugin.AsError(err))
	}
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

// reap waits for the end of the process and of the processes it left behind, and bounds
// how long their pipes are read: a grandchild that holds them open blocks no caller.
func (c *child) reap() {
	c.proc.Wait()
	c.mu.Lock()
	c.ended = time.Now()
	deadline := c.deadline
	c.mu.Unlock()
	c.setReadDeadline(deadline)
	_ = c.stderr.SetReadDeadline(c.ended.Add(c.graces.drain))
	close(c.exited)
}

// setReadDeadline bounds reads from stdout, for a process that has ended by
// what may still be in the pipe. The zero time is no bound.
func (c *child) setReadDeadline(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if !c.ended.IsZero() {
		if last := c.ended.Add(c.graces.drain); t.IsZero() || last.Before(t) {
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
			c.proc.Terminate()
			if !c.waitExit(stopGrace) {
				c.kill()
				c.waitExit(c.graces.kill)
			}
		}
		c.release()
	})
}

// kill ends the process and all that it started at once.
func (c *child) kill() { c.proc.Kill() }

// destroy is stop without its patience.
func (c *child) destroy() {
	c.stopped.Do(func() {
		c.kill()
		c.waitExit(c.graces.kill)
		c.release()
	})
}

// release closes the host's ends and removes the scratch directory.
func (c *child) release() {
	_ = c.stdin.Close()
	if c.waitExit(0) {
		c.proc.Release()
	} else { // not even SIGKILL ended it: leave it to the kernel
		_ = c.stderr.SetReadDeadline(time.Now())
	}
	<-c.drained
	closeAll(c.stdout, c.stderr)
	c.mu.Lock()
	if c.root != nil {
		_ = c.root.Close()
	}
	c.mu.Unlock()
	_ = rmtree.Remove(c.scratch)
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

// crashed says how the process ended, by a limit or by itself, with the cause
// that it wrote to standard error.
func (c *child) crashed(what string) *plugin.Error {
	how, exceeded := "still running", ""
	if c.waitExit(c.graces.exit) {
		state := c.proc.Wait()
		how, exceeded = state.String(), state.Exceeded
		select {
		case <-c.drained:
		case <-time.After(c.graces.drain):
		}
	}
	message := fmt.Sprintf("%s: %s (%s)", c.name, what, how)
	failure := &plugin.Error{Code: plugin.CodeCrashed, Retryable: true}
	if exceeded != "" {
		message += fmt.Sprintf("; plugins.%s in mortise.yaml is %s", exceeded, c.limits.Text(exceeded))
		failure = &plugin.Error{Code: plugin.CodeLimitExceeded}
	}
	if cause := c.tail.cause(); cause != "" {
		message += "; standard error: " + cause
	}
	failure.Message = message
	return failure
}

// exitOK reports whether the process, which has ended, ended well.
func (c *child) exitOK() bool { return c.proc.Wait().OK() }
