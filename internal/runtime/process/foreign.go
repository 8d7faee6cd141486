package process

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// ProxyAddress is where a program that has a proxy finds it.
var ProxyAddress = fmt.Sprintf("127.0.0.1:%d", sandbox.ProxyPort)

// A Foreign is what a program that speaks a protocol of its own has beside what plugins have.
type Foreign struct {
	Env   []string          // more variables
	Proxy bool              // a proxy at [ProxyAddress], and the certificates that the system trusts
	Log   func(line string) // hears the lines of its standard error
}

// authorities are where systems keep the certificates that they trust.
var authorities = []string{
	"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted",
	"/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/var/lib/ca-certificates",
}

// A Program is a plugin's program that speaks a protocol of its own: its owner writes to
// Stdin and reads from Stdout. Close must be called.
type Program struct {
	Stdin, Stdout *os.File

	Proxy net.Listener // at which its owner serves the proxy; nil for a program without one. Close closes it

	runner *Runner
	child  *child
}

// Program starts the program that a plugin's command names, in the sandbox and within the
// limits that every plugin has. The error is isolation_unavailable for one with a proxy where
// this machine gives it no network namespace.
func (r *Runner) Program(ctx context.Context, pkg plugin.Package, m *plugin.Manifest, f Foreign) (*Program, error) {
	if err := r.reserve(); err != nil {
		return nil, err
	}
	l, err := r.program(ctx, pkg, m)
	if err == nil {
		l.name, l.env, l.proxy = m.Name+"@"+m.Version, f.Env, f.Proxy
		if f.Proxy {
			l.read = append(l.read, existing(authorities)...)
		}
		var c *child
		if c, err = r.launch(ctx, l, f.Log); err == nil {
			return &Program{c.stdin, c.stdout, c.proc.Proxy(), r, c}, nil
		}
	}
	r.unreserve()
	return nil, err
}

func existing(paths []string) (there []string) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			there = append(there, path)
		}
	}
	return there
}

// Crashed returns an error with how the program ended and what it wrote to standard error, nil
// if it runs on.
func (p *Program) Crashed(what string) *plugin.Error {
	if !p.child.waitExit(p.child.graces.exit) {
		return nil
	}
	return p.child.crashed(what)
}

// Close ends the program and all that it started, and returns once they are gone.
func (p *Program) Close() {
	p.child.stop()
	p.runner.unreserve()
}
