//go:build linux && amd64

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// readsHosts reads a file of which a cage may have one of its own.
func readsHosts(path string) func(canary.Config) result {
	return func(c canary.Config) result {
		text, err := os.ReadFile(path)
		if err != nil {
			return judge(err)
		}
		if len(text) == c.Sizes[path] {
			return allowed("the host's, of %d bytes", len(text))
		}
		return denied("one of its own: %.60q", text)
	}
}

// reading are attempts to learn what the host has not shown.
var reading = []probe{
	{"read.shadow", reads("/etc/shadow")},
	{"read.passwd", readsHosts("/etc/passwd")},
	{"read.hostname", reads("/etc/hostname")},
	{"read.resolv_conf", reads("/etc/resolv.conf")},
	{"read.hosts", readsHosts("/etc/hosts")},
	{"read.root_home", lists("/root")},
	{"read.homes", lists("/home")},
	{"read.etc", listsFile("/etc", "shadow")},
	{"read.var_log", lists("/var/log")},
	{"read.usr_bin", listsFile("/usr/bin", "passwd")},
	{"read.package_database", reads("/var/lib/dpkg/status")},
	{"read.boot_command_line", reads("/proc/cmdline")},
	{"read.boot_id", reads("/proc/sys/kernel/random/boot_id")},
	{"read.machine_id", reads("/etc/machine-id")},
	{"read.partitions", reads("/proc/partitions")},
	{"read.disk_statistics", reads("/proc/diskstats")},
	{"read.interrupts", reads("/proc/interrupts")},
	{"read.swaps", reads("/proc/swaps")},
	{"read.load_of_machine", reads("/proc/loadavg")},
	{"read.memory_of_machine", reads("/proc/meminfo")},
	{"read.processors_of_machine", reads("/proc/cpuinfo")},
	{"read.processor_time", reads("/proc/stat")},
	{"read.kernel_version", reads("/proc/version")},
	{"read.kernel_configuration", reads("/proc/config.gz")},
	{"read.tmp_of_host", func(c canary.Config) result { return exists("/tmp/" + c.Mark) }},
	{"read.ledger", outside("data/ledger.db")},
	{"read.ledger_key", outside("data/ledger.key")},
	{"read.config", outside("data/mortise.yaml")},
	{"read.other_package", outside("packages/other/plugin.py")},
	{"read.other_scratch", outside("scratch-of-another/notes")},
	{"read.credentials", outside("home/.ssh/id_ed25519")},
	{"read.list_outside", func(c canary.Config) result { return lists(c.Outside)(c) }},
	{"read.list_packages", func(c canary.Config) result { return lists(filepath.Join(c.Outside, "packages"))(c) }},
	{"read.stat_outside", func(c canary.Config) result {
		var st unix.Stat_t
		return judge(unix.Stat(filepath.Join(c.Outside, "data/ledger.key"), &st))
	}},
	{"read.access_outside", func(c canary.Config) result {
		return judge(unix.Access(filepath.Join(c.Outside, "data/ledger.db"), unix.R_OK))
	}},
	{"read.readlink_outside", func(c canary.Config) result {
		_, err := os.Readlink(filepath.Join(c.Outside, "link"))
		return judge(err)
	}},
	{"read.getxattr_outside", func(c canary.Config) result {
		_, err := unix.Getxattr(filepath.Join(c.Outside, "labelled"), "user.canary", make([]byte, 64))
		return judge(err, unix.ENODATA)
	}},
	{"read.statfs_outside", func(c canary.Config) result {
		var st unix.Statfs_t
		return judge(unix.Statfs(c.Outside, &st))
	}},
	{"read.by_dots", func(c canary.Config) result {
		if err := os.Chdir(c.Scratch); err != nil {
			return judge(err)
		}
		return contains(strings.Repeat("../", 40)+strings.TrimPrefix(filepath.Join(c.Outside, "data/ledger.db"), "/"), c.Secret)
	}},
	{"read.by_own_root", func(c canary.Config) result {
		return contains("/proc/self/root"+filepath.Join(c.Outside, "data/ledger.db"), c.Secret)
	}},
	{"read.by_init_root", func(c canary.Config) result {
		return contains("/proc/1/root"+filepath.Join(c.Outside, "data/ledger.db"), c.Secret)
	}},
	{"read.by_victim_root", func(c canary.Config) result {
		return contains(victim(c, "root")+filepath.Join(c.Outside, "data/ledger.db"), c.Secret)
	}},
	{"read.by_host_cwd", func(c canary.Config) result {
		return lists(fmt.Sprintf("/proc/%d/cwd", c.HostPID))(c)
	}},
	{"read.by_path_descriptor", func(c canary.Config) result {
		fd, err := unix.Open(filepath.Join(c.Outside, "data/ledger.db"), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		return contains(fmt.Sprintf("/proc/self/fd/%d", fd), c.Secret)
	}},
	{"read.by_openat2", func(c canary.Config) result {
		fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Join(c.Outside, "data/ledger.db"), &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC})
		if err != nil {
			return judge(err)
		}
		return fromDescriptor(fd, c.Secret)
	}},
	{"read.by_file_handle", func(c canary.Config) result {
		// A handle names an inode, whatever is mounted over it: the way out of
		// many containers.
		fd, err := unix.Open(c.Package, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		path := filepath.Join(c.Outside, "data/ledger.db")
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
		if err != nil {
			// The number of an inode can be guessed, so any handle will do for the attempt.
			if handle, _, err = unix.NameToHandleAt(unix.AT_FDCWD, c.Package, 0); err != nil {
				return judge(err)
			}
		}
		got, err := unix.OpenByHandleAt(fd, handle, unix.O_RDONLY)
		if err != nil {
			return judge(err)
		}
		return allowed("descriptor %d", got)
	}},
	{"read.sysfs", lists("/sys/class")},
	{"read.sysfs_network", lists("/sys/class/net")},
	{"read.sysfs_firmware", lists("/sys/firmware")},
	{"read.sysfs_block", lists("/sys/block")},
	{"read.host_interfaces", func(c canary.Config) result {
		text, err := os.ReadFile("/proc/net/dev")
		if err != nil {
			return judge(err)
		}
		if strings.Count(string(text), ":") > 1 {
			return allowed("%d interfaces", strings.Count(string(text), ":"))
		}
		return denied("loopback alone")
	}},
	{"read.host_connections", func(c canary.Config) result {
		text, err := os.ReadFile("/proc/net/tcp6")
		if err != nil {
			return judge(err)
		}
		if strings.Contains(string(text), fmt.Sprintf(":%04X ", c.TCPPort)) {
			return allowed("the listener of the host is in the list")
		}
		return denied("not in the list")
	}},
	{"read.host_unix_sockets", func(c canary.Config) result { return contains("/proc/net/unix", c.Mark) }},
	{"read.host_mounts", func(c canary.Config) result {
		text, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return judge(err)
		}
		for mount := range strings.Lines(string(text)) {
			if id, _, _ := strings.Cut(mount, " "); id == c.RootMount {
				return allowed("the root of the host is in the list")
			}
		}
		return denied("%d mounts, none of them the root of the host", bytes.Count(text, []byte("\n")))
	}},
}

// reads tries to read a file of the host.
func reads(path string) func(canary.Config) result {
	return func(canary.Config) result {
		f, err := os.Open(path)
		if err != nil {
			return missing(path, err)
		}
		defer f.Close()
		n, err := f.Read(make([]byte, 1))
		if n == 1 {
			return allowed("%s was read", path)
		}
		return judge(err)
	}
}

// lists tries to read a directory of the host.
func lists(path string) func(canary.Config) result {
	return func(canary.Config) result {
		entries, err := os.ReadDir(path)
		if err != nil {
			return missing(path, err)
		}
		return allowed("%d entries", len(entries))
	}
}

// listsFile tries to find a file of the host in a directory the cage may have too.
func listsFile(path, file string) func(canary.Config) result {
	return func(canary.Config) result {
		entries, err := os.ReadDir(path)
		if err != nil {
			return missing(path, err)
		}
		for _, entry := range entries {
			if entry.Name() == file {
				return allowed("%s is among %d entries", file, len(entries))
			}
		}
		return denied("%d entries, %s not among them", len(entries), file)
	}
}

// outside tries to read a canary file.
func outside(path string) func(canary.Config) result {
	return func(c canary.Config) result { return contains(filepath.Join(c.Outside, path), c.Secret) }
}

func exists(path string) result {
	var st unix.Stat_t
	return judge(unix.Lstat(path, &st))
}

// contains tries to read a file and looks for the secret in it.
func contains(path, secret string) result {
	text, err := os.ReadFile(path)
	if err != nil {
		return judge(err)
	}
	if bytes.Contains(text, []byte(secret)) {
		return allowed("the secret was read")
	}
	return denied("read, but the secret is not in it")
}

func fromDescriptor(fd int, secret string) result {
	buffer := make([]byte, 4096)
	n, err := unix.Pread(fd, buffer, 0)
	if err != nil {
		return judge(err)
	}
	if bytes.Contains(buffer[:n], []byte(secret)) {
		return allowed("the secret was read")
	}
	return denied("read, but the secret is not in it")
}

// missing judges an error of opening a path that some machines do not have.
func missing(path string, err error) result {
	if os.IsNotExist(err) {
		return denied("ENOENT: %s", path)
	}
	return judge(err)
}
