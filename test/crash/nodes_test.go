package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
)

// Two hosts share one PostgreSQL. One is killed in the middle of a plan; the
// other takes the plan to its end, repeats no effect and runs no finished step
// again.
func TestAPlanOutlivesItsNode(t *testing.T) {
	t.Parallel()
	database := pgtest.Open(t)
	first := newCampaign(t, database, "")
	second := newCampaign(t, database, "")
	second.receiver = first.receiver

	one := first.node(t)
	first.shareWith(second)
	submitted := first.command("submit", "slow")
	var out, errs bytes.Buffer
	submitted.Stdout, submitted.Stderr = &out, &errs
	if err := submitted.Start(); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "two steps have had their effect", func() bool { return first.count(t) >= 2 })
	before := first.count(t)
	if before >= 6 {
		t.Fatalf("%d steps had their effect before the node was killed", before)
	}
	if err := one.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	two := second.node(t)
	if err := submitted.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	_ = two.Process.Kill()

	var end struct {
		State    string           `json:"state"`
		Attempts map[string]int64 `json:"attempts"`
	}
	if err := json.Unmarshal(out.Bytes(), &end); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if end.State != "succeeded" || len(end.Attempts) != 6 {
		t.Errorf("%s", out.String())
	}
	again := 0
	for _, attempts := range end.Attempts {
		if attempts > 1 {
			again++
		}
	}
	if again > 1 { // only the one that was running
		t.Errorf("%d steps were run again: %v", again, end.Attempts)
	}
	counts, err := first.counted()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if n := counts[fmt.Sprintf("slow-%d/0", i)]; n != 1 {
			t.Errorf("the effect of step %d happened %d times", i, n)
		}
	}
	t.Logf("killed after %d effects; attempts: %v", before, end.Attempts)
}

// shareWith gives another data directory what nodes of one database share: the
// configuration, and the key that signs the ledger.
func (c *trial) shareWith(to *trial) {
	c.t.Helper()
	for _, name := range []string{"mortise.yaml", "test.cedar", store.KeyFile} {
		text, err := os.ReadFile(c.home + "/" + name)
		if err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(to.home+"/"+name, text, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *trial) command(mode string, more ...string) *exec.Cmd {
	cmd := exec.Command(host(c.t), append([]string{mode, c.home, c.database}, more...)...)
	cmd.Env = append(os.Environ(), "MORTISE_FAULT_AT=", "MORTISE_HOME=", "MORTISE_CONFIG=", "MORTISE_DATABASE=")
	return cmd
}

// node starts a host that does what is waiting.
func (c *trial) node(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := c.command("node")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("a node said: %s", errs.String())
		}
	})
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil || strings.TrimSpace(string(line[:n])) == "" {
		t.Fatalf("the node did not start: %v: %s", err, errs.String())
	}
	return cmd
}

// count is how many effects reached the other side.
func (c *trial) count(t *testing.T) (n int) {
	t.Helper()
	counts, err := c.counted()
	if err != nil {
		t.Fatal(err)
	}
	for _, times := range counts {
		n += times
	}
	return n
}
