// Package sandbox starts a program in a cage that the operating system
// enforces, and says which walls stand.
//
// On Linux a program has namespaces of its own, a root with nothing but what
// its [Spec] names, no network, no capabilities, a filter of system calls, and
// limits. A small launcher puts the walls up, tries each of them, starts the
// program and stays with it: when the launcher ends, the kernel ends the whole
// tree, and the launcher ends when the host does. What this machine cannot
// enforce is in the [Report]; nothing is claimed that was not tried.
//
//	s, err := sandbox.New(sandbox.Options{Mode: sandbox.Auto})
//	p, err := s.Start(ctx, sandbox.Spec{Argv: argv, Read: []string{dir}, Scratch: scratch}, stdin, stdout, stderr)
//
// What a program may read is decided by whoever starts it; see package process.
package sandbox

import (
	"context"
	"fmt"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
)

// A Mode says whether there shall be a cage.
type Mode string

// The modes.
const (
	Auto     Mode = "auto"     // as much of it as the machine can enforce
	Off      Mode = "off"      // none
	Required Mode = "required" // all of it, or nothing is started
)

// Modes are all of them.
var Modes = []string{string(Auto), string(Off), string(Required)}

// Options say how a [Sandbox] works.
type Options struct {
	Dir  string // the launcher is kept here where the system cannot keep it in memory; os.TempDir by default
	Mode Mode   // Auto by default
}

// A Sandbox starts programs. It is safe for concurrent use.
type Sandbox struct {
	opts    Options
	starter *starter
	cage    *cage // what only this system has

	mu     sync.Mutex // guards the report, and is held while it is made
	report *Report
}

// New returns a sandbox. Nothing is tried yet. Close must be called.
func New(opts Options) (*Sandbox, error) {
	switch opts.Mode {
	case "":
		opts.Mode = Auto
	case Auto, Off, Required:
	default:
		return nil, fmt.Errorf("sandbox is %q; it is one of %q", opts.Mode, Modes)
	}
	starter := newStarter()
	return &Sandbox{opts: opts, starter: starter, cage: newCage(opts, starter)}, nil
}

// Uncaged returns a sandbox that starts programs without a cage.
func Uncaged() *Sandbox {
	s, err := New(Options{Mode: Off})
	if err != nil {
		panic(err) // the mode is known
	}
	return s
}

// Report says what this machine can enforce. It is found out once, by starting
// something in a cage.
func (s *Sandbox) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report == nil {
		r := noReport("sandbox is off in mortise.yaml")
		if s.opts.Mode != Off {
			r = s.probe()
		}
		s.report = &r
	}
	return *s.report
}

// Close ends the sandbox. Every process must have been waited for. It may be
// called again.
func (s *Sandbox) Close() error {
	s.starter.close()
	return s.cage.close()
}

// Start starts a program with the three files as its standard input, output
// and error, and returns once it runs. On an error nothing does.
func (s *Sandbox) Start(ctx context.Context, spec Spec, files Files) (*Process, error) {
	report := s.Report()
	if s.opts.Mode == Required && report.Level != Full {
		return nil, s.unavailable(report)
	}
	var p *Process
	var err error
	if report.Level == None {
		p, err = s.startPlain(ctx, spec, files)
		if p != nil {
			p.report = report
		}
	} else {
		p, err = s.startCaged(ctx, spec, files)
	}
	if err != nil {
		return nil, err
	}
	if p.report.Level != report.Level { // not what this machine could do before, nor what was decided upon
		p.Kill()
		p.Wait()
		p.Release()
		return nil, plugin.Errorf(plugin.CodeIsolationUnavailable, "a cage of level %s was built where level %s is known to be possible: %s", p.report.Level, report.Level, p.report.lacks())
	}
	return p, nil
}

func (s *Sandbox) unavailable(r Report) error {
	return plugin.Errorf(plugin.CodeIsolationUnavailable,
		"mortise.yaml says sandbox: required, and this machine reaches level %s: it lacks %s; see mortise doctor, or say sandbox: auto",
		r.Level, r.lacks())
}
