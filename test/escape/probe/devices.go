//go:build linux && amd64

package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// devices are attempts to open what /dev has on a host, or to make the like, and to
// reach the terminal of the user who started the host.
var devices = []probe{
	{"dev.memory", device("/dev/mem", unix.O_RDONLY)},
	{"dev.ports", device("/dev/port", unix.O_RDONLY)},
	{"dev.kernel_log", device("/dev/kmsg", unix.O_RDONLY)},
	{"dev.kernel_log_write", device("/dev/kmsg", unix.O_WRONLY)},
	{"dev.fuse", device("/dev/fuse", unix.O_RDWR)},
	{"dev.kvm", device("/dev/kvm", unix.O_RDWR)},
	{"dev.tun", device("/dev/net/tun", unix.O_RDWR)},
	{"dev.loop_control", device("/dev/loop-control", unix.O_RDWR)},
	{"dev.loop", device("/dev/loop0", unix.O_RDONLY)},
	{"dev.vsock", device("/dev/vsock", unix.O_RDONLY)},
	{"dev.userfaultfd", device("/dev/userfaultfd", unix.O_RDWR)},
	{"dev.autofs", device("/dev/autofs", unix.O_RDONLY)},
	{"dev.vhost_net", device("/dev/vhost-net", unix.O_RDWR)},
	{"dev.input", device("/dev/uinput", unix.O_WRONLY)},
	{"dev.clock", device("/dev/rtc0", unix.O_RDONLY)},
	{"dev.processor", device("/dev/cpu/0/msr", unix.O_RDONLY)},
	{"dev.nvram", device("/dev/nvram", unix.O_RDONLY)},
	{"dev.hardware_random", device("/dev/hwrng", unix.O_RDONLY)},
	{"dev.mapper", device("/dev/mapper/control", unix.O_RDWR)},
	{"dev.snapshot", device("/dev/snapshot", unix.O_RDONLY)},
	{"dev.console", device("/dev/console", unix.O_WRONLY)},
	{"dev.virtual_terminal", device("/dev/tty0", unix.O_WRONLY)},
	{"dev.new_terminal", device("/dev/ptmx", unix.O_RDWR)},
	{"dev.disk", func(canary.Config) result {
		paths, _ := filepath.Glob("/dev/[hsv]d[a-z]")
		more, _ := filepath.Glob("/dev/nvme*n1")
		for _, path := range append(paths, more...) {
			if r := reads(path)(canary.Config{}); r.outcome == "allowed" {
				return r
			}
		}
		return denied("none of %v", append(paths, more...))
	}},
	{"dev.disk_by_number", func(c canary.Config) result {
		// The device of the file system a file lies on.
		var st unix.Stat_t
		if err := unix.Stat("/", &st); err != nil {
			return judge(err)
		}
		return makes(c, unix.S_IFBLK|0o600, int(st.Dev))
	}},
	{"dev.disk_common_number", func(c canary.Config) result { return makes(c, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))) }},
	{"dev.memory_by_number", func(c canary.Config) result { return makes(c, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))) }},
	{"dev.null_by_number", func(c canary.Config) result { return makes(c, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) }},
	{"dev.whiteout", func(c canary.Config) result {
		return judge(unix.Mknod(filepath.Join(c.Scratch, "whiteout"), unix.S_IFCHR, 0))
	}},
	{"dev.fifo_in_scratch", func(c canary.Config) result {
		return judge(unix.Mkfifo(filepath.Join(c.Scratch, "fifo"), 0o644))
	}},
	{"dev.terminal", device("/dev/tty", unix.O_RDWR|unix.O_NOCTTY)},
	{"dev.terminal_input", func(canary.Config) result {
		// To type into the terminal of the user who started the host.
		fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		key := [1]byte{' '}
		return call(nil, unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, pointer(&key))
	}},
	{"dev.terminal_of_standard_files", func(canary.Config) result {
		for fd := range 3 {
			key := [1]byte{' '}
			if _, err := raw(unix.SYS_IOCTL, uintptr(fd), unix.TIOCSTI, pointer(&key)); err == nil {
				return allowed("descriptor %d", fd)
			}
			if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
				return allowed("descriptor %d is a terminal", fd)
			}
		}
		return denied("none of 0, 1 and 2")
	}},
	{"dev.terminal_selection", func(canary.Config) result {
		fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		kind := [1]byte{10} // ask whether the console is blanked
		return call([]unix.Errno{unix.ENOTTY}, unix.SYS_IOCTL, uintptr(fd), unix.TIOCLINUX, pointer(&kind))
	}},
	{"dev.null_mode", func(canary.Config) result {
		// The device may be the host's own, and so is then its mode.
		return judge(unix.Chmod("/dev/null", 0o666))
	}},
	{"dev.null_owner", func(canary.Config) result { return judge(unix.Chown("/dev/null", 0, 0)) }},
	{"dev.entropy", func(canary.Config) result {
		fd, err := unix.Open("/dev/random", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		nothing := [2]int32{}
		return call(nil, unix.SYS_IOCTL, uintptr(fd), unix.RNDADDENTROPY, pointer(&nothing))
	}},
	{"dev.null_is_a_device", func(canary.Config) result {
		// A file in its place would keep what programs throw away.
		var st unix.Stat_t
		if err := unix.Stat("/dev/null", &st); err != nil {
			return denied("%v", err)
		}
		if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3) {
			return denied("it is")
		}
		return allowed("mode %o", st.Mode)
	}},
}

// device tries to open a device, and leaves it at that.
func device(path string, flags int) func(canary.Config) result {
	return func(canary.Config) result {
		err := closing(unix.Open(path, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0))
		if err == unix.ENOENT {
			return denied("ENOENT: %s", path)
		}
		return judge(err, unix.EBUSY)
	}
}

// makes tries to make a device in scratch and to open it.
func makes(c canary.Config, mode uint32, number int) result {
	path := filepath.Join(c.Scratch, c.Probe)
	if err := unix.Mknod(path, mode, number); err != nil {
		return judge(err)
	}
	return judge(closing(unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)))
}
