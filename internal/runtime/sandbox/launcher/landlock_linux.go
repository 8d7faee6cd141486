package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// Rights of Landlock, by what they are for here.
const (
	rightsToRead = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsToRun  = rightsToRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsToWork = rightsToRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	rightsOfFiles = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// A ruleset is struct landlock_ruleset_attr; older kernels know its beginning.
type ruleset struct {
	files, net, scoped uint64
}

// handled returns everything that an ABI can forbid, and how much of a ruleset
// it knows.
func handled(abi int) (r ruleset, size uintptr) {
	r.files, size = 1<<13-1, 8
	if abi >= 2 {
		r.files |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		r.files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		r.net, size = unix.LANDLOCK_ACCESS_NET_BIND_TCP|unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, 16
	}
	if abi >= 5 {
		r.files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		r.scoped, size = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET|unix.LANDLOCK_SCOPE_SIGNAL, 24
	}
	return r, size
}

// alone is whether the signals of the first thread reach no process outside this cage:
// then it may signal all processes at once.
var alone bool

// landlock confines every thread to the files of the spec and tries a file
// that is not among them. A kernel without Landlock is no error.
func landlock(spec *wire.Spec) (wire.Layer, error) {
	layer := wire.Layer{Name: "landlock"}
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		layer.Why = "the kernel does not offer it (" + errno.Error() + "): Linux 5.13 or later, with landlock among its security modules (lsm=)"
		return layer, nil
	}
	abi := int(version)
	rules, size := handled(abi)
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return layer, fmt.Errorf("making a ruleset of ABI %d: %w", abi, errno)
	}
	defer unix.Close(int(set))
	for _, group := range []struct {
		paths  []string
		rights uint64
	}{{spec.Read, rightsToRun}, {spec.Scan, rightsToRead}, {spec.Write, rightsToWork}} {
		for _, path := range group.paths {
			if err := allow(int(set), path, group.rights&rules.files); err != nil {
				return layer, fmt.Errorf("allowing %s: %w", path, err)
			}
		}
	}
	if spec.Proxy != 0 {
		if err := allowProxy(int(set), rules); err != nil {
			return layer, fmt.Errorf("allowing the proxy: %w", err)
		}
	}
	if err := everyThread(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); err != nil {
		return layer, fmt.Errorf("restricting: %w", err)
	}
	if fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); !errors.Is(err, unix.EACCES) {
		if err == nil {
			_ = unix.Close(fd)
		}
		layer.Why = fmt.Sprintf("a directory that is forbidden could be read (%v)", err)
		return layer, nil
	}
	// Whether it may signal the host, which exists, is tried besides.
	alone = rules.scoped&unix.LANDLOCK_SCOPE_SIGNAL != 0 && errors.Is(unix.Kill(os.Getppid(), 0), unix.EPERM)
	layer.On, layer.Why = true, fmt.Sprintf("ABI %d", abi)
	return layer, nil
}

// allow adds a rule for what is beneath path; what is not there needs none.
func allow(set int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
