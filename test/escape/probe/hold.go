//go:build linux && amd64

package main

import (
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// holding are attempts to hold up others by what a plugin is shown for reading:
// its own package stands for artifacts, libraries and interpreters. And attempts
// on whatever is the first process, which in a cage is the launcher that counts.
var holding = []probe{
	{"hold.lease_for_reading", onShown(func(fd int) error { return lease(fd, unix.F_RDLCK) })},
	{"hold.lease_for_writing", onShown(func(fd int) error { return lease(fd, unix.F_WRLCK) })},
	{"hold.delegation", onShown(func(fd int) error {
		d := struct {
			flags     uint32
			kind, pad uint16
		}{kind: unix.F_RDLCK}
		_, err := raw(unix.SYS_FCNTL, uintptr(fd), 1024+16, pointer(&d)) // F_SETDELEG
		return err
	})},
	{"hold.notify", func(c canary.Config) result {
		fd, err := unix.Open(c.Package, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, 1) // DN_ACCESS
		return judge(err)
	}},
	{"hold.flock_exclusive", onShown(func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })},
	{"hold.flock_shared", onShown(func(fd int) error { return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) })},
	{"hold.flock_directory", func(c canary.Config) result {
		fd, err := unix.Open(c.Package, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
	}},
	{"hold.record_exclusive", onShown(func(fd int) error { return record(fd, unix.F_SETLK, unix.F_WRLCK) })},
	{"hold.record_exclusive_of_description", onShown(func(fd int) error { return record(fd, unix.F_OFD_SETLK, unix.F_WRLCK) })},
	{"hold.record_shared", onShown(func(fd int) error { return record(fd, unix.F_SETLK, unix.F_RDLCK) })},
	{"hold.record_shared_of_description", onShown(func(fd int) error { return record(fd, unix.F_OFD_SETLK, unix.F_RDLCK) })},

	{"hold.first_priority", func(canary.Config) result {
		have, err := raw(unix.SYS_GETPRIORITY, unix.PRIO_PROCESS, 1)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Setpriority(unix.PRIO_PROCESS, 1, 20-int(have)))
	}},
	{"hold.users_priority", func(canary.Config) result {
		_, err := raw(unix.SYS_SETPRIORITY, unix.PRIO_USER, 4242, 0) // a user who has no process: past the check, if there is none
		return judge(err, unix.ESRCH)
	}},
	{"hold.groups_priority", func(canary.Config) result {
		_, err := raw(unix.SYS_SETPRIORITY, unix.PRIO_PGRP, 0, 0)
		return judge(err)
	}},
	{"hold.first_affinity", func(canary.Config) result {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(1, &set); err != nil {
			return judge(err)
		}
		return judge(unix.SchedSetaffinity(1, &set))
	}},
	{"hold.first_scheduler", func(canary.Config) result {
		none := int32(0)
		return call(nil, unix.SYS_SCHED_SETSCHEDULER, 1, 0, pointer(&none))
	}},
	{"hold.first_scheduling", func(canary.Config) result {
		none := int32(0)
		return call(nil, unix.SYS_SCHED_SETPARAM, 1, pointer(&none))
	}},
	{"hold.first_attributes", func(canary.Config) result {
		have, err := unix.SchedGetAttr(1, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.SchedSetAttr(1, have, 0))
	}},
	{"hold.first_io_priority", func(canary.Config) result {
		return call(nil, unix.SYS_IOPRIO_SET, 1, 1, 2<<13|4) // best effort, as it is
	}},

	{"memory.no_file", func(canary.Config) result {
		fd, err := unix.MemfdCreate("held", unix.MFD_CLOEXEC)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Ftruncate(fd, 64<<20))
	}},
	{"memory.zero_shared", func(canary.Config) result {
		fd, err := unix.Open("/dev/zero", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		_, err = unix.Mmap(fd, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return judge(err)
	}},
	{"memory.zero_shared_for_reading", func(canary.Config) result {
		fd, err := unix.Open("/dev/zero", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		_, err = unix.Mmap(fd, 0, 1<<20, unix.PROT_READ, unix.MAP_SHARED)
		return judge(err)
	}},
}

// onShown tries something with a file that a plugin is shown for reading.
func onShown(try func(fd int) error) func(canary.Config) result {
	return func(c canary.Config) result {
		if r := shown(c, unix.O_RDWR, try); r.outcome == "allowed" {
			return r
		}
		return shown(c, unix.O_RDONLY, try)
	}
}

func shown(c canary.Config, how int, try func(fd int) error) result {
	fd, err := unix.Open(filepath.Join(c.Package, "mode.txt"), how|unix.O_CLOEXEC, 0)
	if err != nil {
		return judge(err)
	}
	defer unix.Close(fd)
	return judge(try(fd))
}

func lease(fd, kind int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, kind)
	return err
}

func record(fd, command int, kind int16) error {
	return unix.FcntlFlock(uintptr(fd), command, &unix.Flock_t{Type: kind})
}
