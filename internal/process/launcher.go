package process

import (
	"os/exec"
	"runtime"
	"sync"
)

// A launcher starts programs from one thread of the operating system that
// lives as long as the launcher: the kernel kills a child whose parent-death
// signal is set as soon as the thread that started it ends, so that no plugin
// outlives the host, however the host ends.
type launcher struct {
	jobs  chan launch
	stop  sync.Once
	done  chan struct{}
	stray sync.WaitGroup // starts that nobody waits for any more
}

type launch struct {
	cmd   *exec.Cmd
	reply chan error // buffered
}

func newLauncher() *launcher {
	l := &launcher{jobs: make(chan launch, 64), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	defer close(l.done)
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for job := range l.jobs {
		job.reply <- job.cmd.Start()
	}
}

// start starts cmd; its result arrives on the channel, also when nobody waits
// for it any more.
func (l *launcher) start(cmd *exec.Cmd) <-chan error {
	reply := make(chan error, 1)
	l.jobs <- launch{cmd, reply}
	return reply
}

// close ends the thread. Every child must have been reaped before.
func (l *launcher) close() {
	l.stray.Wait()
	l.stop.Do(func() { close(l.jobs) })
	<-l.done
}
