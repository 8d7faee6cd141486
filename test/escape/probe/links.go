//go:build linux && amd64

package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// links are attempts to lead a process out of scratch: the plugin itself, or the host
// that looks at what a plugin left behind. The links stay, and the test then follows
// them as the host does.
var links = []probe{
	{"link.symlink_to_outside", func(c canary.Config) result {
		path := filepath.Join(c.Scratch, "out")
		_ = unix.Symlink(filepath.Join(c.Outside, "data/ledger.db"), path)
		return contains(path, c.Secret)
	}},
	{"link.symlink_to_directory", func(c canary.Config) result {
		path := filepath.Join(c.Scratch, "out.d")
		_ = unix.Symlink(c.Outside, path)
		return contains(filepath.Join(path, "data/ledger.db"), c.Secret)
	}},
	{"link.symlink_by_dots", func(c canary.Config) result {
		path := filepath.Join(c.Scratch, "dots")
		_ = unix.Symlink("../../../../../../../../../../../.."+filepath.Join(c.Outside, "data/ledger.db"), path)
		return contains(path, c.Secret)
	}},
	{"link.symlink_to_proc", func(c canary.Config) result {
		path := filepath.Join(c.Scratch, "proc")
		_ = unix.Symlink("/proc/1/root"+filepath.Join(c.Outside, "data/ledger.db"), path)
		return contains(path, c.Secret)
	}},
	{"link.write_through_symlink", func(c canary.Config) result {
		path := filepath.Join(c.Scratch, "through")
		_ = unix.Symlink(target(c), path)
		return judge(os.WriteFile(path, []byte("gone"), 0))
	}},
	{"link.create_through_symlink", func(c canary.Config) result {
		path := filepath.Join(c.Scratch, "dangling")
		_ = unix.Symlink(filepath.Join(c.Outside, c.Probe), path)
		return judge(closing(unix.Open(path, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)))
	}},
	{"link.hard_link_to_package", func(c canary.Config) result {
		return judge(unix.Link(filepath.Join(c.Package, "mode.txt"), filepath.Join(c.Scratch, "package")))
	}},
	{"link.hard_link_by_descriptor", func(c canary.Config) result {
		fd, err := unix.Open(filepath.Join(c.Outside, "data/ledger.db"), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return judge(unix.Linkat(fd, "", unix.AT_FDCWD, filepath.Join(c.Scratch, "descriptor"), unix.AT_EMPTY_PATH))
	}},
	{"link.directory_swapped", func(c canary.Config) result {
		// A name that was a directory a moment ago is a link to the outside now.
		path := directory(c, "swapped")
		if err := os.Remove(path); err != nil {
			return judge(err)
		}
		_ = unix.Symlink(c.Outside, path)
		return contains(filepath.Join(path, "data/ledger.key"), c.Secret)
	}},
	{"link.above_scratch", func(c canary.Config) result {
		return lists(c.Scratch + "/../outside")(c)
	}},
}
