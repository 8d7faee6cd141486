package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/testwait"
)

// trees are what runs when a host is killed: processes of every sort, that hold
// its pipes or have none, with a session of their own, forked twice, stopped,
// deaf to signals.
var trees = []trial{
	{row: row{program: "go", name: "leaves a child"}, param: "held|3"},
	{row: row{program: "go", name: "leaves a child, hangs"}, param: "stopped|2"},
	{row: row{program: "go", name: "leaves a daemon"}, param: "held|3"},
	{row: row{program: "go", name: "leaves a daemon, hangs"}, param: "closed|3"},
	{row: row{program: "go", name: "leaves a daemon, exits"}, param: "held|3"},
	{row: row{program: "go", name: "leaves a daemon"}, param: "stopped|2"},
	{row: row{program: "go", name: "ignores signals, hangs"}},
	{row: row{program: "go", name: "stops itself"}},
	{row: row{program: "go", name: "both pipes full"}},
	{row: row{program: "python", name: "forks"}, param: "1"},
	{row: row{program: "python", name: "busy"}},
	{row: row{program: "node", name: "detached"}},
	{row: row{program: "node", name: "blocks"}},
	{row: row{program: "shell", name: "orphan"}},
	{row: row{program: "shell", name: "deaf"}},
}

// A host that is killed leaves nothing behind, whatever its plugins were at:
// two seconds later no process of theirs is there.
func TestNothingOutlivesAKilledHost(t *testing.T) {
	dir := newHome(t)
	h := start(t, dir)
	level := h.level
	h.close(t)
	if level != "full" {
		t.Skipf("only a full cage holds what has left its parent, and the isolation level is %s", level)
	}
	rounds := wanted(t, "MORTISE_HOSTILE_KILLS", 20)
	seen, slowest := 0, time.Duration(0)
	for round := range rounds {
		h := launch(t, dir)
		for n, tree := range trees {
			if dir.missing[tree.program] != "" || (n+round)%3 == 0 {
				continue
			}
			session, _ := h.begin(&tree)
			go func() {
				_, _ = h.ask(line{Do: "call", Operation: operation(&tree), Session: session, MS: 20_000, Input: []byte("{}")})
			}()
		}
		// Kill it once there are some, at any moment after.
		for begun := time.Now(); len(marked(dir.dir, h.cmd.Process.Pid)) < 8 && time.Since(begun) < 3*time.Second; {
			<-time.After(20 * time.Millisecond)
		}
		testwait.RandomMoment(300 * time.Millisecond)
		before := marked(dir.dir, h.cmd.Process.Pid)
		seen += len(before)
		if err := h.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		killed := time.Now()
		left := before
		for len(left) > 0 && time.Since(killed) < 2*time.Second {
			<-time.After(5 * time.Millisecond)
			left = marked(dir.dir)
		}
		slowest = max(slowest, time.Since(killed))
		if len(left) > 0 {
			t.Errorf("round %d: 2 s after the host was killed %d of %d processes are there: %s", round, len(left), len(before), describe(left))
			killMarked(dir.dir)
		}
		<-h.ended
	}
	t.Logf("%d kills with %d processes of plugins running; the slowest to be gone took %s", rounds, seen, slowest.Round(time.Millisecond))
	if seen < 8*rounds {
		t.Errorf("only %d processes of plugins were there in %d rounds: too few to tell anything", seen, rounds)
	}
}

// describe names processes.
func describe(pids []int) string {
	var texts []string
	for _, pid := range pids[:min(len(pids), 5)] {
		args, _ := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "cmdline"))
		texts = append(texts, fmt.Sprintf("%d %q", pid, strings.ReplaceAll(string(args), "\x00", " ")))
	}
	return strings.Join(texts, "; ")
}
