package serve

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// tour is `make run` without the building, on a data directory of its own.
func tour(t *testing.T, home, log string) *exec.Cmd {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mortise")
	if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\nexec %q mortise \"$@\"\n", self(t)), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "../../docs/tour.sh", log)
	cmd.Env = append(os.Environ(), "MORTISE="+program, "MORTISE_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func tourHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, ".mortise")
}

// ended fails if a host still serves a data directory, or its ledger does not hold.
func ended(t *testing.T, home string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(home, "serve.lock")); !os.IsNotExist(err) {
		t.Errorf("a host serves %s: %v", home, err)
	}
	if out, err := exec.Command(self(t), "mortise", "--home", home, "ledger", "verify").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// `make run` prints what README.md shows of it, calls over the API with a token of its own,
// and leaves no host and no token behind. A log that is too long for one request is cut.
func TestTheTourIsAsTheReadmeShowsIt(t *testing.T) {
	home, log := tourHome(t), filepath.Join(t.TempDir(), "app.log")
	if err := os.WriteFile(log, []byte(strings.Repeat("user 7 logged in from 192.0.2.1\n", 100_000)+"disk full\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	raw, err := tour(t, home, log).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	out := string(raw)
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, found := strings.Cut(string(readme), "is all of it:\n\n```text\n")
	shown, _, _ = strings.Cut(shown, "```")
	if !found {
		t.Fatal("the page shows no tour")
	}
	rest := strings.Split(out, "\n")
	for line := range strings.Lines(shown) {
		form := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSuffix(line, "\n")), "…", ".*") + "$")
		at := 0
		for at < len(rest) && !form.MatchString(rest[at]) {
			at++
		}
		if at == len(rest) {
			t.Fatalf("it does not print, after what is shown before it, %s%s", line, out)
		}
		rest = rest[at+1:]
	}
	if !strings.Contains(out, "these are its last 2000000 bytes") || !strings.Contains(out, "disk full") {
		t.Errorf("it prints %s", out)
	}
	ended(t, home)
	listed, err := exec.Command(self(t), "mortise", "--home", home, "tokens", "list").CombinedOutput()
	if err != nil || !strings.Contains(string(listed), "revoked") || strings.Contains(string(listed), "in force") {
		t.Errorf("%v: %s", err, listed)
	}
	entries, err := exec.Command(self(t), "mortise", "--home", home, "ledger", "list", "--kind", "call.succeeded", "--json").CombinedOutput()
	if err != nil || !strings.Contains(string(entries), `"origin":"api"`) {
		t.Errorf("the call was not made over the API: %v %s", err, entries)
	}
	// A second one works on the same data; without a log it says what it needs.
	if raw, err := tour(t, home, log).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, raw)
	}
	raw, err = tour(t, home, "").CombinedOutput()
	if err == nil || string(raw) != "no readable system log was found; name one: make run LOG=path\n" {
		t.Errorf("without a log: %v %s", err, raw)
	}
}

// Ctrl-C ends the tour and its host, in good order.
func TestTheTourIsEndedByCtrlC(t *testing.T) {
	home, log := tourHome(t), filepath.Join(t.TempDir(), "app.log")
	if err := os.WriteFile(log, []byte("disk full\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := tour(t, home, log)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	serves := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "a host serves") {
			serves = true
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil { // to all of them, as a terminal does
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); !serves || status != 130 {
		t.Errorf("it serves: %v; it ends with %d, %v", serves, status, err)
	}
	ended(t, home)
}
