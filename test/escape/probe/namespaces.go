//go:build linux && amd64

package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// namespaces are attempts to have new namespaces, in which a process is its own root
// and reaches parts of the kernel that other processes cannot, and to enter those of
// the host.
var namespaces = []probe{
	{"ns.unshare_user", unshares(unix.CLONE_NEWUSER)},
	{"ns.unshare_mount", unshares(unix.CLONE_NEWNS)},
	{"ns.unshare_pid", unshares(unix.CLONE_NEWPID)},
	{"ns.unshare_net", unshares(unix.CLONE_NEWNET)},
	{"ns.unshare_ipc", unshares(unix.CLONE_NEWIPC)},
	{"ns.unshare_uts", unshares(unix.CLONE_NEWUTS)},
	{"ns.unshare_cgroup", unshares(unix.CLONE_NEWCGROUP)},
	{"ns.unshare_time", unshares(unix.CLONE_NEWTIME)},
	{"ns.unshare_user_and_mount", unshares(unix.CLONE_NEWUSER | unix.CLONE_NEWNS)},
	{"ns.clone_user", clones(unix.CLONE_NEWUSER)},
	{"ns.clone_mount", clones(unix.CLONE_NEWNS)},
	{"ns.clone_pid", clones(unix.CLONE_NEWPID)},
	{"ns.clone_net", clones(unix.CLONE_NEWNET)},
	{"ns.clone_user_and_net", clones(unix.CLONE_NEWUSER | unix.CLONE_NEWNET)},
	{"ns.clone_high_bits", clones(1<<63 | unix.CLONE_NEWUSER)},
	{"ns.clone3_user", clones3(unix.CLONE_NEWUSER)},
	{"ns.clone3_plain", clones3(0)},
	{"ns.clone3_into_cgroup", clones3(unix.CLONE_INTO_CGROUP)},
	{"ns.enter_init_mount", enters("/proc/1/ns/mnt", unix.CLONE_NEWNS)},
	{"ns.enter_init_pid", enters("/proc/1/ns/pid", unix.CLONE_NEWPID)},
	{"ns.enter_init_net", enters("/proc/1/ns/net", unix.CLONE_NEWNET)},
	{"ns.enter_init_user", enters("/proc/1/ns/user", unix.CLONE_NEWUSER)},
	{"ns.enter_init_ipc", enters("/proc/1/ns/ipc", unix.CLONE_NEWIPC)},
	{"ns.enter_init_uts", enters("/proc/1/ns/uts", unix.CLONE_NEWUTS)},
	{"ns.enter_init_cgroup", enters("/proc/1/ns/cgroup", unix.CLONE_NEWCGROUP)},
	{"ns.enter_host_mount", enters("/proc/HOST/ns/mnt", unix.CLONE_NEWNS)},
	{"ns.enter_host_pid", enters("/proc/HOST/ns/pid", unix.CLONE_NEWPID)},
	{"ns.enter_host_net", enters("/proc/HOST/ns/net", unix.CLONE_NEWNET)},
	{"ns.enter_host_user", enters("/proc/HOST/ns/user", unix.CLONE_NEWUSER)},
	{"ns.enter_host_ipc", enters("/proc/HOST/ns/ipc", unix.CLONE_NEWIPC)},
	{"ns.enter_host_uts", enters("/proc/HOST/ns/uts", unix.CLONE_NEWUTS)},
	{"ns.enter_host_cgroup", enters("/proc/HOST/ns/cgroup", unix.CLONE_NEWCGROUP)},
	{"ns.enter_own_net", enters("/proc/self/ns/net", 0)},
	{"ns.enter_by_pidfd", func(c canary.Config) result {
		fd, err := unix.PidfdOpen(c.VictimPID, 0)
		if err != nil {
			return judge(err)
		}
		runtime.LockOSThread()
		return judge(unix.Setns(fd, unix.CLONE_NEWNET|unix.CLONE_NEWIPC|unix.CLONE_NEWUTS))
	}},
	{"ns.owner_of_net", func(canary.Config) result {
		// The user namespace that owns the network one, which outside a cage is the host's.
		fd, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		owner, err := unix.IoctlRetInt(fd, unix.NS_GET_USERNS)
		if err != nil {
			return judge(err)
		}
		runtime.LockOSThread()
		return judge(unix.Setns(owner, unix.CLONE_NEWUSER), unix.EINVAL)
	}},
}

// unshares tries to leave namespaces.
func unshares(flags uintptr) func(canary.Config) result {
	return func(canary.Config) result { return judge(inChild(uintptr(unix.SIGCHLD), unix.SYS_UNSHARE, flags)) }
}

// clones tries to have a child in new namespaces, which ends at once.
func clones(flags uintptr) func(canary.Config) result {
	return func(canary.Config) result { return judge(inChild(flags|uintptr(unix.SIGCHLD), unix.SYS_GETPID)) }
}

// inChild makes one system call in a child with a single thread, as most of these
// calls want, and returns its error. The child shares nothing with the Go runtime
// but a copy of its memory, so it may make raw calls alone.
func inChild(flags, number uintptr, args ...uintptr) error {
	var a [5]uintptr
	copy(a[:], args)
	runtime.LockOSThread()
	pid, _, no := unix.RawSyscall6(unix.SYS_CLONE, flags, 0, 0, 0, 0, 0)
	if no == 0 && pid == 0 {
		_, _, no = unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], 0)
		unix.RawSyscall(unix.SYS_EXIT_GROUP, uintptr(no), 0, 0)
	}
	if no != 0 {
		return no
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(int(pid), &status, unix.WALL, nil); err != nil {
		return err
	}
	switch {
	case status.Signaled():
		return fmt.Errorf("killed: %s", status.Signal())
	case status.ExitStatus() != 0:
		return unix.Errno(status.ExitStatus())
	}
	return nil
}

// clones3 does the same with the younger call, whose flags no filter can read.
func clones3(flags uint64) func(canary.Config) result {
	return func(canary.Config) result {
		runtime.LockOSThread()
		arguments := [11]uint64{0: flags, 4: uint64(unix.SIGCHLD)}
		if flags&unix.CLONE_INTO_CGROUP != 0 {
			fd, err := unix.Open("/sys/fs/cgroup/unified", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				fd, err = unix.Open("/sys/fs/cgroup", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			}
			if err != nil {
				return judge(err)
			}
			arguments[10] = uint64(fd)
		}
		pid, _, no := unix.RawSyscall(unix.SYS_CLONE3, pointer(&arguments), 88, 0)
		if no == 0 && pid == 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if no != 0 {
			return judge(no)
		}
		_, _ = unix.Wait4(int(pid), nil, unix.WALL, nil)
		return allowed("child %d", pid)
	}
}

// enters tries to join a namespace. That it is one's own already (EINVAL) comes
// after the check.
func enters(path string, kind uintptr) func(canary.Config) result {
	return func(c canary.Config) result {
		fd, err := unix.Open(strings.Replace(path, "HOST", strconv.Itoa(c.HostPID), 1), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(inChild(uintptr(unix.SIGCHLD), unix.SYS_SETNS, uintptr(fd), kind), unix.EINVAL)
	}
}
