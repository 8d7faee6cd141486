package sandbox

import (
	"context"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A starter starts programs from one thread of the operating system that lives
// as long as the starter: the kernel kills a child whose parent-death signal
// is set as soon as the thread that started it ends, so that no plugin
// outlives the host, however the host ends.
type starter struct {
	limit time.Duration // of one start
	jobs  chan *start
	stop  sync.Once
	done  chan struct{}
	stray sync.WaitGroup // starts whose caller has given up
}

type start struct {
	begin func() error
	done  func()     // what begin needs may go; called once, whether it began or not
	reply chan error // buffered
	state atomic.Int32
}

// States of a start. One that was given up before it began never begins.
const (
	queued = iota
	begun
	abandoned
)

// startLimit is the default of [Options.StartLimit].
const startLimit = 2 * time.Second

func newStarter(limit time.Duration) *starter {
	s := &starter{limit: limit, jobs: make(chan *start, 64), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *starter) run() {
	defer close(s.done)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	coarsenTimers()
	for job := range s.jobs {
		if job.state.CompareAndSwap(queued, begun) {
			err := job.begin()
			job.done()
			job.reply <- err
		} else {
			job.done()
		}
	}
}

// start starts cmd, which begin does. When it is given up first, the program
// does not run or is ended as soon as it does, and the error is typed. What
// begin needs must last until done is called, which may be after start returns.
func (s *starter) start(ctx context.Context, cmd *exec.Cmd, begin func() error, done func()) error {
	job := &start{begin: begin, done: done, reply: make(chan error, 1)}
	timer := time.NewTimer(s.limit)
	defer timer.Stop()
	late := plugin.Errorf(plugin.CodeTimeout, "starting %s took longer than %s", cmd.Args[0], s.limit)
	select {
	case s.jobs <- job:
	case <-ctx.Done():
		done()
		return plugin.AsError(context.Cause(ctx))
	case <-timer.C:
		done()
		return late
	}
	select {
	case err := <-job.reply:
		return err
	case <-ctx.Done():
		gone := plugin.AsError(context.Cause(ctx))
		if job.state.CompareAndSwap(queued, abandoned) {
			return gone
		}
		select {
		case err := <-job.reply:
			if err == nil {
				s.stray.Go(func() { end(cmd) })
			}
			return gone
		case <-timer.C:
			late = gone
		}
	case <-timer.C:
		if job.state.CompareAndSwap(queued, abandoned) {
			return late
		}
	}
	s.stray.Go(func() {
		if <-job.reply == nil {
			end(cmd)
		}
	})
	return late
}

// end ends a program whose caller has given up.
func end(cmd *exec.Cmd) {
	signalGroup(cmd, syscall.SIGKILL)
	_ = cmd.Wait()
}

// close ends the thread. Every child must have been reaped before.
func (s *starter) close() {
	s.stray.Wait()
	s.stop.Do(func() { close(s.jobs) })
	<-s.done
}
