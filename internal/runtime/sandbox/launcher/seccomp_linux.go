package launcher

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// denied are the system calls that no plugin needs and an attacker does. They
// fail as if it had no permission.
var denied = []uint32{
	// the network: a plugin asks the host
	unix.SYS_SOCKET, unix.SYS_BIND, unix.SYS_CONNECT, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	// a second way around the filter
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PIDFD_GETFD,
	unix.SYS_KCMP, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
	// keys, programs in the kernel, its counters, its faults
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	// mounts and namespaces
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, openTreeAttr, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	// the machine
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
	// memory that no limit of a process counts, and what of it the host's own
	// processes share, which is found by number where there is no IPC namespace
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_MEMFD_SECRET,
}

// absent are system calls that this kernel does not have, for a plugin: what
// uses them has another way.
var absent = []uint32{
	unix.SYS_CLONE3, // its flags are behind a pointer, where no filter can look; C libraries fall back to clone
	// Memory that belongs to no process and no limit, and a file that can be
	// executed and was never looked at.
	unix.SYS_MEMFD_CREATE,
	// An exclusive lock needs no more than a file to read, so that one plugin
	// could hold up everything that locks a file which it was shown. What has
	// locks of its own in scratch (SQLite, LMDB) uses those of fcntl, and they are
	// exclusive for files only that may be written.
	unix.SYS_FLOCK,
}

// done are system calls that have nothing to do for a plugin, and would make the
// machine write all that it has not written yet.
var done = []uint32{unix.SYS_SYNC, unix.SYS_SYNCFS}

// lastCommand is the highest of fcntl that was looked at: F_SET_FILE_RW_HINT.
// Later ones, such as F_SETDELEG, do not exist for a plugin.
const lastCommand = 1038

const (
	openTreeAttr = 467 // newer than package unix
	lastCall     = 469 // the highest that was looked at; later ones do not exist for a plugin
	newSpaces    = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// Offsets in struct seccomp_data.
const (
	atCall = 0
	atArch = 4
	atArgs = 16 // 8 bytes each, the lower half first
)

const (
	answerAllow = unix.SECCOMP_RET_ALLOW
	answerKill  = unix.SECCOMP_RET_KILL_PROCESS
	answerPerm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	answerNone  = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	answerDone  = unix.SECCOMP_RET_ERRNO // with no error: it returns 0
)

func instruction(code uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no}
}

func load(offset uint32) unix.SockFilter {
	return instruction(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0)
}

func answer(k uint32) unix.SockFilter { return instruction(unix.BPF_RET|unix.BPF_K, k, 0, 0) }

// when answers k where the comparison holds of what was loaded last.
func when(comparison uint16, value, k uint32) []unix.SockFilter {
	return []unix.SockFilter{instruction(unix.BPF_JMP|comparison|unix.BPF_K, value, 0, 1), answer(k)}
}

// most is how many system calls are compared one after the other.
const most = 16

// among answers k to each of these system calls. The kernel asks a new filter about each call that it has, to know which
// ones it need not ask about again, so the calls are sorted and compared in groups: only the group that a call may be in is
// looked at.
func among(calls []uint32, k uint32) (code []unix.SockFilter) {
	groups := slices.Collect(slices.Chunk(slices.Sorted(slices.Values(calls)), most))
	slices.Reverse(groups) // the last group is made first, since each one but it passes over those behind it
	for _, group := range groups {
		n := uint8(len(group))
		one := []unix.SockFilter{instruction(unix.BPF_JMP|unix.BPF_JGT|unix.BPF_K, group[n-1], n+2, 0)} // to the next group
		for i, call := range group {
			one = append(one, instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, call, n-uint8(i), 0)) // to the answer
		}
		one = append(one, instruction(unix.BPF_JMP|unix.BPF_JA, uint32(len(code))+1, 0, 0), answer(k)) // behind all groups
		code = append(one, code...)
	}
	return code
}

// only judges one system call by its arguments: all of it, once the call is this one.
func only(call uint32, judge ...unix.SockFilter) []unix.SockFilter {
	return append([]unix.SockFilter{instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, call, 0, uint8(len(judge)))}, judge...)
}

// program returns the filter. With counted, the launcher counts the program's
// memory, which it can where that belongs to processes and scratch alone. With
// proxied, the program may connect to the host's proxy.
func program(counted, proxied bool) []unix.SockFilter {
	code := []unix.SockFilter{load(atArch), instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, auditArch, 1, 0), answer(answerKill), load(atCall)}
	code = append(code, when(unix.BPF_JGT, lastCall, answerNone)...) // that of x32 too
	refused := slices.DeleteFunc(slices.Concat(denied, deniedHere), func(call uint32) bool { return proxied && slices.Contains(clientCalls, call) })
	code = append(code, among(refused, answerPerm)...)
	code = append(code, among(absent, answerNone)...)
	code = append(code, among(done, answerDone)...)
	judged := func(argument uint32, checks ...[]unix.SockFilter) []unix.SockFilter {
		judge := []unix.SockFilter{load(atArgs + 8*argument)}
		for _, check := range checks {
			judge = append(judge, check...)
		}
		return judge
	}
	code = append(code, only(unix.SYS_CLONE, append(judged(0, when(unix.BPF_JSET, newSpaces, answerPerm)), answer(answerAllow))...)...)
	code = append(code, only(unix.SYS_SOCKETPAIR, pairs()...)...)
	// The limits of others; its own, which it calls 0, a process may lower.
	code = append(code, only(unix.SYS_PRLIMIT64, append(judged(0, when(unix.BPF_JEQ, 0, answerAllow)), answer(answerPerm))...)...)
	code = append(code, only(unix.SYS_PERSONALITY, append(judged(0, when(unix.BPF_JEQ, 0, answerAllow), when(unix.BPF_JEQ, 0xffffffff, answerAllow)), answer(answerPerm))...)...)
	code = append(code, only(unix.SYS_IOCTL, append(judged(1, when(unix.BPF_JEQ, unix.TIOCSTI, answerPerm), when(unix.BPF_JEQ, unix.TIOCLINUX, answerPerm)), answer(answerAllow))...)...)
	// A lease on a file blocks each process that opens it, for 45 seconds each time.
	code = append(code, only(unix.SYS_FCNTL, append(judged(1, when(unix.BPF_JEQ, unix.F_SETLEASE, answerPerm), when(unix.BPF_JEQ, unix.F_NOTIFY, answerPerm),
		when(unix.BPF_JGT, lastCommand, answerPerm)), answer(answerAllow))...)...)
	code = append(code, ownOnly()...)
	if proxied {
		code = append(code, clients()...)
	}
	if counted {
		code = append(code, only(unix.SYS_MMAP, ownMemory()...)...)
	}
	return append(code, answer(answerAllow))
}

// ownOnly lets a thread change how it is scheduled itself, which it calls 0, and
// no other: the launcher, which counts, has the program's own user.
func ownOnly() (code []unix.SockFilter) {
	self := func(argument uint32) []unix.SockFilter {
		return append([]unix.SockFilter{load(atArgs + 8*argument)}, when(unix.BPF_JEQ, 0, answerAllow)...)
	}
	for _, call := range []uint32{unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY} {
		code = append(code, only(call, append(self(0), answer(answerPerm))...)...)
	}
	for call, process := range map[uint32]uint32{unix.SYS_SETPRIORITY: unix.PRIO_PROCESS, unix.SYS_IOPRIO_SET: ioprioProcess} {
		judge := []unix.SockFilter{load(atArgs), instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, process, 1, 0), answer(answerPerm)}
		code = append(code, only(call, append(append(judge, self(1)...), answer(answerPerm))...)...)
	}
	return code
}

// ioprioProcess is IOPRIO_WHO_PROCESS.
const ioprioProcess = 1

// ownMemory refuses memory that is shared and has no file: it stays when it is
// no longer mapped, or not shown as resident, and then no process has it.
func ownMemory() []unix.SockFilter {
	const shared = unix.MAP_SHARED | unix.MAP_ANONYMOUS
	return append([]unix.SockFilter{load(atArgs + 8*3), instruction(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, shared, 0, 0)},
		append(when(unix.BPF_JEQ, shared, answerPerm), answer(answerAllow))...)
}

// pairs judges socketpair: a pair that is connected and stays so. One of
// datagrams could send to any socket of the host that has a path.
func pairs() []unix.SockFilter {
	code := []unix.SockFilter{
		load(atArgs), instruction(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.AF_UNIX, 1, 0), answer(answerPerm),
		load(atArgs + 8), instruction(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf, 0, 0), // without SOCK_CLOEXEC and SOCK_NONBLOCK
	}
	code = append(code, when(unix.BPF_JEQ, unix.SOCK_STREAM, answerAllow)...)
	code = append(code, when(unix.BPF_JEQ, unix.SOCK_SEQPACKET, answerAllow)...)
	return append(code, answer(answerPerm))
}

// filter puts the filter before every thread and tries what it denies. A
// kernel without seccomp is no error.
func filter(counted, proxied bool) (wire.Layer, error) {
	layer := wire.Layer{Name: "seccomp"}
	code := program(counted, proxied)
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	failed, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errors.Is(errno, unix.ENOSYS) || errors.Is(errno, unix.EINVAL) {
		layer.Why = "the kernel does not offer it (CONFIG_SECCOMP_FILTER)"
		return layer, nil
	}
	if errno != 0 || failed != 0 {
		return layer, fmt.Errorf("loading the filter: %w (thread %d)", errno, failed)
	}
	tries := []struct {
		name string
		want unix.Errno
		call func() unix.Errno
	}{
		{"socket", unix.EPERM, func() unix.Errno { return raw(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0) }},
		{"a socket of datagrams", unix.EPERM, func() unix.Errno { return raw(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM, 0) }},
		{"a socket of IPv6", unix.EPERM, func() unix.Errno { return raw(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM, 0) }},
		{"bind", unix.EPERM, func() unix.Errno { return raw(unix.SYS_BIND, ^uintptr(0), 0, 0) }},
		{"unshare", unix.EPERM, func() unix.Errno { return raw(unix.SYS_UNSHARE, 0, 0, 0) }},
		{"ptrace", unix.EPERM, func() unix.Errno { return raw(unix.SYS_PTRACE, ^uintptr(0), 0, 0) }},
		{"io_uring_setup", unix.EPERM, func() unix.Errno { return raw(unix.SYS_IO_URING_SETUP, 0, 0, 0) }},
		{"clone3", unix.ENOSYS, func() unix.Errno { return raw(unix.SYS_CLONE3, 0, 0, 0) }},
		{"memfd_create", unix.ENOSYS, func() unix.Errno { return raw(unix.SYS_MEMFD_CREATE, 0, 0, 0) }},
		{"flock", unix.ENOSYS, func() unix.Errno { return raw(unix.SYS_FLOCK, ^uintptr(0), unix.LOCK_EX, 0) }},
		{"a lease", unix.EPERM, func() unix.Errno { return raw(unix.SYS_FCNTL, ^uintptr(0), unix.F_SETLEASE, unix.F_RDLCK) }},
		{"the priority of another", unix.EPERM, func() unix.Errno { return raw(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 1, 0) }},
		{"a call of the future", unix.ENOSYS, func() unix.Errno { return raw(lastCall+1, 0, 0, 0) }},
	}
	for _, try := range tries {
		if got := try.call(); got != try.want {
			layer.Why = fmt.Sprintf("%s answers %q", try.name, got.Error())
			return layer, nil
		}
	}
	layer.On = true
	return layer, nil
}

// raw makes a system call and returns its error.
func raw(trap, a, b, c uintptr) unix.Errno {
	_, _, errno := unix.RawSyscall(trap, a, b, c)
	return errno
}
