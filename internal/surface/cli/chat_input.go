package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/plugin"
)

// lines are what is typed, line by line. Nothing is read from a terminal before a
// line is there, so that others may ask something in between.
type lines struct {
	in   io.Reader
	most int // bytes of a line
	kept []byte
	end  error // why there is no more
}

// next returns the next line. The error is io.EOF once there are no more, and
// that of ctx once it has ended.
func (l *lines) next(ctx context.Context) (string, error) {
	for {
		if at := bytes.IndexByte(l.kept, '\n'); at >= 0 {
			line := string(l.kept[:at])
			l.kept = l.kept[at+1:]
			return line, nil
		}
		switch {
		case len(l.kept) > l.most:
			return "", plugin.Errorf(plugin.CodeInputTooLarge, "a message has at most %d bytes", l.most)
		case l.end != nil && len(l.kept) > 0:
			line := string(l.kept)
			l.kept = nil
			return line, nil
		case l.end != nil:
			return "", l.end
		}
		if err := l.wait(ctx); err != nil {
			return "", err
		}
		buf := make([]byte, 4096) // the longest line of a terminal
		n, err := l.in.Read(buf)
		l.kept = append(l.kept, buf[:n]...)
		if err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("reading what is typed: %w", err)
		}
		l.end = err
	}
}

// lookEvery is the polling interval of a wait for a line.
const lookEvery = 100 // milliseconds

// wait returns once there is something to read, or its context has ended.
func (l *lines) wait(ctx context.Context) error {
	file, isFile := l.in.(*os.File)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !isFile {
			return nil
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}, lookEvery)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for what is typed: %w", err)
		}
		if n > 0 {
			return nil
		}
	}
}

// stops are the signals that stop a turn, and that leave. One goroutine hears
// them; it has ended when close returns.
type stops struct {
	ctx   context.Context // until the user leaves
	leave context.CancelCauseFunc
	twice bool            // the first one stops the turn alone
	told  func(turn bool) // hears of a first one

	mu    sync.Mutex              // guards the two below
	first bool                    // there was one since the last line
	now   context.CancelCauseFunc // of the turn that goes on; nil for none

	signals chan os.Signal
	quit    chan struct{}
	done    chan struct{}
}

// hearStops hears signals in place of ctx, whose first one ends it.
func hearStops(ctx context.Context, twice bool, told func(turn bool)) *stops {
	s := &stops{twice: twice, told: told, signals: make(chan os.Signal, 4), quit: make(chan struct{}), done: make(chan struct{})}
	s.ctx, s.leave = context.WithCancelCause(context.WithoutCancel(ctx))
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.signals, syscall.SIGHUP)
	}
	if ctx.Err() != nil { // one that came before this listener was set up
		s.leave(context.Cause(ctx))
	}
	go func() {
		defer close(s.done)
		for {
			select {
			case <-s.quit:
				return
			case got := <-s.signals:
				s.heard(got)
			}
		}
	}()
	return s
}

func (s *stops) heard(got os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.twice || s.first || got != os.Interrupt {
		s.leave(context.Canceled)
		return
	}
	s.first = true
	if s.now != nil {
		s.now(errStopped)
	}
	s.told(s.now != nil)
}

// typed notes that the user typed a line: the next signal is a first one again.
func (s *stops) typed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = false
}

// turn returns what a turn goes on under, and what is to be called at its end.
func (s *stops) turn() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	s.mu.Lock()
	s.now = cancel
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		s.now = nil
		s.mu.Unlock()
		cancel(nil)
	}
}

func (s *stops) close() {
	signal.Stop(s.signals)
	close(s.quit)
	<-s.done
	s.leave(nil)
}
