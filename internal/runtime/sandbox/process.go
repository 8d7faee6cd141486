package sandbox

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Files are what a program has for its standard input, output and error. They
// stay the caller's.
type Files struct{ Stdin, Stdout, Stderr *os.File }

// A Process is a program that was started. One goroutine belongs to it, which
// waits for its end. Its methods are safe for concurrent use.
type Process struct {
	cmd    *exec.Cmd
	report Report
	caged  *caged       // nil outside a cage
	proxy  net.Listener // nil for a program without one

	done chan struct{} // closed once the rest is known
	end  State

	mu      sync.Mutex // guards the one below
	scratch *os.Root
}

// A State is how a process ended.
type State struct {
	Exit     int            // its status; -1 after a signal
	Signal   syscall.Signal // what ended it, 0 for an exit
	Exceeded string         // the limit that it ran into, "" for none
}

// OK reports whether the process ended well.
func (s State) OK() bool { return s.Exit == 0 && s.Signal == 0 }

// String says it in words.
func (s State) String() string {
	text := fmt.Sprintf("exit status %d", s.Exit)
	if s.Signal != 0 {
		text = "signal: " + s.Signal.String()
	}
	if s.Exceeded != "" {
		text += ", limit exceeded: " + s.Exceeded
	}
	return text
}

// Report says which walls stand around this process.
func (p *Process) Report() Report { return p.report }

// Done is closed once the process, and in a cage all that it started, has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait returns how the process ended, once it has.
func (p *Process) Wait() State {
	<-p.done
	return p.end
}

// Exceeded returns the name of the limit that ended the process, "" while it
// runs and where it was none.
func (p *Process) Exceeded() string {
	select {
	case <-p.done:
		return p.end.Exceeded
	default:
		return ""
	}
}

// Terminate asks the process to end.
func (p *Process) Terminate() { p.signal(syscall.SIGTERM) }

// hangUpLimit is how long a launcher may take to end what it was told to end.
const hangUpLimit = 500 * time.Millisecond

// Kill ends the process and all that it started, as far as the cage knows of it.
func (p *Process) Kill() {
	if p.caged == nil || !p.caged.hangUp() {
		p.signal(syscall.SIGKILL)
		return
	}
	time.AfterFunc(hangUpLimit, func() { p.signal(syscall.SIGKILL) })
}

func (p *Process) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		signalGroup(p.cmd, sig)
	}
}

// Scratch returns the program's scratch directory as the program has it, for
// reading beneath, also after its end; nil where that is the directory of the
// [Spec] itself. Release closes it.
func (p *Process) Scratch() *os.Root {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scratch
}

// Proxy returns the listener at which the program finds its proxy, for the caller to serve; nil
// for a program whose [Spec] wants none. Release closes it.
func (p *Process) Proxy() net.Listener { return p.proxy }

// Release lets go of what outlived the process for its host's sake. The
// process must have ended.
func (p *Process) Release() {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proxy != nil {
		_ = p.proxy.Close()
	}
	if p.scratch != nil {
		_ = p.scratch.Close()
		p.scratch = nil
	}
}
