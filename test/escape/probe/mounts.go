//go:build linux && amd64

package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// mounts are attempts to change what is mounted where. With the cage off, what is
// mounted is unmounted again; and the package, which is a mount in a cage alone,
// answers EINVAL after the permission check.
var mounts = []probe{
	{"mount.tmpfs", mountsAt("tmpfs", "tmpfs", 0)},
	{"mount.proc", mountsAt("proc", "proc", 0)},
	{"mount.sysfs", mountsAt("sysfs", "sysfs", 0)},
	{"mount.devpts", mountsAt("devpts", "devpts", 0)},
	{"mount.mqueue", mountsAt("mqueue", "mqueue", 0)},
	{"mount.ramfs", mountsAt("ramfs", "ramfs", 0)},
	{"mount.cgroup", mountsAt("cgroup2", "cgroup2", 0)},
	{"mount.bind_root", mountsAt("/", "", unix.MS_BIND)},
	{"mount.bind_outside", func(c canary.Config) result { return mountsAt(c.Outside, "", unix.MS_BIND)(c) }},
	{"mount.overlay", func(c canary.Config) result {
		point := directory(c, "point")
		options := "lowerdir=/,upperdir=" + directory(c, "upper") + ",workdir=" + directory(c, "work")
		err := unix.Mount("overlay", point, "overlay", 0, options)
		if err == nil {
			_ = unix.Unmount(point, unix.MNT_DETACH)
		}
		return judge(err, unix.EINVAL) // scratch cannot always be an upper layer
	}},
	{"mount.remount_writable", onPackage(func(path string) error {
		return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND, "")
	})},
	{"mount.make_shared", onPackage(func(path string) error { return unix.Mount("", path, "", unix.MS_SHARED, "") })},
	{"mount.move", onPackage(func(path string) error { return unix.Mount(path, filepath.Dir(path), "", unix.MS_MOVE, "") })},
	{"mount.unmount_package", onPackage(func(path string) error { return unix.Unmount(path, unix.MNT_DETACH) })},
	{"mount.unmount_scratch", func(c canary.Config) result {
		return judge(unix.Unmount(c.Scratch, unix.MNT_DETACH), unix.EINVAL)
	}},
	{"mount.setattr", onPackage(func(path string) error {
		return unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	})},
	{"mount.open_tree", func(canary.Config) result {
		return judge(closing(unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)))
	}},
	{"mount.move_tree", func(c canary.Config) result {
		tree, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			tree = -1
		}
		point := directory(c, "point")
		err = unix.MoveMount(tree, "", unix.AT_FDCWD, point, unix.MOVE_MOUNT_F_EMPTY_PATH)
		if err == nil {
			_ = unix.Unmount(point, unix.MNT_DETACH)
		}
		return judge(err)
	}},
	{"mount.fsopen", func(canary.Config) result { return judge(closing(unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC))) }},
	{"mount.fspick", func(canary.Config) result {
		return judge(closing(unix.Fspick(unix.AT_FDCWD, "/", unix.FSPICK_CLOEXEC)))
	}},
	{"mount.pivot_root", func(c canary.Config) result {
		return judge(unix.PivotRoot(c.Scratch, c.Scratch), unix.EINVAL, unix.EBUSY)
	}},
	{"mount.chroot", func(c canary.Config) result { return judge(unix.Chroot(c.Scratch)) }},
	{"mount.chroot_break", func(c canary.Config) result {
		// A root below the working directory lets ".." climb past it.
		here, err := os.Open("/")
		if err != nil {
			return judge(err)
		}
		defer here.Close()
		if err := unix.Chroot(directory(c, "below")); err != nil {
			return judge(err)
		}
		if err := here.Chdir(); err != nil {
			return judge(err)
		}
		return contains("../../../../"+filepath.Join(c.Outside, "data/ledger.db"), c.Secret)
	}},
	{"mount.listmount", func(canary.Config) result {
		request := [4]uint64{24, ^uint64(0), 0} // every mount below the root of the namespace
		var ids [256]uint64
		n, err := raw(458, pointer(&request), pointer(&ids), 256, 0)
		if err != nil {
			return judge(err)
		}
		return allowed("%d mounts", n)
	}},
	{"mount.swapon", func(c canary.Config) result {
		path := append([]byte(own(c, "swap")), 0)
		return call([]unix.Errno{unix.EINVAL}, unix.SYS_SWAPON, pointer(&path[0]), 0)
	}},
	{"mount.swapoff", func(c canary.Config) result {
		path := append([]byte(own(c, "swap")), 0)
		return call([]unix.Errno{unix.EINVAL}, unix.SYS_SWAPOFF, pointer(&path[0]))
	}},
}

// mountsAt tries a mount within scratch.
func mountsAt(source, kind string, flags uintptr) func(canary.Config) result {
	return func(c canary.Config) result {
		point := directory(c, "point")
		err := unix.Mount(source, point, kind, flags, "")
		if err == nil {
			_ = unix.Unmount(point, unix.MNT_DETACH)
		}
		return judge(err)
	}
}

func onPackage(change func(path string) error) func(canary.Config) result {
	return func(c canary.Config) result { return judge(change(c.Package), unix.EINVAL) }
}

// directory makes a directory in scratch.
func directory(c canary.Config, dir string) string {
	path := filepath.Join(c.Scratch, dir)
	_ = os.Mkdir(path, 0o755)
	return path
}
