//go:build linux && amd64

package main

import (
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// writing are attempts to change something outside the scratch directory. Each
// one that changes a file has a file of its own, targets/NAME.
var writing = []probe{
	{"write.overwrite", onTarget(func(path string) error { return os.WriteFile(path, []byte("gone"), 0) })},
	{"write.append", onTarget(func(path string) error {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteString("more")
		return err
	})},
	{"write.truncate", onTarget(func(path string) error { return unix.Truncate(path, 0) })},
	{"write.truncate_on_open", onTarget(func(path string) error { return closing(unix.Open(path, unix.O_RDONLY|unix.O_TRUNC, 0)) })},
	{"write.map_shared", onTarget(func(path string) error {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		m, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err == nil {
			copy(m, "mapped!!")
		}
		return err
	})},
	{"write.create", inOutside(func(path string) error { return os.WriteFile(path, nil, 0o644) })},
	{"write.create_setuid", inOutside(func(path string) error {
		return closing(unix.Open(path, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY, 0o4755))
	})},
	{"write.create_unnamed", func(c canary.Config) result {
		return judge(closing(unix.Open(c.Outside, unix.O_TMPFILE|unix.O_WRONLY, 0o644)))
	}},
	{"write.mkdir", inOutside(func(path string) error { return os.Mkdir(path, 0o755) })},
	{"write.symlink", inOutside(func(path string) error { return os.Symlink("/etc/shadow", path) })},
	{"write.fifo", inOutside(func(path string) error { return unix.Mkfifo(path, 0o644) })},
	{"write.socket", inOutside(func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o644, 0) })},
	{"write.character_device", inOutside(func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3))) })},
	{"write.unlink", onTarget(unix.Unlink)},
	{"write.rmdir", func(c canary.Config) result { return judge(unix.Rmdir(filepath.Join(c.Outside, "empty"))) }},
	{"write.rename", onTarget(func(path string) error { return unix.Rename(path, path+".moved") })},
	{"write.rename_out_of_scratch", func(c canary.Config) result {
		from := own(c, "leaving")
		return judge(unix.Rename(from, filepath.Join(c.Outside, "arrived")))
	}},
	{"write.rename_into_scratch", func(c canary.Config) result {
		return judge(unix.Rename(target(c), filepath.Join(c.Scratch, "taken")))
	}},
	{"write.exchange", func(c canary.Config) result {
		from := own(c, "exchanged")
		return judge(unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, target(c), unix.RENAME_EXCHANGE))
	}},
	{"write.link_out_of_scratch", func(c canary.Config) result {
		return judge(unix.Link(own(c, "linked"), filepath.Join(c.Outside, "linked")))
	}},
	{"write.link_into_scratch", func(c canary.Config) result {
		return judge(unix.Link(target(c), filepath.Join(c.Scratch, "hard")))
	}},
	{"write.chmod", onTarget(func(path string) error { return unix.Chmod(path, 0o777) })},
	{"write.chmod_setuid", onTarget(func(path string) error { return unix.Chmod(path, 0o4777) })},
	{"write.chown", func(c canary.Config) result {
		return judge(unix.Chown(target(c), c.OwnerID, -1))
	}},
	{"write.utimes", onTarget(func(path string) error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)) })},
	{"write.setxattr", onTarget(func(path string) error { return unix.Setxattr(path, "user.probe", []byte("1"), 0) })},
	{"write.immutable_flag", onTarget(func(path string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x80) // no access times
	})},
	{"write.lock", onTarget(func(path string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	})},
	{"write.lease", onTarget(func(path string) error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	})},
	{"write.lock_own_package", func(c canary.Config) result {
		fd, err := unix.Open(filepath.Join(c.Package, "data.txt"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB))
	}},
	{"write.lease_own_package", func(c canary.Config) result {
		fd, err := unix.Open(filepath.Join(c.Package, "data.txt"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
		return judge(err)
	}},
	{"write.own_package_times", func(c canary.Config) result {
		return judge(os.Chtimes(filepath.Join(c.Package, "mode.txt"), time.Unix(1, 0), time.Unix(1, 0)))
	}},
	{"write.own_package_attribute", func(c canary.Config) result {
		return judge(unix.Setxattr(filepath.Join(c.Package, "mode.txt"), "user.probe", []byte("1"), 0))
	}},
	{"write.own_package", func(c canary.Config) result {
		return judge(os.WriteFile(filepath.Join(c.Package, "added"), nil, 0o644))
	}},
	{"write.own_program", func(c canary.Config) result {
		// A running program cannot be opened for writing, so it is replaced.
		path := filepath.Join(c.Package, "data.txt")
		return judge(unix.Rename(path, path+".old"))
	}},
	{"write.own_package_mode", func(c canary.Config) result {
		return judge(unix.Chmod(filepath.Join(c.Package, "mode.txt"), 0o777))
	}},
	{"write.tmp_of_host", creates("/tmp")},
	{"write.var_tmp_of_host", creates("/var/tmp")},
	{"write.shm_of_host", creates("/dev/shm")},
	{"write.run_of_host", creates("/run")},
	{"write.etc_of_host", creates("/etc")},
	{"write.usr_lib_of_host", creates("/usr/lib")},
	{"write.root_of_host", creates("/")},
	{"write.dev_of_host", creates("/dev")},
}

// target is the file of the host that this probe may spoil.
func target(c canary.Config) string { return filepath.Join(c.Outside, "targets", c.Probe) }

// own makes a file in scratch.
func own(c canary.Config, file string) string {
	path := filepath.Join(c.Scratch, file)
	_ = os.WriteFile(path, []byte("from the cage"), 0o644)
	return path
}

// onTarget tries to change a canary file that no other probe uses.
func onTarget(change func(path string) error) func(canary.Config) result {
	return func(c canary.Config) result { return judge(change(target(c))) }
}

// inOutside tries to make something in a directory of the host.
func inOutside(create func(path string) error) func(canary.Config) result {
	return func(c canary.Config) result { return judge(create(filepath.Join(c.Outside, c.Probe))) }
}

// creates tries to leave a file in a directory every machine has. A cage may have
// one of its own at the same place: whether the host has the file then is for the
// host to say.
func creates(dir string) func(canary.Config) result {
	return func(c canary.Config) result {
		return judge(os.WriteFile(filepath.Join(dir, c.Mark+".made"), nil, 0o644))
	}
}

func closing(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}
