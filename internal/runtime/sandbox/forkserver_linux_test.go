package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// forkServerOf returns a sandbox that has a fork server, and its level.
func forkServerOf(t *testing.T) (*Sandbox, Level) {
	t.Helper()
	s, err := New(Options{Dir: t.TempDir(), Mode: BestEffort})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	level := s.Report().Level
	if level == None {
		t.Skip("no cage can be built here: " + s.Report().lacks())
	}
	return s, level
}

// A fork server that was killed is replaced by the next start.
func TestAForkServerThatEndedIsReplaced(t *testing.T) {
	t.Parallel()
	s, level := forkServerOf(t)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		before := s.cage.forks.cmd.Process
		if err := before.Signal(sig); err != nil {
			t.Fatal(err)
		}
		_, _ = before.Wait()
		if r, _ := s.try(); r.Level != level {
			t.Errorf("after %v the level is %s: %s", sig, r.Level, r.lacks())
		}
		if s.cage.forks.cmd.Process == before {
			t.Errorf("after %v it is the same fork server", sig)
		}
	}
}

// One that does not answer is given up with the start that waited for it, and its late
// answer is dropped.
func TestAForkServerThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	s, level := forkServerOf(t)
	hanging := s.cage.forks.cmd.Process
	if err := hanging.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// The signal takes effect after it is sent: a server that still runs would fork.
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, hanging.Pid, &info, unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, _, err := s.cage.forks.fork(ctx, wire.Fork{}, null, null, null, null); err == nil {
		t.Error("the launcher was forked")
	}
	null.Close()                                            // the caller that gave up closes its files
	for r, _ := s.try(); r.Level != level; r, _ = s.try() { // the first may have to wait for too long
		if time.Since(begun) > testwait.Limit {
			t.Fatalf("the level is %s: %s", r.Level, r.lacks())
		}
	}
	if s.cage.forks.cmd.Process == hanging {
		t.Error("it is the same fork server")
	}
}

// A cgroup that takes processes and limits and counts nothing is not believed:
// the launcher counts.
func TestACgroupThatCountsNothingIsNotUsed(t *testing.T) {
	t.Parallel()
	s, level := forkServerOf(t)
	if level != Full {
		t.Skip("this machine reaches level " + string(level))
	}
	dir := t.TempDir()
	group := filepath.Join(dir, "p1")
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"cgroup.procs", "pids.max", "pids.current", "pids.events", "memory.limit_in_bytes", "memory.usage_in_bytes"} {
		if err := os.WriteFile(filepath.Join(group, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.cage.reaping.Wait() // the launcher of the first report gives its own group back
	s.cage.groups = &cgroups{opened: true, pids: dir, memory: dir}
	r, err := s.try()
	if err != nil || r.Level != Full {
		t.Fatalf("%s %v: %s", r.Level, err, r.lacks())
	}
	for _, l := range r.Layers {
		if (l.Name == LayerMemory || l.Name == LayerProcesses) && !strings.Contains(l.Why, "its cgroup counts no memory") {
			t.Errorf("%s: %s", l.Name, l.Why)
		}
	}
}

// What the kernel refuses is told by its number, and leaves nothing behind.
func TestAForkThatFails(t *testing.T) {
	t.Parallel()
	s, _ := forkServerOf(t)
	n := s.cage.forks
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	twice := []wire.Mapping{{Inside: 0, Outside: os.Getuid()}, {Inside: 0, Outside: os.Getuid()}}
	for name, req := range map[string]wire.Fork{
		"flags that do not go together": {Flags: unix.CLONE_THREAD},
		"a user who is there twice":     {Flags: unix.CLONE_NEWUSER, Users: twice, Groups: twice},
	} {
		for range 5 {
			if _, _, err := n.fork(t.Context(), req, null, null, null, null); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	testwait.Until(t, "every dead process is reaped", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.reap(n.cmd.Process.Pid)
		return len(dead(t, n.cmd.Process.Pid)) == 0
	})
}

// dead returns the zombies of a group of processes.
func dead(t *testing.T, group int) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		text, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 2 && f[0] == "Z" && f[2] == fmt.Sprint(group) {
			pids = append(pids, path)
		}
	}
	return pids
}
