package sessionhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/plugin"
)

// A Starter knows how to start a session host.
type Starter struct {
	Place
	Identity string   // a session host with another is replaced
	Command  []string // the program and its arguments
	Env      []string // its environment

	Wait time.Duration // how long the whole may take; 10 s where it is 0
}

// Connect returns a client of the host of a session, which it starts where none
// listens. started reports that it did. Of several who want to start one at the
// same time, one does.
func (s *Starter) Connect(ctx context.Context) (client *Client, started bool, err error) {
	wait := s.Wait
	if wait == 0 {
		wait = 10 * time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, plugin.Errorf(plugin.CodeTimeout, "the process of session %s was not ready within %s", s.Session, wait))
	defer cancel()
	base, err := s.base()
	if err != nil {
		return nil, false, err
	}
	client = newClient(base+socketFile, s.Session)
	if fits, err := s.fits(ctx, client); fits || err != nil {
		return client, false, err
	}
	turn, err := s.turn(ctx, base+startFile)
	if err != nil {
		return nil, false, err
	}
	defer turn.Remove()
	if fits, err := s.fits(ctx, client); fits || err != nil { // another process was faster
		return client, false, err
	}
	if err := s.start(ctx, base, client); err != nil {
		return nil, false, err
	}
	return client, true, nil
}

// fits reports whether the right session host listens. One that is not right is told
// to end.
func (s *Starter) fits(ctx context.Context, client *Client) (bool, error) {
	said, err := client.hello(ctx)
	var refused *plugin.Error
	switch {
	case errors.As(err, &refused):
		return false, err
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, nil
	case said.Identity != s.Identity || said.Session != s.Session:
		_ = client.ask(ctx, pathEnd, ending{}, &struct{}{}) // what it is at work on, it may finish
		return false, nil
	}
	return true, nil
}

// turn waits until no other process starts a session host.
func (s *Starter) turn(ctx context.Context, path string) (*filelock.Lock, error) {
	for {
		lock, err := filelock.Try(path)
		if lock != nil || err != nil {
			return lock, err
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// start starts a session host that outlives this process, and waits until it answers.
func (s *Starter) start(ctx context.Context, base string, client *Client) error {
	failed := func(format string, args ...any) error {
		return plugin.Errorf(plugin.CodeLaunchFailed, "the process of session "+s.Session+" could not be started: "+format, args...)
	}
	log, err := os.OpenFile(base+logFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return failed("%w", err)
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return failed("%w", err)
	}
	defer null.Close()
	cmd := exec.Command(s.Command[0], s.Command[1:]...)
	cmd.Dir, cmd.Env = s.Home, s.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no signal of our terminal reaches it
	if err := cmd.Start(); err != nil {
		return failed("%w", err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }() // ends with the session host, or with this process
	for {
		fits, err := s.fits(ctx, client)
		switch {
		case fits:
			return nil
		case err != nil:
			_ = cmd.Process.Kill()
			return err
		}
		select {
		case err := <-exited:
			return failed("%s%s", ended(err), lastWords(base+logFile))
		case <-time.After(lockEvery):
		}
	}
}

func ended(err error) string {
	if err == nil {
		return "it ended at once"
	}
	return err.Error()
}

// lastWords returns the last line of a session host's log.
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

// endTime is how long a session host may take to end when it is told to.
const endTime = stopTime + 3*time.Second

// Forget ends the session host of a session that is deleted, and takes away all that
// tells of it.
func Forget(ctx context.Context, p Place) error {
	if err := End(ctx, p); err != nil {
		return err
	}
	base, err := p.base()
	if err != nil {
		return err
	}
	if err := os.Remove(base + seenFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// End ends the session host of a session, and returns once it is gone. Calls under way
// are cancelled. Where there is no session host, nothing happens.
func End(ctx context.Context, p Place) error {
	base, err := p.base()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, endTime, plugin.Errorf(plugin.CodeTimeout, "the process of session %s has not ended within %s", p.Session, endTime))
	defer cancel()
	client := newClient(base+socketFile, p.Session)
	told := client.ask(ctx, pathEnd, ending{Now: true}, &struct{}{})
	for {
		lock, err := filelock.Try(base + lockFile)
		if err != nil {
			return err
		}
		if lock != nil {
			_ = os.Remove(base + socketFile)
			_ = os.Remove(base + logFile)
			lock.Remove()
			return nil
		}
		select {
		case <-time.After(lockEvery):
		case <-ctx.Done():
			if told != nil {
				return errors.Join(context.Cause(ctx), told)
			}
			return context.Cause(ctx)
		}
		if told != nil { // it was just about to listen
			told = client.ask(ctx, pathEnd, ending{Now: true}, &struct{}{})
		}
	}
}
