package launcher

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// memoryOf are the lines of /proc/PID/status that are a process's own memory:
// what it wrote, where that was swapped out, its huge pages, and the tables that
// map it all. Memory that is shared is in scratch, whose file system says how
// much it holds; any other the filter refuses.
var memoryOf = []string{"RssAnon:", "VmSwap:", "HugetlbPages:", "VmPTE:"}

// count returns the memory of all processes but our own, of what waits in their
// sockets, and the number of their threads.
func count() (bytes int64, threads int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, 0, err
	}
	seen := false
	for _, entry := range entries {
		switch pid, err := strconv.Atoi(entry.Name()); {
		case err != nil:
		case pid == 1:
			seen = true
		default:
			memory, its := status(entry.Name())
			bytes, threads = bytes+memory, threads+its
		}
	}
	if !seen {
		return 0, 0, errors.New("/proc does not show the processes of this sandbox")
	}
	return bytes + queued(), threads, nil
}

// status returns the memory of a process and the number of its threads, 0 where
// it has ended.
func status(pid string) (bytes int64, threads int) {
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(fields[1], 10, 64)
		for _, name := range memoryOf {
			if fields[0] == name {
				bytes += n << 10
			}
		}
		if fields[0] == "Threads:" {
			threads += int(n)
		}
	}
	return bytes, threads
}

// What may wait in a socket, and how many are taken to be empty: a program that
// uses a few for its own threads sends little.
const (
	inSocket    = 416 << 10
	fewSockets  = 64
	socketsUsed = "sockets: used "
)

// queued returns what the sockets of the program may hold, which is in no
// process. There are none but pairs within the sandbox.
func queued() int64 {
	raw, err := os.ReadFile("/proc/1/net/sockstat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	n, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(line, socketsUsed)), 10, 64)
	return max(0, n-fewSockets) * inSocket
}

// hold takes wire.Held bytes of memory, all of them written to.
func hold() ([]byte, error) {
	held, err := unix.Mmap(-1, 0, wire.Held, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("taking memory to see it counted: %w", err)
	}
	return held, nil
}

// counters are the limits of the whole tree as far as this process keeps them:
// each is tried, and without a cgroup both are kept here.
func counters(spec *wire.Spec) []wire.Layer {
	if !spec.Limits.Watch {
		return nil
	}
	memory, processes := wire.Layer{Name: "memory limit"}, wire.Layer{Name: "process limit"}
	if !spec.Fresh {
		memory.Why = "there is no PID namespace in which to count"
		processes.Why = memory.Why
		return []wire.Layer{memory, processes}
	}
	if err := seen(); err != nil {
		memory.Why = err.Error()
	} else {
		memory.On, memory.Why = true, "each process is bounded by the kernel, the tree is counted by the launcher 50 times a second"
	}
	if err := bounded(); err != nil {
		processes.Why = err.Error()
	} else {
		processes.On, processes.Why = true, "bounded for the user of each cage"
	}
	return []wire.Layer{memory, processes}
}

// seen takes memory and looks whether the count rises by it, and whether memory
// that it would not see is refused.
func seen() error {
	if _, _, err := count(); err != nil {
		return fmt.Errorf("%w; a container hides parts of /proc, and then no other can be mounted: show all of it (podman: --security-opt unmask=ALL, "+
			"docker: --security-opt systempaths=unconfined, Kubernetes: procMount: Unmasked), or give the host a cgroup of its own", err)
	}
	before, _ := status("1")
	held, err := hold()
	if err != nil {
		return err
	}
	after, _ := status("1")
	_ = unix.Munmap(held)
	if after-before < wire.Held/2 {
		return fmt.Errorf("%d bytes were taken, and /proc shows %d more than before", wire.Held, after-before)
	}
	shared, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err == nil {
		_ = unix.Munmap(shared)
		return errors.New("memory that is shared and has no file can be had, and is not seen")
	}
	return nil
}

// bounded tries to have one process more than the limit of processes, which for
// that moment is one.
func bounded() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return err
	}
	if err := syscall.Setrlimit(unix.RLIMIT_NPROC, &syscall.Rlimit{Cur: 1, Max: limit.Max}); err != nil {
		return err
	}
	// CLONE_VFORK: this thread goes on when the child, if there is one, has ended.
	child, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|unix.CLONE_VFORK, 0, 0, 0, 0, 0)
	if errno == 0 && child == 0 {
		for {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	if err := syscall.Setrlimit(unix.RLIMIT_NPROC, &limit); err != nil {
		return err
	}
	if errno == 0 {
		_, _ = unix.Wait4(int(child), nil, 0, nil)
		return errors.New("the limit of processes does not hold for this user")
	}
	if errno != unix.EAGAIN {
		return fmt.Errorf("a process more than the limit: %w", errno)
	}
	return nil
}
