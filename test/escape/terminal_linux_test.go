//go:build linux && amd64

package escape

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// terminal opens a terminal for hosts to have, so that there is one to reach. Its
// other side must stay open as long.
func terminal() (inside, outside *os.File, err error) {
	outside, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(outside.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(outside.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		inside, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		outside.Close()
		return nil, nil, err
	}
	return inside, outside, nil
}
