package sandbox

import (
	"context"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// A starter starts programs from one thread of the operating system that lives
// as long as the starter: the kernel kills a child whose parent-death signal
// is set as soon as the thread that started it ends, so that no plugin
// outlives the host, however the host ends.
type starter struct {
	jobs  chan start
	stop  sync.Once
	done  chan struct{}
	stray sync.WaitGroup // starts that nobody waits for any more
}

type start struct {
	cmd   *exec.Cmd
	reply chan error // buffered
}

// startLimit is how long the start of a program may take.
const startLimit = 2 * time.Second

func newStarter() *starter {
	s := &starter{jobs: make(chan start, 64), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *starter) run() {
	defer close(s.done)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for job := range s.jobs {
		job.reply <- job.cmd.Start()
	}
}

// start starts cmd. When it is given up first, the program is ended as soon as
// it runs, and its error is typed.
func (s *starter) start(ctx context.Context, cmd *exec.Cmd) error {
	reply := make(chan error, 1)
	s.jobs <- start{cmd, reply}
	timer := time.NewTimer(startLimit)
	defer timer.Stop()
	var err error
	select {
	case err := <-reply:
		return err
	case <-ctx.Done():
		err = plugin.AsError(context.Cause(ctx))
	case <-timer.C:
		err = plugin.Errorf(plugin.CodeTimeout, "starting %s took longer than %s", cmd.Args[0], startLimit)
	}
	s.stray.Go(func() {
		if <-reply == nil {
			signalGroup(cmd, syscall.SIGKILL)
			_ = cmd.Wait()
		}
	})
	return err
}

// close ends the thread. Every child must have been reaped before.
func (s *starter) close() {
	s.stray.Wait()
	s.stop.Do(func() { close(s.jobs) })
	<-s.done
}
