package crash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// A live is a host that runs while its disk fails.
type live struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	errs bytes.Buffer
}

func start(t *testing.T, cmd *exec.Cmd, env ...string) *live {
	t.Helper()
	l := &live{t: t, cmd: cmd}
	cmd.Env = append(append(os.Environ(), "MORTISE_HOME=", "MORTISE_CONFIG=", "MORTISE_DATABASE="), env...)
	cmd.Stderr = &l.errs
	var err error
	if l.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.out = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		t.Skipf("a file system of its own cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	patience := 8 * time.Minute
	if kills() > 60 {
		patience = 3 * time.Hour
	}
	timeout := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { timeout.Stop() })
	return l
}

// make makes calls, and returns the answers by key.
func (l *live) make(lines []line) map[string]answer {
	l.t.Helper()
	for _, one := range lines {
		raw, _ := json.Marshal(one)
		if _, err := l.in.Write(append(raw, '\n')); err != nil {
			l.t.Fatalf("the host is gone: %v: %s", err, l.errs.String())
		}
	}
	answers := map[string]answer{}
	for len(answers) < len(lines) && l.out.Scan() {
		var a answer
		if json.Unmarshal(l.out.Bytes(), &a) == nil && a.Key != "" {
			answers[a.Key] = a
		}
	}
	if len(answers) < len(lines) {
		l.t.Fatalf("%d of %d calls were answered: %s", len(answers), len(lines), l.errs.String())
	}
	return answers
}

func orders(prefix string) (lines []line) {
	for i, op := range []string{"deposit", "wire", "raw", "deposit", "wire", "raw", "raw", "wire"} {
		lines = append(lines, line{Operation: op, Key: fmt.Sprintf("%s-%d", prefix, i), Times: 1 + i%3})
	}
	return lines
}

// happened counts the effects of one order.
func (c *trial) happened(l line) (n int) {
	c.t.Helper()
	counted, err := c.counted()
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range l.Times {
		count := counted[fmt.Sprintf("%s/%d", l.Key, i)]
		if count > 1 {
			c.t.Errorf("effect %d of %s %s happened %d times", i, l.Operation, l.Key, count)
		}
		n += count
	}
	return n
}

// No call whose effect reached the other side is called failed: a caller that is told
// so makes it again. It is unknown, or the host resumes it.
func (c *trial) neverFailed(when string, lines []line, answers map[string]answer) {
	c.t.Helper()
	for _, l := range lines {
		a, n := answers[l.Key], c.happened(l)
		c.ended[a.Status]++
		switch {
		case a.Status == "failed" && n > 0:
			c.t.Errorf("%s: %s %s failed (%s: %s) and %d of its effects happened", when, l.Operation, l.Key, a.Code, a.Message, n)
		case a.Status == "succeeded" && n < l.Times:
			c.t.Errorf("%s: %s %s succeeded and %d of its effects happened", when, l.Operation, l.Key, n)
		case a.Status == "failed" && a.Code == "internal" && when != "with a broken disk":
			c.t.Errorf("%s: %s %s was refused as %s: %s", when, l.Operation, l.Key, a.Code, a.Message)
		}
	}
}

// levels is how much room a disk has left, in KiB, when calls are made.
// MORTISE_CRASH_ROUNDS above 60 makes it every KiB.
func levels() (all []int) {
	step := 100
	if kills() > 60 {
		step = 1
	}
	for left := 0; left <= 400; left += step {
		all = append(all, left)
	}
	return all
}

func TestAFullDiskNeverTurnsAnEffectIntoAFailureAndItGoesOnByItself(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("mounting a file system of its own needs root")
	}
	c := newCampaign(t, "", "")
	cmd := exec.Command("sh", "-ec", `cp -a "$1" "$2"; mount -t tmpfs -o size=64m none "$1"; cp -a "$2/." "$1"; exec "$0" once "$1" ""`, host(t), c.home, filepath.Join(t.TempDir(), "copy"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	l := start(t, cmd)
	for key, a := range l.make(orders("warm")) {
		if a.Status != "succeeded" {
			t.Fatalf("%s is %s: %s %s", key, a.Status, a.Code, a.Message)
		}
	}
	home := fmt.Sprintf("/proc/%d/root%s", cmd.Process.Pid, c.home)
	var refused int
	for _, left := range levels() {
		when := fmt.Sprintf("with %d KiB left", left)
		fill(t, home, int64(left)<<10)
		lines := orders(fmt.Sprintf("full%d", left))
		answers := l.make(lines)
		c.neverFailed(when, lines, answers)
		for _, a := range answers {
			if a.Status == "failed" && a.Code == "unavailable" && strings.Contains(a.Message, "disk") {
				refused++
			}
		}
		if err := os.Remove(filepath.Join(home, "filler")); err != nil {
			t.Fatal(err)
		}
		// It goes on by itself, and under the same keys nothing happens twice.
		again := lines
		testwait.Until(t, when+", and then room: every call ends", func() bool {
			var open []line
			answers := l.make(again)
			c.neverFailed(when+", and then room", again, answers)
			for _, o := range again {
				if s := answers[o.Key].Status; s != "succeeded" && s != "unknown" {
					open = append(open, o)
				}
			}
			again = open
			return len(open) == 0
		})
	}
	t.Logf("%v, %d refused for want of room", c.ended, refused)
	if refused == 0 {
		t.Error("no call was refused for want of room: the disk was never full")
	}
	l.in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the host ended with %v: %s", err, l.errs.String())
	}
}

// fill leaves so many bytes on the disk of a directory.
func fill(t *testing.T, dir string, leave int64) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var disk syscall.Statfs_t
	if err := syscall.Fstatfs(int(f.Fd()), &disk); err != nil {
		t.Fatal(err)
	}
	if size := int64(disk.Bavail)*disk.Bsize - leave; size > 0 {
		if err := syscall.Fallocate(int(f.Fd()), 0, 0, size); err != nil {
			t.Fatal(err)
		}
	}
}

// A disk that is gone at the nth commit, before it or after, is the end of a
// host's writing. What it answers then, and what the next host makes of the
// record, never calls an effect a failure.
func TestABrokenDiskNeverTurnsAnEffectIntoAFailure(t *testing.T) {
	t.Parallel()
	step := 13
	if kills() > 60 {
		step = 1
	}
	c := newCampaign(t, "", "")
	for i, n := 0, 1; n <= 60; i, n = i+1, n+step {
		point := []string{"commit", "committed"}[i%2]
		lines := orders(fmt.Sprintf("broken%d", n))
		l := start(t, exec.Command(host(t), "once", c.home, ""), fmt.Sprintf("MORTISE_FAULT_ERR=%s:%d", point, n))
		for _, one := range lines {
			raw, _ := json.Marshal(one)
			_, _ = l.in.Write(append(raw, '\n'))
		}
		l.in.Close()
		answers := map[string]answer{}
		for l.out.Scan() {
			var a answer
			if json.Unmarshal(l.out.Bytes(), &a) == nil && a.Key != "" {
				answers[a.Key] = a
			}
		}
		_ = l.cmd.Wait()
		if len(answers) == 0 && !strings.Contains(l.errs.String(), "stopped writing") {
			t.Fatalf("no answer, and no reason: %s", l.errs.String())
		}
		if len(answers) > 0 {
			c.neverFailed("with a broken disk", lines, answers)
		}
		again, _, err := c.run(lines, "none", 0)
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]answer{}
		for _, a := range again {
			by[a.Key] = a
		}
		c.neverFailed("after the disk was repaired", lines, by)
	}
	t.Logf("%v", c.ended)
}
