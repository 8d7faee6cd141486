package cli_test

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func init() { commands["dialogue"] = dialogue }

// dialogue runs a command on a terminal of 200 columns as the lines of a file say,
// and has what arrives there as its standard output:
//
//	wait TEXT   until that arrived, after what was waited for before
//	type TEXT   types it, and presses Enter
//	stop        presses Ctrl-C
//	end         presses Ctrl-D
//	exit N      the command ends with that status
func dialogue(ts *testscript.TestScript, _ bool, args []string) {
	ours, theirs := openTerminal(ts, 200)
	defer ours.Close()
	cmd, _, _ := command(ts, args[1:])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	ts.Check(cmd.Start())
	theirs.Close()

	var mu sync.Mutex
	var seen bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		for buf := make([]byte, 4096); ; {
			n, err := ours.Read(buf)
			mu.Lock()
			seen.Write(buf[:n])
			mu.Unlock()
			if err != nil {
				ended <- cmd.Wait()
				return
			}
		}
	}()
	fail := func(format string, args ...any) {
		_ = cmd.Process.Kill()
		mu.Lock()
		defer mu.Unlock()
		ts.Fatalf("%s; what arrived was\n%s", fmt.Sprintf(format, args...), seen.String())
	}
	at := 0 // up to where it was waited
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		do, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch do {
		case "wait":
			came := poll(func() bool {
				mu.Lock()
				defer mu.Unlock()
				found := bytes.Index(seen.Bytes()[at:], []byte(text))
				if found >= 0 {
					at += found + len(text)
				}
				return found >= 0
			})
			if !came {
				fail("%q never came", text)
			}
		case "type":
			_, err := ours.WriteString(text + "\n")
			ts.Check(err)
		case "end":
			_, err := ours.WriteString("\x04")
			ts.Check(err)
		case "stop":
			ts.Check(cmd.Process.Signal(syscall.SIGINT))
		case "exit":
			var err error
			select {
			case err = <-ended:
			case <-time.After(30 * time.Second):
				fail("it did not end")
			}
			var exit *exec.ExitError
			status := "0"
			if err != nil {
				ts.Check(asExit(err, &exit))
				status = fmt.Sprint(exit.ExitCode())
			}
			if status != text {
				fail("exit status %s, want %s", status, text)
			}
			fmt.Fprint(ts.Stdout(), seen.String())
			return
		}
	}
	fail("the dialogue says nothing of the end")
}

func asExit(err error, to **exec.ExitError) error {
	exit, ok := err.(*exec.ExitError)
	if !ok {
		return err
	}
	*to = exit
	return nil
}
