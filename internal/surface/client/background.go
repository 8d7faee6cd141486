package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/internal/base/socket"
	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/host/setup"
	"github.com/mortise-dev/mortise/internal/surface/rest"
	"github.com/mortise-dev/mortise/plugin"
)

// Times of a background host.
const (
	startTime = 10 * time.Second // for one to answer, and the one before it to end
	endTime   = 15 * time.Second // for one to end that is told to
	turnEvery = 10 * time.Millisecond
	endAsked  = 2 * time.Second // for one to hear that it is to end
)

// Ready is what a background host writes on its standard output once it listens.
const Ready = "ready\n"

// A starter starts the background host of a data directory: 'mortise serve --background', by
// this program.
type starter struct {
	Options
	program string // os.Executable where it is ""
	wait    time.Duration
}

// reach connects with the host that serves the data directory, and starts one in the
// background where none does. Of several that want to start one at the same time, one does.
func (s *starter) reach(ctx context.Context) (Host, error) {
	home, err := filepath.Abs(s.Home)
	if err != nil {
		return nil, err
	}
	if h, err := reachServing(ctx, home, s.Options); h != nil || err != nil {
		return h, err
	}
	if s.wait == 0 {
		s.wait = startTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.wait, plugin.Errorf(plugin.CodeTimeout, "the background host of %s was not ready within %s", home, s.wait))
	defer cancel()
	base, err := socket.Base(home, "run", "background")
	if err != nil {
		return nil, plugin.Errorf(plugin.CodeUnavailable, "no socket can be made for a background host: %w", err)
	}
	turn, err := s.turn(ctx, base+".start")
	if err != nil {
		return nil, err
	}
	defer turn.Remove()
	if h, err := reachServing(ctx, home, s.Options); h != nil || err != nil { // another process was faster
		return h, err
	}
	if err := setup.AwaitUnserved(ctx, home); err != nil { // one that ends
		return nil, err
	}
	if err := s.start(ctx, home, base+".log"); err != nil {
		return nil, err
	}
	h, err := reachServing(ctx, home, s.Options)
	if h == nil && err == nil {
		err = plugin.Errorf(plugin.CodeUnavailable, "the background host of %s ended at once; its log is %s.log", home, base)
	}
	return h, err
}

// turn waits until no other process starts a background host.
func (s *starter) turn(ctx context.Context, path string) (*filelock.Lock, error) {
	for {
		lock, err := filelock.Try(path)
		if lock != nil || err != nil {
			return lock, err
		}
		if host.Pause(ctx, turnEvery); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// start starts a host that outlives this process, and waits until it listens.
func (s *starter) start(ctx context.Context, home, logPath string) error {
	failed := func(format string, args ...any) error {
		return plugin.Errorf(plugin.CodeLaunchFailed, "the background host of "+home+" could not be started: "+format+"; its log is "+logPath, args...)
	}
	program := s.program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return failed("%w", err)
		}
	}
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return failed("%w", err)
	}
	defer log.Close()
	hears, says, err := os.Pipe()
	if err != nil {
		return failed("%w", err)
	}
	defer hears.Close()
	cmd := exec.Command(program, "serve", "--background", "--home", home)
	if s.Config != "" {
		config, err := filepath.Abs(s.Config)
		if err != nil {
			return failed("%w", err)
		}
		cmd.Args = append(cmd.Args, "--config", config)
	}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = home, s.environment(), says, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal of our terminal reaches it
	err = cmd.Start()
	_ = says.Close()
	if err != nil {
		return failed("%w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = hears.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	said, err := io.ReadAll(io.LimitReader(hears, int64(len(Ready))))
	switch {
	case string(said) == Ready:
		return cmd.Process.Release()
	case err != nil:
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return errors.Join(context.Cause(ctx), failed("%s", "it does not answer"))
	}
	ended := "it ended at once"
	if err := cmd.Wait(); err != nil {
		ended = err.Error()
	}
	return failed("%s%s", ended, lastWords(logPath))
}

// environment is that of this process without what is of one command line.
func (s *starter) environment() (env []string) {
	for _, pair := range os.Environ() {
		switch name, _, _ := strings.Cut(pair, "="); name {
		case "MORTISE_HOME", "MORTISE_AS", "MORTISE_TENANT", "MORTISE_SESSION", "MORTISE_CONFIG", "MORTISE_DATABASE", "MORTISE_SERVER", "MORTISE_TOKEN":
		default:
			env = append(env, pair)
		}
	}
	if s.Database != "" {
		env = append(env, "MORTISE_DATABASE="+s.Database) // there may be a password in it
	}
	return env
}

// lastWords returns the last line of a log.
func lastWords(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	raw, _ := io.ReadAll(io.LimitReader(file, 64<<10))
	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
	last := strings.ToValidUTF8(string(lines[len(lines)-1]), "\uFFFD")
	if last == "" {
		return ""
	}
	return fmt.Sprintf(": %.500s", last)
}

// replaced reports whether a background host is another than this command line would start,
// and has it end then: what it is at work on, it may finish.
func (r *remote) replaced(ctx context.Context, o Options) (bool, error) {
	mine, err := setup.Place{Home: r.who.Home, Config: o.Config, Database: o.Database}.Identity()
	if err != nil || mine == r.background {
		return false, err
	}
	return true, r.end(ctx)
}

// end tells a background host to end. One that is gone has ended.
func (r *remote) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endAsked)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base+rest.EndPath, nil)
	if err != nil {
		return err
	}
	res, err := r.http.Do(req)
	if err != nil {
		return nil //nolint:nilerr // it ends already, or is killed: the lock says when
	}
	return res.Body.Close()
}

// EndBackground ends the background host of a data directory, where there is one, and returns
// when it is gone. A host that serves otherwise is left alone.
func EndBackground(ctx context.Context, o Options) error {
	home, err := filepath.Abs(o.Home)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(home, setup.ServeLock)); err != nil {
		return nil // nothing ever served it, or nothing does
	}
	path, err := socket.Owner(home)
	if err != nil {
		return nil //nolint:nilerr // it is another user's: what follows says so
	}
	if pid, _ := setup.Serving(home); pid != 0 {
		r := overSocket(path, "", nil)
		r.who.Home = home
		if _ = r.meet(ctx); r.background == "" {
			return nil
		}
		if err := r.end(ctx); err != nil {
			return err
		}
	} else if !setup.Served(home) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, endTime, plugin.Errorf(plugin.CodeTimeout, "the background host of %s has not ended within %s; it is still at work", home, endTime))
	defer cancel()
	return setup.AwaitUnserved(ctx, home)
}
