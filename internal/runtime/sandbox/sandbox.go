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
//	s, err := sandbox.New(sandbox.Options{Mode: sandbox.Required})
//	p, err := s.Start(ctx, sandbox.Spec{Argv: argv, Read: []string{dir}, Scratch: scratch}, stdin, stdout, stderr)
//
// The caller that starts a program decides what it may read; see package process.
package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A Mode says what a program may be started without.
type Mode string

// The modes.
const (
	Required   Mode = "required"    // nothing: every wall stands, or the program is not started
	BestEffort Mode = "best-effort" // whatever the machine cannot enforce
	Off        Mode = "off"         // all walls
)

// Modes are all of them.
var Modes = []string{string(Required), string(BestEffort), string(Off)}

// Options say how a [Sandbox] works.
type Options struct {
	Dir  string // the launcher is kept here where the system cannot keep it in memory; os.TempDir by default
	Mode Mode   // Required by default

	// Standby keeps launchers waiting for the next programs, once one was started in a full cage. They make starts
	// faster and take memory: for hosts that stay.
	Standby bool

	// StartLimit is the time that the start of a program may take. Default: 2 s.
	StartLimit time.Duration

	// Notice is called once, at the first start of a program behind fewer walls than all,
	// with the list of its walls. It may be nil.
	Notice func(text string)
}

// A Sandbox starts programs. It is safe for concurrent use.
type Sandbox struct {
	opts    Options
	starter *starter
	cage    *cage // what only this system has

	told sync.Once // Notice

	mu     sync.Mutex // guards the report, and is held while it is made
	report *Report
	tried  time.Time // when the report was made
}

// New returns a sandbox. Nothing is tried yet. Close must be called.
func New(opts Options) (*Sandbox, error) {
	switch opts.Mode {
	case "":
		opts.Mode = Required
	case BestEffort, Off, Required:
	default:
		return nil, fmt.Errorf("sandbox is %q; it is one of %q", opts.Mode, Modes)
	}
	if opts.StartLimit == 0 {
		opts.StartLimit = startLimit
	}
	starter := newStarter(opts.StartLimit)
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

// retry is how long a report that lets nothing start is believed. What was
// missing may have been put right, or have been a machine that was too busy.
const retry = 10 * time.Second

// Report says what this machine can enforce. It is found out once, by starting
// something in a cage; where that fell short of what is required, again at a
// later start.
func (s *Sandbox) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	stale := s.report != nil && s.opts.Mode == Required && s.report.Level != Full && time.Since(s.tried) > retry
	if s.report == nil || stale {
		r := noReport("sandbox is off in mortise.yaml")
		if s.opts.Mode != Off {
			r = s.probe()
		}
		s.report, s.tried = &r, time.Now()
	}
	return *s.report
}

// Close ends the sandbox. Every process must have been waited for. It may be
// called again.
func (s *Sandbox) Close() error {
	s.cage.idle()
	s.starter.close()
	return s.cage.close()
}

// Start starts a program with the three files as its standard input, output
// and error, and returns once it runs. On an error nothing does.
func (s *Sandbox) Start(ctx context.Context, spec Spec, files Files) (*Process, error) {
	report := s.Report()
	if s.opts.Mode == Required && report.Level != Full {
		return nil, unavailable(report)
	}
	if spec.Proxy && !report.stands(LayerNet) {
		return nil, plugin.Errorf(plugin.CodeIsolationUnavailable,
			"a program that declares hosts starts in a network namespace of its own or not at all, and here it would have none: %s. 'mortise doctor' shows each wall", report.lacks())
	}
	s.tell(report)
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

// unavailable says which walls are missing, how to get them, and what to write
// to go on without.
func unavailable(r Report) error {
	return plugin.Errorf(plugin.CodeIsolationUnavailable,
		"plugins start in a complete sandbox or not at all, and this machine lacks %s. 'mortise doctor' shows each wall. "+
			"To run plugins without what is missing, write sandbox: best-effort in mortise.yaml", r.lacks())
}

// Tell has Notice told what a start would tell it, where the program is started
// by another process of the same host.
func (s *Sandbox) Tell() {
	if s.opts.Mode != Required {
		s.tell(s.Report())
	}
}

func (s *Sandbox) tell(r Report) {
	if r.Level != Full && s.opts.Notice != nil {
		s.told.Do(func() { s.opts.Notice(s.notice(r)) })
	}
}

// notice says what plugins run without.
func (s *Sandbox) notice(r Report) string {
	if s.opts.Mode == Off {
		return "sandbox is off in mortise.yaml: plugins run without a sandbox, with all rights of this user"
	}
	return fmt.Sprintf("sandbox: plugins run at isolation level %s; this machine lacks %s. 'mortise doctor' shows each wall", r.Level, r.lacks())
}
