package sandbox

import (
	"context"
	"errors"
	"os/exec"
	"syscall"

	"github.com/mortise-dev/mortise/plugin"
)

// startPlain starts a program without a cage: in a session of its own,
// with an environment and a directory of its own, and nothing else.
func (s *Sandbox) startPlain(ctx context.Context, spec Spec, files Files) (*Process, error) {
	cmd := command(spec.Argv[0], spec.Argv, spec.Env, files)
	cmd.Dir = spec.Scratch
	prepare(cmd)
	if err := s.starter.start(ctx, cmd, cmd.Start, func() {}); err != nil {
		return nil, launchFailed(spec, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go p.reap()
	return p, nil
}

func command(path string, argv, env []string, files Files) *exec.Cmd {
	if env == nil {
		env = []string{} // not the host's own
	}
	return &exec.Cmd{Path: path, Args: argv, Env: env, Stdin: files.Stdin, Stdout: files.Stdout, Stderr: files.Stderr}
}

// launchFailed gives an error that has no code yet the usual one.
func launchFailed(spec Spec, err error) error {
	var typed *plugin.Error
	if errors.As(err, &typed) {
		return err
	}
	return plugin.Errorf(plugin.CodeLaunchFailed, "starting %s: %w", spec.Argv[0], err)
}

// reap waits for the end of the process, kills whatever it left behind in its
// group, and learns how it ended.
func (p *Process) reap() {
	// A launcher that has seen the last process of its namespace end says so. What is left of it are mounts and
	// namespaces that the kernel takes down, for which nothing but the next one has to wait.
	early := p.caged != nil && p.caged.finished(&p.end)
	if early {
		close(p.done)
		signalGroup(p.cmd, syscall.SIGKILL)
	}
	awaitExit(p.cmd)
	signalGroup(p.cmd, syscall.SIGKILL)
	_ = p.cmd.Wait()
	if !early {
		p.end.Exit = p.cmd.ProcessState.ExitCode()
		if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			p.end.Signal = status.Signal()
		}
		if p.caged != nil {
			p.caged.ended(&p.end)
		}
		close(p.done)
	}
	if p.caged != nil {
		p.caged.release()
	}
}
