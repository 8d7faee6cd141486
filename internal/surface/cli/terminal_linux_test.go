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

func init() {
	commands["terminal"] = terminal
	commands["typed"] = typed
}

// terminal runs a command whose output is a terminal of so many columns, and
// has what arrives there as its standard output.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	columns, err := strconv.Atoi(args[0])
	ts.Check(err)
	onTerminal(ts, neg, columns, "", args[1:])
}

// typed runs a command at a terminal of 200 columns and types the contents of a
// file there. The terminal echoes what is typed.
func typed(ts *testscript.TestScript, neg bool, args []string) {
	onTerminal(ts, neg, 200, ts.ReadFile(args[0]), args[1:])
}

func onTerminal(ts *testscript.TestScript, neg bool, columns int, input string, args []string) {
	ours, theirs := openTerminal(ts, columns)
	defer ours.Close()
	cmd, _, _ := command(ts, args)
	cmd.Stdout, cmd.Stderr = theirs, theirs
	if input != "" {
		cmd.Stdin = theirs
		_, err := io.WriteString(ours, input)
		ts.Check(err)
	}
	ts.Check(cmd.Start())
	theirs.Close()
	var seen bytes.Buffer
	_, _ = io.Copy(&seen, ours) // it ends with an error: the other side is closed
	err := cmd.Wait()
	fmt.Fprint(ts.Stdout(), seen.String())
	if (err != nil) != neg {
		ts.Fatalf("%v", err)
	}
}

// openTerminal opens a terminal of so many columns: the end of the user, and
// that of the program.
func openTerminal(ts *testscript.TestScript, columns int) (ours, theirs *os.File) {
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)
	fd := int(ours.Fd())
	ts.Check(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	ts.Check(err)
	ts.Check(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}))
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	ts.Check(err)
	return ours, theirs
}
