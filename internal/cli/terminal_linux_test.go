package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

func init() { commands["terminal"] = terminal }

// terminal runs a command whose output is a terminal of so many columns, and
// has what arrives there as its standard output.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	columns, err := strconv.Atoi(args[0])
	ts.Check(err)
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)
	defer ours.Close()
	fd := int(ours.Fd())
	ts.Check(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	ts.Check(err)
	ts.Check(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}))
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)

	cmd, _, _ := command(ts, args[1:])
	cmd.Stdout, cmd.Stderr = theirs, theirs
	ts.Check(cmd.Start())
	theirs.Close()
	var seen bytes.Buffer
	_, _ = io.Copy(&seen, ours) // it ends with an error: the other side is closed
	err = cmd.Wait()
	fmt.Fprint(ts.Stdout(), seen.String())
	if (err != nil) != neg {
		ts.Fatalf("%v", err)
	}
}
