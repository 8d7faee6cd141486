package launcher

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// wallIn takes from every thread of this process what the program must not
// have, and says what of it could be shown to be gone. An error means that a
// wall which this kernel has could not be put up.
func wallIn(spec *wire.Spec) ([]wire.Layer, error) {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("500"), 0) // rather us than anyone of the host
	limited, err := limit(spec.Limits)
	if err != nil {
		return nil, err
	}
	if err := dropBounding(); err != nil {
		return nil, fmt.Errorf("dropping capabilities: %w", err)
	}
	if spec.Switch {
		if err := become(spec.UID, spec.GID); err != nil {
			return nil, fmt.Errorf("becoming user %d: %w", spec.UID, err)
		}
		if uid, euid, suid := unix.Getresuid(); uid != spec.UID || euid != spec.UID || suid != spec.UID {
			return nil, fmt.Errorf("becoming user %d: it is user %d still", spec.UID, euid)
		}
		if err := tieToHost(); err != nil {
			return nil, err
		}
	}
	if err := dropCapabilities(); err != nil {
		return nil, fmt.Errorf("dropping capabilities: %w", err)
	}
	// The program has our user: it must not look into us.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("hiding the launcher: %w", err)
	}
	if !unprivileged() { // else it was so when this process began, and is for each of its threads
		if err := everyThread(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0); err != nil {
			return nil, fmt.Errorf("giving up new privileges: %w", err)
		}
	}
	if !spec.Fresh { // then what the program leaves behind comes to us
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	files, err := landlock(spec)
	if err != nil {
		return nil, fmt.Errorf("landlock: %w", err)
	}
	calls, err := filter(spec.Limits.Watch, spec.Proxy != 0)
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w", err)
	}
	return append([]wire.Layer{files, calls, capabilitiesLayer(), privilegesLayer()}, limited...), nil
}

// everyThread makes a system call on every thread of this process. Where the
// host is its own launcher and was built with cgo, that cannot be done: then it
// is made on this thread, which forks the program. The other threads run nothing
// that the program says, and are out of its reach.
func everyThread(trap, a, b, c uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall(trap, a, b, c)
	if errno == unix.ENOTSUP && cgo() {
		errno = raw(trap, a, b, c)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// cgo reports whether this program was built with it: then the system call is
// never made, and this one, which does nothing, fails in the same way.
func cgo() bool {
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0)
	return errno == unix.ENOTSUP
}

// lastCapability is the highest number that is asked for; the kernel says
// where its own end.
const lastCapability = 63

func dropBounding() error {
	for c := uintptr(0); c <= lastCapability; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		switch {
		case errors.Is(err, unix.EINVAL): // the kernel has no such capability
			return nil
		case errors.Is(err, unix.EPERM): // we have none to begin with; nothing is gained by exec without new privileges
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// dropCapabilities gives up all of them: the ambient ones too, which the kernel keeps among the permitted. A process that was
// root and became another user has none left, on any thread.
func dropCapabilities() error {
	if none, err := capabilities(); err == nil && none == 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return everyThread(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
}

// become changes the user and the group for good.
func become(uid, gid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return err
	}
	return syscall.Setresuid(uid, uid, uid)
}

func capabilitiesLayer() wire.Layer {
	layer := wire.Layer{Name: "capabilities"}
	switch left, err := capabilities(); {
	case err != nil:
		layer.Why = "they cannot be read: " + err.Error()
		return layer
	case left != 0:
		layer.Why = fmt.Sprintf("some are left: %x", left)
		return layer
	}
	for c := uintptr(0); c <= lastCapability; c++ {
		in, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_READ, c, 0)
		if errno != 0 {
			break
		}
		if in != 0 {
			layer.On, layer.Why = true, "the bounding set could not be emptied; no new privileges makes up for it"
			return layer
		}
	}
	layer.On = true
	return layer
}

// capabilities returns those of this thread, in whatever set.
func capabilities() (left uint64, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have [2]unix.CapUserData
	err = unix.Capget(&header, &have[0])
	for i, half := range have {
		left |= uint64(half.Effective|half.Permitted|half.Inheritable) << (32 * i)
	}
	return left, err
}

// unprivileged reports whether this thread can gain no privileges.
func unprivileged() bool {
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err == nil && set == 1
}

func privilegesLayer() wire.Layer {
	if !unprivileged() {
		return wire.Layer{Name: "no new privileges", Why: "the kernel does not confirm it"}
	}
	return wire.Layer{Name: "no new privileges", On: true}
}
