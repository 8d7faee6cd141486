package cli_test

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

func init() { commands["answered"] = answered }

// answered runs a command on a terminal and gives it an answer, from the lines
// of a file, each time it asks; stdout is all that arrived there. A line that
// begins with ! is a command to run in place of an answer.
func answered(ts *testscript.TestScript, neg bool, args []string) {
	ours, theirs := openTerminal(ts, 200)
	defer ours.Close()

	cmd, _, _ := command(ts, args[1:])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	ts.Check(cmd.Start())
	theirs.Close()
	stuck := time.AfterFunc(testwait.Limit, func() { _ = cmd.Process.Kill() })
	defer stuck.Stop()
	answers := strings.Split(ts.ReadFile(args[0]), "\n")
	answers = answers[:len(answers)-1] // what stands after the last line
	var seen, fresh bytes.Buffer
	for buf := make([]byte, 4096); ; {
		n, err := ours.Read(buf)
		seen.Write(buf[:n])
		fresh.Write(buf[:n])
		if err != nil {
			break // the other side is closed
		}
		hidden := strings.HasSuffix(fresh.String(), "(not shown): ")
		if !hidden && !strings.Contains(fresh.String(), "[y/N] ") || len(answers) == 0 {
			continue
		}
		if hidden {
			time.Sleep(300 * time.Millisecond) // wait until the terminal is quiet before typing
		}
		fresh.Reset()
		answer := answers[0]
		answers = answers[1:]
		if other, found := strings.CutPrefix(answer, "!"); found {
			ts.Check(ts.Exec("sh", "-c", other))
			continue
		}
		_, err = ours.WriteString(answer + "\n")
		ts.Check(err)
	}
	err := cmd.Wait()
	fmt.Fprint(ts.Stdout(), seen.String())
	if len(answers) > 0 {
		ts.Fatalf("no prompt asked for %q:\n%s", answers, seen.String())
	}
	if (err != nil) != neg {
		ts.Fatalf("%v", err)
	}
}
