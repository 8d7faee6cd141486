//go:build linux && amd64

package main

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// signals are attempts to reach the processes of the host: to signal them or to
// change how they run. The victim reports what it gets.
var signals = []probe{
	{"signal.kill_victim", func(c canary.Config) result { return judge(unix.Kill(c.VictimPID, unix.SIGUSR1)) }},
	{"signal.kill_host", func(c canary.Config) result { return judge(unix.Kill(c.HostPID, 0)) }},
	{"signal.kill_host_group", func(c canary.Config) result { return judge(unix.Kill(-c.HostGroup, 0)) }},
	{"signal.kill_everyone", func(canary.Config) result { return judge(unix.Kill(-1, 0)) }},
	{"signal.kill_init", func(canary.Config) result { return judge(unix.Kill(1, 0)) }},
	{"signal.tkill", func(c canary.Config) result {
		return call(nil, unix.SYS_TKILL, uintptr(c.VictimPID), uintptr(unix.SIGUSR1))
	}},
	{"signal.tgkill", func(c canary.Config) result {
		return judge(unix.Tgkill(c.VictimPID, c.VictimPID, unix.SIGUSR1))
	}},
	{"signal.rt_sigqueueinfo", func(c canary.Config) result {
		info := queued()
		return call(nil, unix.SYS_RT_SIGQUEUEINFO, uintptr(c.VictimPID), uintptr(unix.SIGUSR1), pointer(&info))
	}},
	{"signal.rt_tgsigqueueinfo", func(c canary.Config) result {
		info := queued()
		return call(nil, unix.SYS_RT_TGSIGQUEUEINFO, uintptr(c.VictimPID), uintptr(c.VictimPID), uintptr(unix.SIGUSR1), pointer(&info))
	}},
	{"signal.pidfd_open", func(c canary.Config) result { return judge(closing(unix.PidfdOpen(c.VictimPID, 0))) }},
	{"signal.pidfd_send_signal", func(c canary.Config) result {
		fd, err := unix.PidfdOpen(c.VictimPID, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.PidfdSendSignal(fd, unix.SIGUSR1, nil, 0))
	}},
	{"signal.by_proc_directory", func(c canary.Config) result {
		// A directory of /proc serves as a pidfd.
		fd, err := unix.Open(victim(c, ""), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.PidfdSendSignal(fd, unix.SIGUSR1, nil, 0))
	}},
	{"signal.by_descriptor_owner", func(c canary.Config) result {
		// The owner of a pipe is signalled when something arrives in it, with a
		// SIGUSR2 here. Whether it was, only the victim can say.
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			return judge(err)
		}
		if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETOWN, c.VictimPID); err != nil {
			return judge(err)
		}
		if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETSIG, int(unix.SIGUSR2)); err != nil {
			return judge(err)
		}
		if _, err := unix.FcntlInt(uintptr(pipe[0]), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK); err != nil {
			return judge(err)
		}
		_, err := unix.Write(pipe[1], []byte("x"))
		return judge(err)
	}},
	{"signal.join_host_group", func(c canary.Config) result { return judge(unix.Setpgid(0, c.HostGroup)) }},
	{"signal.host_session", func(c canary.Config) result {
		_, err := unix.Getsid(c.HostPID)
		return judge(err)
	}},
	{"signal.host_limits", func(c canary.Config) result {
		var have unix.Rlimit
		return judge(unix.Prlimit(c.VictimPID, unix.RLIMIT_NOFILE, nil, &have))
	}},
	{"signal.host_limits_set", func(c canary.Config) result {
		same := unix.Rlimit{Cur: 1 << 30, Max: 1 << 30}
		return judge(unix.Prlimit(c.VictimPID, unix.RLIMIT_CPU, &same, nil))
	}},
	{"signal.host_affinity", func(c canary.Config) result {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(c.VictimPID, &set); err != nil {
			return judge(err)
		}
		return judge(unix.SchedSetaffinity(c.VictimPID, &set))
	}},
	{"signal.host_priority", func(c canary.Config) result { return judge(unix.Setpriority(unix.PRIO_PROCESS, c.VictimPID, 1)) }},
	{"signal.host_scheduler", func(c canary.Config) result {
		none := int32(0)
		return call(nil, unix.SYS_SCHED_SETSCHEDULER, uintptr(c.VictimPID), 3, pointer(&none)) // SCHED_BATCH
	}},
	{"signal.host_io_priority", func(c canary.Config) result {
		return call(nil, unix.SYS_IOPRIO_SET, 1, uintptr(c.VictimPID), 3<<13) // idle
	}},
	{"signal.host_robust_list", func(c canary.Config) result {
		var head, size uintptr
		return call(nil, unix.SYS_GET_ROBUST_LIST, uintptr(c.VictimPID), pointer(&head), pointer(&size))
	}},
	{"signal.host_move_pages", func(c canary.Config) result {
		return call([]unix.Errno{unix.EFAULT, unix.EINVAL}, unix.SYS_MOVE_PAGES, uintptr(c.VictimPID), 0, 0, 0, 0, 0)
	}},
	{"signal.host_migrate_pages", func(c canary.Config) result {
		nodes := uint64(1)
		return call(nil, unix.SYS_MIGRATE_PAGES, uintptr(c.VictimPID), 64, pointer(&nodes), pointer(&nodes))
	}},
	{"signal.host_advice", func(c canary.Config) result {
		fd, err := unix.PidfdOpen(c.VictimPID, 0)
		if err != nil {
			return judge(err)
		}
		area := unix.RemoteIovec{Base: uintptr(c.VictimAddr) &^ 4095, Len: 4096}
		return call([]unix.Errno{unix.EINVAL}, unix.SYS_PROCESS_MADVISE, uintptr(fd), pointer(&area), 1, unix.MADV_COLD, 0)
	}},
	{"signal.host_watched", func(c canary.Config) result {
		// Without being its parent, how another process ends is none of our business.
		fd, err := unix.PidfdOpen(c.HostPID, 0)
		if err != nil {
			return judge(err)
		}
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return judge(err)
	}},
}

// debugging are attempts to look into a process of the host, or to steer it.
var debugging = []probe{
	{"debug.ptrace_attach", func(c canary.Config) result {
		runtime.LockOSThread()
		if err := unix.PtraceAttach(c.VictimPID); err != nil {
			return judge(err)
		}
		_, _ = unix.Wait4(c.VictimPID, nil, unix.WALL, nil)
		return judge(unix.PtraceDetach(c.VictimPID))
	}},
	{"debug.ptrace_seize", func(c canary.Config) result {
		runtime.LockOSThread()
		return judge(unix.PtraceSeize(c.VictimPID))
	}},
	{"debug.ptrace_seize_init", func(canary.Config) result {
		runtime.LockOSThread()
		return judge(unix.PtraceSeize(1))
	}},
	{"debug.ptrace_sibling", func(canary.Config) result {
		// A debugger could steer another process of the cage around a filter.
		runtime.LockOSThread()
		return judge(unix.PtraceSeize(os.Getppid()))
	}},
	{"debug.process_vm_readv", func(c canary.Config) result {
		buffer := make([]byte, len(c.Secret))
		from := []unix.RemoteIovec{{Base: uintptr(c.VictimAddr), Len: len(buffer)}}
		to := []unix.Iovec{{Base: &buffer[0], Len: uint64(len(buffer))}}
		_, err := unix.ProcessVMReadv(c.VictimPID, to, from, 0)
		return judge(err)
	}},
	{"debug.process_vm_writev", func(c canary.Config) result {
		buffer := []byte(c.Secret)
		to := []unix.RemoteIovec{{Base: uintptr(c.VictimAddr), Len: len(buffer)}}
		from := []unix.Iovec{{Base: &buffer[0], Len: uint64(len(buffer))}}
		_, err := unix.ProcessVMWritev(c.VictimPID, from, to, 0)
		return judge(err)
	}},
	{"debug.kcmp", func(c canary.Config) result {
		return call(nil, unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(c.VictimPID), 2, 0, 0) // KCMP_FILES
	}},
	{"debug.pidfd_getfd", func(c canary.Config) result {
		fd, err := unix.PidfdOpen(c.VictimPID, 0)
		if err != nil {
			return judge(err)
		}
		return judge(closing(unix.PidfdGetfd(fd, 0, 0)))
	}},
	{"debug.perf_of_host", func(c canary.Config) result { return perf(c.VictimPID) }},
	{"debug.perf_of_self", func(canary.Config) result { return perf(0) }},
	{"debug.perf_of_machine", func(canary.Config) result {
		attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
		return judge(closing(unix.PerfEventOpen(&attr, -1, 0, -1, 0)))
	}},
	{"debug.trace_me", func(canary.Config) result { return call(nil, unix.SYS_PTRACE, unix.PTRACE_TRACEME) }},
}

func perf(pid int) result {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	return judge(closing(unix.PerfEventOpen(&attr, pid, -1, -1, 0)))
}

// siginfo is what rt_sigqueueinfo wants to see.
type siginfo struct {
	signo int32
	_     int32 // an error
	code  int32
	_     [116]byte
}

func queued() siginfo { return siginfo{signo: int32(unix.SIGUSR1), code: -1} } // SI_QUEUE

func pointer[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func addressOf(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }
