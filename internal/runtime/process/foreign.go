package process

import (
	"context"
	"os"

	"github.com/mortise-dev/mortise/plugin"
)

// A Program is a plugin's program that speaks a protocol of its own: its owner writes to
// Stdin and reads from Stdout. Close must be called.
type Program struct {
	Stdin, Stdout *os.File

	runner *Runner
	child  *child
}

// Program starts the program that a plugin's command names, in the sandbox and within the
// limits that every plugin has, with more variables in its environment. log hears the lines of
// its standard error.
func (r *Runner) Program(ctx context.Context, pkg plugin.Package, m *plugin.Manifest, env []string, log func(line string)) (*Program, error) {
	if err := r.reserve(); err != nil {
		return nil, err
	}
	l, err := r.program(ctx, pkg, m)
	if err == nil {
		l.name, l.env = m.Name+"@"+m.Version, env
		var c *child
		if c, err = r.launch(ctx, l, log); err == nil {
			return &Program{c.stdin, c.stdout, r, c}, nil
		}
	}
	r.unreserve()
	return nil, err
}

// Crashed returns an error with how the program ended and what it wrote to standard error, nil
// if it runs on.
func (p *Program) Crashed(what string) *plugin.Error {
	if !p.child.waitExit(exitGrace) {
		return nil
	}
	return p.child.crashed(what)
}

// Close ends the program and all that it started, and returns once they are gone.
func (p *Program) Close() {
	p.child.stop()
	p.runner.unreserve()
}
