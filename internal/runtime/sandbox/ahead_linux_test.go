package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/alive"
	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// Waiting returns the process ids of the launchers that wait, once none is being made.
func (s *Sandbox) Waiting() (pids []int) {
	a := &s.cage.ahead
	for range time.Tick(time.Millisecond) {
		a.mu.Lock()
		making := a.making
		pids = nil
		for _, k := range a.waiting {
			pids = append(pids, k.cmd.Process.Pid)
		}
		a.mu.Unlock()
		if !making {
			break
		}
	}
	return pids
}

// Keep has so many launchers wait.
func (s *Sandbox) Keep(n int) { s.cage.ahead.most = n }

// PID returns the number of the process's launcher.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ready returns a sandbox that has launchers waiting, and what starts a program in it.
func ready(t *testing.T) (s *Sandbox, start func(argv ...string) *Process) {
	t.Helper()
	s, err := New(Options{Dir: t.TempDir(), Mode: BestEffort, Standby: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if r := s.Report(); r.Level != Full {
		t.Skipf("this machine reaches level %s: %s", r.Level, r.lacks())
	}
	if got := s.Waiting(); len(got) != 0 {
		t.Fatalf("%v wait in a host that has started nothing", got)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	start = func(argv ...string) *Process {
		t.Helper()
		limits := Limits{Memory: 256 << 20, Scratch: 8 << 20, FileSize: 8 << 20, Processes: 64, OpenFiles: 64}
		var read []string
		for _, path := range []string{"/bin", "/usr/bin", "/lib", "/lib64", "/usr/lib"} {
			if _, err := os.Stat(path); err == nil {
				read = append(read, path)
			}
		}
		p, err := s.Start(t.Context(), Spec{Argv: argv, Read: read, Scratch: t.TempDir(), Limits: limits}, Files{null, null, null})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	over(t, start("/bin/true"))
	if got := s.Waiting(); len(got) != mostAhead {
		t.Fatalf("%v wait after the first start, want %d", got, mostAhead)
	}
	return s, start
}

func over(t *testing.T, p *Process) {
	t.Helper()
	if end := p.Wait(); !end.OK() {
		t.Error(end)
	}
	p.Release()
}

// gone waits until none of these processes is there.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		testwait.Until(t, "each launcher ends", func() bool { return !alive.Process(pid) })
	}
}

// Each program has a launcher of its own, all walls stand, and another one waits in its place.
func TestAProgramStartsInALauncherThatWaits(t *testing.T) {
	t.Parallel()
	s, start := ready(t)
	seen := map[int]bool{}
	for range 6 {
		waiting := s.Waiting()
		p := start("/bin/true")
		if !slices.Contains(waiting, p.PID()) {
			t.Errorf("launcher %d is none of those that waited, %v", p.PID(), waiting)
		}
		if seen[p.PID()] {
			t.Errorf("launcher %d had a program before", p.PID())
		}
		seen[p.PID()] = true
		if r := p.Report(); r.Level != Full {
			t.Errorf("the level is %s: %s", r.Level, r.lacks())
		}
		over(t, p)
		if got := s.Waiting(); len(got) != mostAhead || slices.Contains(got, p.PID()) {
			t.Errorf("%v wait after launcher %d had its program", got, p.PID())
		}
	}
}

// A launcher that has its program hears nothing more.
func TestALauncherTakesOneOrder(t *testing.T) {
	t.Parallel()
	_, start := ready(t)
	p := start("/bin/sleep", "0.3")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	second := &wire.Spec{Argv: []string{"/bin/touch", "second"}, Dir: "/tmp"}
	if err := p.caged.send(second, []*os.File{null, null, null}); err != nil {
		t.Fatal(err)
	}
	if end := p.Wait(); !end.OK() {
		t.Error(end)
	}
	for _, dir := range []string{".", "../tmp"} {
		if _, err := p.Scratch().Stat(filepath.Join(dir, "second")); err == nil {
			t.Error("a second program ran")
		}
	}
	p.Release()
}

// With more starts at a time than launchers wait, the others fork theirs, and no more wait afterwards than may.
func TestWaitingLaunchersAreBounded(t *testing.T) {
	t.Parallel()
	s, start := ready(t)
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() { over(t, start("/bin/true")) })
	}
	wg.Wait()
	if got := s.Waiting(); len(got) != mostAhead {
		t.Errorf("%v wait, want %d", got, mostAhead)
	}
}

// A launcher that ended while it waited is passed over.
func TestAWaitingLauncherThatWasKilledIsPassedOver(t *testing.T) {
	t.Parallel()
	s, start := ready(t)
	killed := s.Waiting()
	for _, pid := range killed {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
			t.Fatal(err)
		}
	}
	p := start("/bin/true")
	if slices.Contains(killed, p.PID()) || p.Report().Level != Full {
		t.Errorf("launcher %d of %v at level %s", p.PID(), killed, p.Report().Level)
	}
	over(t, p)
	gone(t, killed...)
	if got := s.Waiting(); len(got) != mostAhead {
		t.Errorf("%v wait, want %d", got, mostAhead)
	}
}

// A launcher that waits has the mounts of when it was forked. If they have changed, it is not used.
func TestAChangeOfMountsDropsWhatWaits(t *testing.T) {
	dir := t.TempDir()
	s, start := ready(t)
	before := s.Waiting()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("not run: nothing can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	p := start("/bin/true")
	if slices.Contains(before, p.PID()) {
		t.Errorf("launcher %d has the mounts of before", p.PID())
	}
	over(t, p)
	gone(t, before...)
	if got := s.Waiting(); len(got) != mostAhead {
		t.Errorf("%v wait, want %d", got, mostAhead)
	}
}

// What waits ends with its sandbox.
func TestWaitingLaunchersEndWithTheSandbox(t *testing.T) {
	t.Parallel()
	s, _ := ready(t)
	waiting := s.Waiting()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	gone(t, waiting...)
}

// A launcher holds nothing of the host's but its two channels, and stands in namespaces of its own, while it waits.
func TestWhatAWaitingLauncherHolds(t *testing.T) {
	t.Parallel()
	s, _ := ready(t)
	for _, pid := range s.Waiting() {
		proc := filepath.Join("/proc", strconv.Itoa(pid))
		fds, err := os.ReadDir(filepath.Join(proc, "fd"))
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			to, _ := os.Readlink(filepath.Join(proc, "fd", fd.Name()))
			usual := map[string]string{"0": "/dev/null", "1": "/dev/null", "2": "/dev/null"}[fd.Name()]
			kind := map[string]string{"3": "socket:*", "4": "pipe:*"}[fd.Name()]
			ours := to == "anon_inode:[eventpoll]" || to == "anon_inode:[eventfd]" // of its runtime
			if ok, _ := filepath.Match(kind, to); to != usual && !ok && !ours {
				t.Errorf("descriptor %s is %s", fd.Name(), to)
			}
		}
		for _, peer := range s.cage.peers {
			if own, err := os.Readlink(filepath.Join(proc, "ns", peer.Name)); err != nil || own == peer.ID {
				t.Errorf("its %s namespace is %s, the host's: %v", peer.Name, own, err)
			}
		}
	}
}
