package sandbox

import (
	"context"
	"sync"

	"golang.org/x/sys/unix"
)

// ahead keeps launchers that were forked before a program is there for them: they are in new namespaces and a cgroup, have
// begun to run, and wait for an order. Each takes one order and is gone with its program. Until then it holds an end of
// two channels to this host, and no file, path or name that is the matter of any program (ADR 0112).
type ahead struct {
	cage *cage
	most int // how many wait; 0 for a host that keeps none

	mu      sync.Mutex // guards the rest
	waiting []*caged
	making  bool
	closed  bool
	mounts  int // a descriptor of this host's mounts, by which a change of them is noticed; 0 before the first launcher
	changes int // that were noticed

	work sync.WaitGroup // the goroutine that makes launchers
}

// mostAhead is how many launchers wait: one for the next program, and one for the program after that while the first is
// replaced.
const mostAhead = 2

// take returns a launcher that waits, for this spec, or nil: then the caller forks one.
func (a *ahead) take(spec Spec) *caged {
	if spec.Proxy { // where the host is not root, its launcher needs one capability more
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checkLocked()
	for len(a.waiting) > 0 {
		k := a.waiting[0]
		a.waiting = a.waiting[1:]
		if k.waits() && (k.group == nil || k.group.bound(spec.Limits) == nil) {
			return k
		}
		k.drop()
	}
	return nil
}

// refill makes launchers until enough are waiting, behind the caller's back. The limits are a guess at the next program's.
func (a *ahead) refill(limits Limits) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.making || len(a.waiting) >= a.most {
		return
	}
	if a.mounts == 0 {
		// Not by package os, whose poller would be told of a change in place of checkLocked: the kernel tells once.
		mounts, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			a.most = 0 // without it, a launcher might not see what was mounted meanwhile
			return
		}
		a.mounts = mounts
	}
	a.making = true
	a.work.Go(func() { a.make(limits) })
}

func (a *ahead) make(limits Limits) {
	for {
		a.mu.Lock()
		before := a.changes
		a.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), a.cage.opts.StartLimit)
		k, err := a.cage.fork(ctx, limits, false)
		cancel()
		if err == nil && k.group != nil && !k.in {
			if err = k.join(); err != nil {
				k.drop()
			}
		}
		a.mu.Lock()
		switch {
		case err != nil:
		case a.changes == before:
			a.waiting = append(a.waiting, k)
		default:
			k.drop()
		}
		if err != nil || a.closed || len(a.waiting) >= a.most {
			a.making = false // an error is met again, and told, by the start that forks for itself
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
	}
}

// checkLocked drops all launchers if this host's mounts have changed: they have a copy of the mounts of before. The lock is held.
func (a *ahead) checkLocked() {
	if a.mounts == 0 {
		return
	}
	poll := []unix.PollFd{{Fd: int32(a.mounts), Events: unix.POLLPRI}}
	n, err := unix.Poll(poll, 0)
	if err == nil && n == 0 {
		return
	}
	a.changes++
	a.dropLocked()
}

func (a *ahead) dropLocked() {
	for _, k := range a.waiting {
		k.drop()
	}
	a.waiting = nil
}

// close ends all of them, and waits for the one that is being made.
func (a *ahead) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.work.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.dropLocked()
	if a.mounts != 0 {
		_ = unix.Close(a.mounts)
		a.mounts = 0
	}
}

// waits reports whether a launcher that was told nothing is still there.
func (k *caged) waits() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, k.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo == 0
}
