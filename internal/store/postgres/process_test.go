package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/plugin"
)

// The test binary runs itself as another node of the same database.
const role = "MORTISE_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := node(os.Args[1], os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

const shortLease = 3 * time.Second

// node claims a call, prints its id, and at every line of its input settles it
// and prints how that ended.
func node(url, home string) error {
	ctx := context.Background()
	st, err := postgres.Open(ctx, url, postgres.Options{Home: home, Lease: shortLease})
	if err != nil {
		return err
	}
	row := running(st.Node())
	if err := st.Write(ctx, claim(row)); err != nil {
		return err
	}
	fmt.Println(row.ID, st.Node())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var won bool
		err := st.Write(ctx, settle(row, &won))
		fmt.Println("lapsed", errors.Is(err, store.ErrLapsed), "done", err == nil, "won", won)
	}
	return st.Close()
}

type child struct {
	*exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	call, row string // the ids of its call and its node
}

func startNode(t *testing.T, url, home string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(self, url, home)}
	c.Env = append(os.Environ(), role+"=node")
	c.Stderr = os.Stderr
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	if _, err := fmt.Fscanln(c.out, &c.call, &c.row); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *child) settle(t *testing.T) string {
	t.Helper()
	fmt.Fprintln(c.in)
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// recoverSoon calls Recover until it has recovered a dead node.
func recoverSoon(t *testing.T, led *ledger.Ledger) {
	t.Helper()
	for deadline := time.Now().Add(10 * shortLease); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		n, err := led.Recover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
	t.Fatal("no node was recovered")
}

func state(t *testing.T, st store.Store, id string) store.CallState {
	t.Helper()
	row, err := st.Call(t.Context(), "t", id)
	if err != nil || row == nil {
		t.Fatal(row, err)
	}
	return row.State
}

func TestStoppedNodeIsFenced(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	st := open(t, url, postgres.Options{Home: home})
	write(t, st)
	led, err := ledger.Open(t.Context(), st, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := startNode(t, url, home)
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if n, err := led.Recover(t.Context()); n != 0 || err != nil {
		t.Errorf("recovered %d, %v while its lease holds", n, err)
	}
	recoverSoon(t, led)
	if got := state(t, st, c.call); got != store.CallUnknown {
		t.Errorf("its call is %s", got)
	}
	if err := c.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got, want := c.settle(t), "lapsed true done false won false"; got != want {
		t.Errorf("its late write: %s, want %s", got, want)
	}
	if got, want := c.settle(t), "lapsed false done true won false"; got != want {
		t.Errorf("and once more: %s, want %s", got, want)
	}
	if got := state(t, st, c.call); got != store.CallUnknown {
		t.Errorf("its call became %s", got)
	}
	c.in.Close()
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	verified(t, st, home)
	if err := led.Close(); err != nil {
		t.Error(err)
	}
}

func TestKilledNodeIsRecovered(t *testing.T) {
	t.Parallel()
	url, home := pgtest.Open(t), t.TempDir()
	st := open(t, url, postgres.Options{Home: home})
	led, err := ledger.Open(t.Context(), st, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := startNode(t, url, home)
	c.Process.Kill()
	c.Wait()
	recoverSoon(t, led)
	if got := state(t, st, c.call); got != store.CallUnknown {
		t.Errorf("its call is %s", got)
	}
	// What is known of the call is in two chains, and told in order.
	entries, err := ledger.Show(t.Context(), st, "", c.call)
	if err != nil || len(entries) != 2 || entries[0].Kind != plugin.EntryCallStarted || entries[1].Kind != plugin.EntryCallUnknown {
		t.Errorf("its entries are %+v, %v", entries, err)
	}
	unclean, err := ledger.List(t.Context(), st, ledger.Filter{Kind: string(plugin.EntryNodeUnclean)})
	if err != nil || len(unclean) != 1 || unclean[0].Subject != c.row {
		t.Errorf("the unclean ends are %+v, %v", unclean, err)
	}
	verified(t, st, home)
	if err := led.Close(); err != nil {
		t.Error(err)
	}
}
