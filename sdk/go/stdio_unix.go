//go:build unix

package mortise

import (
	"os"

	"golang.org/x/sys/unix"
)

// claimStdio takes descriptors 0 and 1 for the protocol and leaves an empty
// input and the standard error in their place, so that nothing the plugin or
// its children print can break a frame. Both ends are pipes of this process
// alone, and non-blocking: a goroutine that waits for them holds no thread.
func claimStdio() (in, out *os.File, err error) {
	files := [2]*os.File{}
	for fd, name := range []string{"protocol in", "protocol out"} {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			return nil, nil, err
		}
		_ = unix.SetNonblock(own, true)
		files[fd] = os.NewFile(uintptr(own), name)
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	if err := unix.Dup2(null, 0); err != nil {
		return nil, nil, err
	}
	_ = unix.Close(null)
	if err := unix.Dup2(2, 1); err != nil {
		return nil, nil, err
	}
	return files[0], files[1], nil
}
