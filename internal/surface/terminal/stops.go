package terminal

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Stops are the signals that stop a turn of a conversation, and that leave it. One
// goroutine hears them; it has ended when Close returns.
type Stops struct {
	Context context.Context // until the user leaves

	leave context.CancelCauseFunc
	o     StopOptions

	mu    sync.Mutex              // guards the two below
	first bool                    // there was one since the last line
	now   context.CancelCauseFunc // of the turn that goes on; nil for none

	signals chan os.Signal
	quit    chan struct{}
	done    chan struct{}
}

// StopOptions say what a signal does.
type StopOptions struct {
	Twice   bool            // the first one stops the turn alone
	Reason  error           // why a turn was stopped
	Stopped func(turn bool) // hears of a first one
}

// HearStops hears signals in place of ctx, whose first one ends it.
func HearStops(ctx context.Context, o StopOptions) *Stops {
	s := &Stops{o: o, signals: make(chan os.Signal, 4), quit: make(chan struct{}), done: make(chan struct{})}
	s.Context, s.leave = context.WithCancelCause(context.WithoutCancel(ctx))
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

func (s *Stops) heard(got os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.o.Twice || s.first || got != os.Interrupt {
		s.leave(context.Canceled)
		return
	}
	s.first = true
	if s.now != nil {
		s.now(s.o.Reason)
	}
	s.o.Stopped(s.now != nil)
}

// Typed notes that the user typed a line: the next signal is a first one again.
func (s *Stops) Typed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = false
}

// Turn returns what a turn goes on under, and what is to be called at its end.
func (s *Stops) Turn() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(s.Context)
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

// Close stops hearing them.
func (s *Stops) Close() {
	signal.Stop(s.signals)
	close(s.quit)
	<-s.done
	s.leave(nil)
}
