package cli_test

import (
	"fmt"
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { commands["until"] = until }

// until runs a command again and again, for half a minute at most, before its
// standard output matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		cmd, out, errs := command(ts, args[1:])
		_ = cmd.Run() // it may fail before it matches
		if pattern.Match(out.Bytes()) {
			fmt.Fprint(ts.Stdout(), out)
			fmt.Fprint(ts.Stderr(), errs)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q never came:\n%s%s", args[0], out, errs)
		}
	}
}
