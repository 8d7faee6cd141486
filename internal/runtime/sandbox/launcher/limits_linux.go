package launcher

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// launcherThreads is room for the threads of this process, which the kernel
// counts with the program's.
const launcherThreads = 16

// limit sets the limits that the kernel keeps for each process and user. In a
// user namespace of its own, each cage is counted by itself.
func limit(l wire.Limits) ([]wire.Layer, error) {
	type bound struct {
		name     string
		resource int
		max      uint64
	}
	// A core of one byte is none, and keeps a core_pattern that is a program from
	// being started as root with the plugin's memory, which 0 does not.
	bounds := []bound{{"core", unix.RLIMIT_CORE, 1}, {"msgqueue", unix.RLIMIT_MSGQUEUE, 0}, {"rtprio", unix.RLIMIT_RTPRIO, 0}, {"memlock", unix.RLIMIT_MEMLOCK, 8 << 20}}
	if l.OpenFiles > 0 {
		bounds = append(bounds, bound{"open files", unix.RLIMIT_NOFILE, uint64(l.OpenFiles)})
	}
	if l.FileSize > 0 {
		bounds = append(bounds, bound{"file size", unix.RLIMIT_FSIZE, uint64(l.FileSize)})
	}
	if l.CPU > 0 {
		bounds = append(bounds, bound{"cpu", unix.RLIMIT_CPU, uint64(l.CPU)})
	}
	if l.Processes > 0 {
		room := launcherThreads
		if !l.Watch { // the cgroup's limit comes first: it can be told afterwards
			room *= 2
		}
		bounds = append(bounds, bound{"processes", unix.RLIMIT_NPROC, uint64(l.Processes + room)})
	}
	if l.Watch && l.Memory > 0 { // between two looks; it counts what is mapped, which is more than what is used
		bounds = append(bounds, bound{"data", unix.RLIMIT_DATA, uint64(l.Memory) * 4})
	}
	layer := wire.Layer{Name: "resource limits", On: true}
	for _, b := range bounds {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(b.resource, &now); err != nil {
			return nil, fmt.Errorf("limit of %s: %w", b.name, err)
		}
		want := syscall.Rlimit{Cur: min(b.max, now.Max), Max: min(b.max, now.Max)}
		if b.resource == unix.RLIMIT_CPU && want.Max < now.Max {
			want.Max++ // the first is a signal that says why
		}
		if err := syscall.Setrlimit(b.resource, &want); err != nil {
			return nil, fmt.Errorf("limit of %s: %w", b.name, err)
		}
		if err := syscall.Getrlimit(b.resource, &now); err != nil || now != want {
			layer.On, layer.Why = false, "the limit of "+b.name+" did not hold"
		}
	}
	if layer.On && !limited() {
		layer.On, layer.Why = false, "a limit was set and did not hold"
	}
	return []wire.Layer{layer}, nil
}

// limited tries one more open file than the limit, which for that moment is none.
func limited() bool {
	var limit syscall.Rlimit
	if syscall.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || syscall.Setrlimit(unix.RLIMIT_NOFILE, &syscall.Rlimit{Max: limit.Max}) != nil {
		return false
	}
	fd, err := unix.Dup(wire.SpecFD)
	if err == nil {
		_ = unix.Close(fd)
	}
	return syscall.Setrlimit(unix.RLIMIT_NOFILE, &limit) == nil && errors.Is(err, unix.EMFILE)
}
