package cli_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

func init() { commands["until"] = until }

// until runs a command again and again until its standard output matches.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	var out, errs *bytes.Buffer
	matched := poll(func() bool {
		var cmd *exec.Cmd
		cmd, out, errs = command(ts, args[1:])
		_ = cmd.Run() // it may fail before it matches
		return pattern.Match(out.Bytes())
	})
	if !matched {
		ts.Fatalf("%q never came:\n%s%s", args[0], out, errs)
	}
	fmt.Fprint(ts.Stdout(), out)
	fmt.Fprint(ts.Stderr(), errs)
}

// poll returns true as soon as holds does, or false after [testwait.Limit].
func poll(holds func() bool) bool {
	deadline := time.Now().Add(testwait.Limit)
	for range time.Tick(10 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			break
		}
	}
	return false
}
