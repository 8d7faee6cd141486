package launcher

import (
	"bufio"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// passed are the signals that the program gets in our place.
var passed = []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT}

// supervise waits for the end of the program, reaps whatever else ends in the
// meantime, passes signals on, and ends everything as soon as the host is gone,
// or hangs up. All signals are sent from here, which is the thread that the
// program was started by: Landlock lets no other one of ours reach it.
func supervise(pid int, host *bufio.Reader, watch *watcher, signals <-chan os.Signal) wire.Ended {
	if os.Getpid() != 1 && alone { // or what the program started would outlive it
		_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGCONT), 0, 0, 0)
	}
	gone, over := make(chan struct{}), make(chan struct{}, 1)
	go func() {
		for {
			if _, err := host.ReadByte(); err != nil {
				close(gone)
				return
			}
		}
	}()
	go watch.run(func() { over <- struct{}{} })
	ended, empty := make(chan wire.Ended, 2), make(chan struct{})
	go reap(pid, watch, ended, empty)
	for {
		select {
		case sig := <-signals:
			_ = unix.Kill(-pid, sig.(syscall.Signal))
		case <-over:
			endAll(pid)
		case <-gone:
			endAll(pid)
			await(empty)
			_ = unix.Kill(os.Getpid(), unix.SIGKILL) // as the host would have done
			os.Exit(137)                             // the first process of a namespace is spared
		case end := <-ended:
			endAll(pid)
			if os.Getpid() != 1 {
				await(empty)
			}
			return end
		}
	}
}

// reap waits for all that ends, and says how the program did. It closes empty
// once nothing is left.
func reap(pid int, watch *watcher, ended chan<- wire.Ended, empty chan<- struct{}) {
	for {
		var status unix.WaitStatus
		var usage unix.Rusage
		got, err := unix.Wait4(-1, &status, 0, &usage)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			ended <- wire.Ended{Exit: 127} // no process listens if the program has ended
			close(empty)
			return
		case got == pid:
			end := wire.Ended{Exit: status.ExitStatus()}
			if status.Signaled() {
				end = wire.Ended{Exit: -1, Signal: int(status.Signal())}
			}
			end.Exceeded = watch.exceeded(end, &usage)
			end.Last = last()
			ended <- end
		}
	}
}

// last reports whether no process is left but this one: in a PID namespace, all others descend from it.
func last() bool {
	if os.Getpid() != 1 {
		return false
	}
	for {
		switch pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); {
		case errors.Is(err, unix.ECHILD):
			return true
		case err == nil && pid == 0:
			return false
		}
	}
}

// dying is how long is waited for processes that were killed.
const dying = 200 * time.Millisecond

func await(empty <-chan struct{}) {
	select {
	case <-empty:
	case <-time.After(dying):
	}
}

// endAll ends what can be reached from here: in a PID namespace everything but
// us. Elsewhere it is everything too where Landlock keeps our signals within
// the cage, and the program's group where it does not.
func endAll(pid int) {
	if os.Getpid() == 1 || alone {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
}

// A watcher knows which limit the program ran into, and counts where no
// cgroup does.
type watcher struct {
	limits wire.Limits
	hit    atomic.Pointer[string]
}

func newWatcher(spec *wire.Spec) *watcher { return &watcher{limits: spec.Limits} }

// look is how often the tree is counted: a program that takes memory as fast
// as it can gets some tens of MiB further.
const look = 20 * time.Millisecond

// maxBlind is how many looks in a row may see nothing, as where the machine has
// no descriptor left.
const maxBlind = 10

// run counts until the process ends, and ends the program over a limit.
func (w *watcher) run(end func()) {
	if !w.limits.Watch || os.Getpid() != 1 {
		return
	}
	blind := 0
	for range time.Tick(look) {
		memory, threads, err := count()
		if blind++; err == nil {
			blind = 0
		}
		switch {
		case blind >= maxBlind: // what cannot be counted cannot be bounded
			w.over("memory")
			end()
		case w.limits.Memory > 0 && memory+scratchUsed() > w.limits.Memory:
			w.over("memory")
			end()
		case w.limits.Processes > 0 && threads >= w.limits.Processes:
			w.over("processes")
		}
	}
}

func (w *watcher) over(limit string) { w.hit.CompareAndSwap(nil, &limit) }

// exceeded returns the limit that the end of the program comes from, as far
// as that can be told: not every program says why it gave up.
func (w *watcher) exceeded(e wire.Ended, usage *unix.Rusage) string {
	l := w.limits
	spent := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	switch hit := w.hit.Load(); {
	case e.Exit == 0 && e.Signal == 0:
		return ""
	case e.Signal == int(unix.SIGXCPU), l.CPU > 0 && spent >= time.Duration(l.CPU)*time.Second:
		return "cpu"
	case hit != nil:
		return *hit
	case l.Watch && l.Memory > 0 && usage.Maxrss<<10 >= l.Memory/10*9:
		return "memory"
	case e.Signal == int(unix.SIGXFSZ), l.FileSize > 0 && largestFile() >= l.FileSize:
		return "file_size"
	case scratchFull():
		return "scratch"
	}
	if l.Watch && l.Processes > 0 && os.Getpid() == 1 {
		if _, threads, err := count(); err == nil && threads >= l.Processes {
			return "processes"
		}
	}
	return ""
}

// scratchLeft is how many bytes may be left of a file system that is full: the kernel
// counts its blocks for each processor, and a write of many of them fails where a few are
// left.
const scratchLeft = 64 << 10

// scratchFull reports whether the program filled what it may write.
func scratchFull() bool {
	var st unix.Statfs_t
	return work >= 0 && unix.Fstatfs(work, &st) == nil && (int64(st.Bavail)*st.Bsize < scratchLeft || st.Ffree == 0)
}

// maxSeen is how many files are looked at to find the largest.
const maxSeen = 1000

// largestFile returns the size of the largest file that the program wrote and left.
func largestFile() (largest int64) {
	seen := 0
	for _, dir := range []string{".", "/tmp"} { // we are in scratch
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if seen++; seen > maxSeen {
				return fs.SkipAll
			}
			if err != nil || !entry.Type().IsRegular() {
				return nil
			}
			// What it may only read, as a file that is mounted for it, it did not write.
			if info, err := entry.Info(); err == nil && info.Size() > largest && unix.Access(path, unix.W_OK) == nil {
				largest = info.Size()
			}
			return nil
		})
	}
	return largest
}

// scratchUsed returns the bytes of what the program has written.
func scratchUsed() int64 {
	var st unix.Statfs_t
	if work < 0 || unix.Fstatfs(work, &st) != nil {
		return 0
	}
	return int64(st.Blocks-st.Bfree) * st.Bsize
}
