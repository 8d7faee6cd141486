// Package selftest runs the contract tests that a tool brings, behind the walls of its calls.
package selftest

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/base/rmtree"
	"github.com/mortise-dev/mortise/internal/runtime/interpreter"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
	"github.com/mortise-dev/mortise/plugin"
)

// Bounds of a run of contract tests.
const (
	contractTime   = 60 * time.Second
	contractBytes  = 4 << 20
	contractErrors = 16 << 10
)

// A Runner runs contract tests with what a host runs plugins with.
type Runner struct {
	Interpreters *interpreter.Interpreters
	Sandbox      *sandbox.Sandbox
	Scratch      string   // the directory in which a run gets one of its own
	Hide         []string // directories that no plugin is shown
	Limits       sandbox.Limits
}

// Run runs the contract tests of an Event Mill tool, as far as they need its code, and
// returns the JSON object that they print.
func (r Runner) Run(ctx context.Context, pkg plugin.Package, m *plugin.Manifest) ([]byte, error) {
	argv, err := r.Interpreters.Command(ctx, pkg, m)
	if err != nil {
		return nil, err
	}
	boot := slices.IndexFunc(argv, func(argument string) bool { return strings.HasSuffix(argument, "_boot.py") })
	if boot < 0 {
		return nil, plugin.Errorf(plugin.CodeLaunchFailed, "%s: its code is no Python, so it has no contract tests", m.Name)
	}
	sdk := filepath.Dir(filepath.Dir(argv[boot]))
	argv = append(slices.Clone(argv[:boot]), filepath.Join(sdk, m.Contract.Shim, "_contract.py"), pkg.Dir, m.Name)
	reads, err := r.Interpreters.Reads(ctx, pkg, m, argv)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, contractTime)
	defer cancel()
	out, last, state, err := r.runToItsEnd(ctx, argv, append(reads, pkg.Dir))
	switch {
	case err != nil:
		return nil, plugin.Errorf(plugin.CodeLaunchFailed, "%s: its contract tests: %w", m.Name, err)
	case ctx.Err() != nil:
		return nil, plugin.Errorf(plugin.CodeTimeout, "%s: its contract tests did not end within %s", m.Name, contractTime)
	case state.Exceeded != "":
		return nil, plugin.Errorf(plugin.CodeLimitExceeded, "%s: its contract tests took more than the limit %s allows", m.Name, state.Exceeded)
	case len(out) > contractBytes:
		return nil, plugin.Errorf(plugin.CodeMalformedResponse, "%s: its contract tests printed more than %d bytes", m.Name, contractBytes)
	case len(out) == 0:
		return nil, plugin.Errorf(plugin.CodeCrashed, "%s: its contract tests ended without a word (%s): %s", m.Name, state, strings.TrimSpace(string(last)))
	}
	return out, nil
}

// runToItsEnd runs a program with nothing on its standard input and returns the
// beginning of what it printed and the end of what it said on standard error.
func (r Runner) runToItsEnd(ctx context.Context, argv, reads []string) (out, last []byte, state sandbox.State, err error) {
	scratch, err := os.MkdirTemp(r.Scratch, "contract-")
	if err != nil {
		return nil, nil, state, err
	}
	defer rmtree.Remove(scratch)
	var opened []*os.File
	defer func() {
		for _, f := range opened {
			_ = f.Close()
		}
	}()
	var ends [2][2]*os.File // standard output and error, where to read and where to write
	for i := range ends {
		if ends[i][0], ends[i][1], err = os.Pipe(); err != nil {
			return nil, nil, state, err
		}
		opened = append(opened, ends[i][0], ends[i][1])
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, state, err
	}
	opened = append(opened, nothing)
	p, err := r.Sandbox.Start(ctx, sandbox.Spec{
		Argv: argv, Read: reads, Scratch: scratch, Hide: r.Hide, Limits: r.Limits,
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "TZ=UTC", "HOME=" + scratch, "TMPDIR=" + scratch},
	}, sandbox.Files{Stdin: nothing, Stdout: ends[0][1], Stderr: ends[1][1]})
	if err != nil {
		return nil, nil, state, err
	}
	_ = ends[0][1].Close()
	_ = ends[1][1].Close()
	stop := context.AfterFunc(ctx, p.Kill)
	defer stop()
	var reading sync.WaitGroup
	reading.Go(func() {
		out, _ = io.ReadAll(io.LimitReader(ends[0][0], contractBytes+1))
		_, _ = io.Copy(io.Discard, ends[0][0])
	})
	reading.Go(func() { last = tailOf(ends[1][0], contractErrors) })
	state = p.Wait()
	for i := range ends { // a grandchild that holds them open delays no reader
		_ = ends[i][0].SetReadDeadline(time.Now().Add(time.Second))
	}
	reading.Wait()
	p.Release()
	return out, last, state, nil
}

// tailOf reads to the end and returns the last so many bytes.
func tailOf(r io.Reader, most int) []byte {
	var kept []byte
	buffer := make([]byte, 4096)
	for {
		n, err := r.Read(buffer)
		kept = append(kept, buffer[:n]...)
		kept = kept[max(0, len(kept)-most):]
		if err != nil {
			return kept
		}
	}
}
