//go:build linux && amd64

package main

import (
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// kernel are attempts to use parts of the kernel that belong to the machine, or
// that attackers like for their bugs. Where an argument would do harm, a wrong one
// is given whose error comes after the permission check.
var kernel = []probe{
	{"kernel.keyctl", func(canary.Config) result {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
		return judge(err)
	}},
	{"kernel.keyctl_user_keyring", func(canary.Config) result {
		_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
		return judge(err)
	}},
	{"kernel.add_key", func(c canary.Config) result {
		_, err := unix.AddKey("user", c.Mark, []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return judge(err)
	}},
	{"kernel.request_key", func(c canary.Config) result {
		_, err := unix.RequestKey("user", c.Mark+"-none", "", unix.KEY_SPEC_PROCESS_KEYRING)
		return judge(err, unix.ENOKEY, unix.ENOENT)
	}},
	{"kernel.bpf_map", func(canary.Config) result {
		attr := [16]uint32{2, 4, 8, 1} // an array of one value
		return call(nil, unix.SYS_BPF, 0, pointer(&attr), 64)
	}},
	{"kernel.bpf_program", func(canary.Config) result {
		code := [2]uint64{0xb7, 0x95} // r0 = 0; exit
		license := [4]byte{'M', 'I', 'T'}
		attr := struct {
			kind, count    uint32
			code, license  uintptr
			level, size    uint32
			log            uintptr
			version, flags uint32
			name           [16]byte
			_              [64]byte
		}{kind: 1, count: 2, code: pointer(&code), license: pointer(&license)}
		r := call(nil, unix.SYS_BPF, 5, pointer(&attr), 72)
		runtime.KeepAlive(&code)
		return r
	}},
	{"kernel.bpf_list", func(canary.Config) result {
		var attr [4]uint32
		return call([]unix.Errno{unix.ENOENT}, unix.SYS_BPF, 11, pointer(&attr), 16) // next program
	}},
	{"kernel.userfaultfd", func(canary.Config) result { return call(nil, unix.SYS_USERFAULTFD, unix.O_CLOEXEC) }},
	{"kernel.userfaultfd_user_mode", func(canary.Config) result { return call(nil, unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1) }},
	{"kernel.kexec_load", func(canary.Config) result { return call(nil, unix.SYS_KEXEC_LOAD, 0, 0, 0, 0) }},
	{"kernel.kexec_file_load", func(canary.Config) result {
		return call([]unix.Errno{unix.EBADF}, unix.SYS_KEXEC_FILE_LOAD, ^uintptr(0), ^uintptr(0), 0, 0, 0)
	}},
	{"kernel.init_module", func(canary.Config) result {
		image := [64]byte{}
		return call([]unix.Errno{unix.ENOEXEC}, unix.SYS_INIT_MODULE, pointer(&image), 64, pointer(&image))
	}},
	{"kernel.finit_module", func(canary.Config) result {
		return call([]unix.Errno{unix.EBADF, unix.ENOEXEC}, unix.SYS_FINIT_MODULE, ^uintptr(0), 0, 0)
	}},
	{"kernel.delete_module", func(canary.Config) result {
		name := [8]byte{'n', 'o', 'n', 'e'}
		return call([]unix.Errno{unix.ENOENT}, unix.SYS_DELETE_MODULE, pointer(&name), 0)
	}},
	{"kernel.reboot", func(canary.Config) result {
		return judge(unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF)) // what three keys do, no more
	}},
	{"kernel.sethostname", func(canary.Config) result {
		have, err := os.Hostname()
		if err != nil {
			return judge(err)
		}
		return judge(unix.Sethostname([]byte(have)))
	}},
	{"kernel.setdomainname", func(canary.Config) result {
		var u unix.Utsname
		if err := unix.Uname(&u); err != nil {
			return judge(err)
		}
		return judge(unix.Setdomainname([]byte(unix.ByteSliceToString(u.Domainname[:]))))
	}},
	{"kernel.settimeofday", func(canary.Config) result {
		var zone [2]int32
		return call(nil, unix.SYS_SETTIMEOFDAY, 0, pointer(&zone)) // no time, and the obsolete time zone
	}},
	{"kernel.adjtimex", func(canary.Config) result {
		var t unix.Timex
		if _, err := unix.Adjtimex(&t); err != nil {
			return judge(err)
		}
		t.Modes = unix.ADJ_FREQUENCY // the same as before
		_, err := unix.Adjtimex(&t)
		return judge(err)
	}},
	{"kernel.iopl", func(canary.Config) result { return call(nil, unix.SYS_IOPL, 3) }},
	{"kernel.ioperm", func(canary.Config) result { return call(nil, unix.SYS_IOPERM, 0x80, 1, 1) }},
	{"kernel.modify_ldt", func(canary.Config) result {
		entry := [4]uint32{0, 0, 0xfffff, 1 | 1<<5}
		return call(nil, unix.SYS_MODIFY_LDT, 0x11, pointer(&entry), 16)
	}},
	{"kernel.no_randomization", func(canary.Config) result { return call(nil, unix.SYS_PERSONALITY, 0x0040000) }},
	{"kernel.read_implies_exec", func(canary.Config) result { return call(nil, unix.SYS_PERSONALITY, 0x0400000) }},
	{"kernel.map_page_zero", func(canary.Config) result { return call(nil, unix.SYS_PERSONALITY, 0x0100000) }},
	{"kernel.fanotify", func(canary.Config) result { return judge(closing(unix.FanotifyInit(unix.FAN_CLASS_CONTENT, 0))) }},
	{"kernel.fanotify_unprivileged", func(canary.Config) result {
		return judge(closing(unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID, 0)))
	}},
	{"kernel.inotify_of_host", func(c canary.Config) result {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return judge(err)
		}
		_, err = unix.InotifyAddWatch(fd, c.Outside, unix.IN_ALL_EVENTS)
		return judge(err)
	}},
	{"kernel.inotify_of_shared_files", func(canary.Config) result {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return judge(err)
		}
		_, err = unix.InotifyAddWatch(fd, "/dev/null", unix.IN_ALL_EVENTS)
		return judge(err)
	}},
	{"kernel.quotactl", func(canary.Config) result {
		device := append([]byte("/dev/none"), 0)
		return call([]unix.Errno{unix.ENOENT, unix.ENOTBLK}, unix.SYS_QUOTACTL, 0x80000700, pointer(&device[0]), 0, 0)
	}},
	{"kernel.acct", func(canary.Config) result {
		return call([]unix.Errno{unix.EISDIR, unix.EACCES}, unix.SYS_ACCT, accounting())
	}},
	{"kernel.syslog", func(canary.Config) result {
		_, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 256))
		return judge(err)
	}},
	{"kernel.syslog_console", func(canary.Config) result {
		_, err := unix.Klogctl(unix.SYSLOG_ACTION_CONSOLE_LEVEL, nil) // level 0 is refused after the check
		return judge(err, unix.EINVAL)
	}},
	{"kernel.memory_policy", func(canary.Config) result { return call(nil, unix.SYS_SET_MEMPOLICY, 0, 0, 0) }},
	{"kernel.vmsplice", func(canary.Config) result {
		var pipe [2]int
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
			return judge(err)
		}
		page := make([]byte, 16)
		area := unix.Iovec{Base: &page[0], Len: 16}
		return call(nil, unix.SYS_VMSPLICE, uintptr(pipe[1]), pointer(&area), 1, 0)
	}},
	{"kernel.file_handles", func(c canary.Config) result {
		_, _, err := unix.NameToHandleAt(unix.AT_FDCWD, c.Package, 0)
		return judge(err)
	}},
	{"kernel.lookup_sysfs", func(canary.Config) result { return call(nil, unix.SYS_SYSFS, 3) }},
	{"kernel.device_by_number", func(canary.Config) result {
		var answer [64]byte
		return call([]unix.Errno{unix.EINVAL}, unix.SYS_USTAT, 0, pointer(&answer))
	}},
	{"kernel.vhangup", func(canary.Config) result {
		if _, err := unix.Setsid(); err != nil { // so that it can be no terminal of ours
			return judge(err)
		}
		return call(nil, unix.SYS_VHANGUP)
	}},
	{"kernel.secret_memory", func(canary.Config) result { return judge(closing(unix.MemfdSecret(unix.O_CLOEXEC))) }},
	{"kernel.seccomp_listener", func(canary.Config) result {
		// A filter of one's own that answers for others: harmless to the host, yet
		// a way to fool programs started later.
		program := [1]unix.SockFilter{{Code: 0x06, K: 0x7fff0000}}
		filter := unix.SockFprog{Len: 1, Filter: &program[0]}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return judge(err)
		}
		return call(nil, unix.SYS_SECCOMP, 1, 1<<3, pointer(&filter))
	}},
	{"kernel.ia32_getpid", func(canary.Config) result { return ia32(20, 0, 0, 0) }},
	{"kernel.ia32_socket", func(canary.Config) result { return ia32(359, unix.AF_INET, unix.SOCK_STREAM, 0) }},
	{"kernel.ia32_ptrace", func(c canary.Config) result { return ia32(26, 0x4206, uintptr(c.VictimPID), 0) }},
	{"kernel.ia32_keyctl", func(canary.Config) result { return ia32(288, 0, ^uintptr(2), 0) }},
	{"kernel.x32_getpid", func(canary.Config) result { return call(nil, 0x40000000|unix.SYS_GETPID) }},
	{"kernel.x32_socket", func(canary.Config) result {
		return call(nil, 0x40000000|unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0)
	}},
	{"kernel.timer_of_cpu", func(canary.Config) result {
		// Alarms of the machine wake it from sleep.
		fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME_ALARM, unix.TFD_CLOEXEC)
		return judge(closing(fd, err))
	}},
	{"kernel.clock_of_host", func(canary.Config) result {
		var now unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME, &now); err != nil {
			return judge(err)
		}
		if time.Since(time.Unix(now.Sec, now.Nsec)) > time.Minute {
			return denied("it shows another time")
		}
		return allowed("it can be read")
	}},
}

// accounting is the address of the name of a file that cannot be an accounting
// file: a directory.
func accounting() uintptr {
	path := []byte("/\x00")
	return uintptr(unsafe.Pointer(&path[0]))
}

// ia32 makes a system call of the 32-bit kind, with numbers of its own.
func ia32(number, first, second, third uintptr) result {
	r := int32(int80(number, first, second, third))
	if r < 0 && r > -4096 {
		return judge(unix.Errno(-r))
	}
	return allowed("it returned %d", r)
}

// int80 is in call_amd64.s.
func int80(number, first, second, third uintptr) uintptr
