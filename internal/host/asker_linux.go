package host

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// The link of a process in the user namespace that the machine began with (PROC_USER_INIT_INO),
// and the inode of the root of every procfs.
const (
	initialUsers = "user:[4026531837]"
	procRoot     = 1
)

// assigned says why the user id of this process may have been chosen by who runs it; ""
// if it was not.
//
// The creator of a namespace may cover files of /proc with mounts of their own, of procfs
// as well. The link is therefore read without crossing any mount below the root of procfs.
func assigned() string {
	const unsure = "it cannot be told whether this process is in a user namespace: "
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return unsure + "/proc: " + err.Error()
	}
	defer unix.Close(proc)
	var fs unix.Statfs_t
	var root unix.Stat_t
	if unix.Fstatfs(proc, &fs) != nil || unix.Fstat(proc, &root) != nil || fs.Type != unix.PROC_SUPER_MAGIC || root.Ino != procRoot {
		return unsure + "/proc is something else"
	}
	link, err := unix.Openat2(proc, "self/ns/user", &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_XDEV})
	if err != nil {
		return unsure + "/proc/self/ns/user: " + err.Error()
	}
	defer unix.Close(link)
	text := make([]byte, 64)
	n, err := unix.Readlinkat(link, "", text)
	if err != nil {
		return unsure + "/proc/self/ns/user: " + err.Error()
	}
	if namespace := string(text[:n]); namespace != initialUsers {
		return fmt.Sprintf("this process is in the user namespace %s, where user %d is whom its creator chose", namespace, unix.Getuid())
	}
	return ""
}
