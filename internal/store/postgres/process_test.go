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

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/postgres/pgtest"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
	"github.com/mortise-dev/mortise/plugin"
)

// The test binary runs itself as another node of the same database.
const role = "MORTISE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case runTwice:
		sqlstore.RunTwice()
		fallthrough
	case "":
		goleak.VerifyTestMain(m)
		return
	}
	if err := node(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// shortLease is the lease of a node whose lease ends by itself in a test.
const shortLease = 3 * time.Second

// node claims a call, prints its id, and at every line of its input settles it
// and prints how that ended.
func node(url, home, length string) error {
	ctx := context.Background()
	lease, err := time.ParseDuration(length)
	if err != nil {
		return err
	}
	st, err := postgres.Open(ctx, url, postgres.Options{Home: home, Lease: lease})
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

func startNode(t *testing.T, url, home string, lease time.Duration) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: exec.Command(self, url, home, lease.String())}
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
	c := startNode(t, url, home, longLease)
	if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if n, err := led.Recover(t.Context()); n != 0 || err != nil {
		t.Errorf("recovered %d, %v while its lease holds", n, err)
	}
	lapse(t, url, c.row)
	if n, err := led.Recover(t.Context()); n != 1 || err != nil {
		t.Errorf("recovered %d, %v after its lease, want the stopped node", n, err)
	}
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
	c := startNode(t, url, home, shortLease)
	c.Process.Kill()
	c.Wait()
	testwait.Until(t, "a dead node is recovered", func() bool {
		n, err := led.Recover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n > 0
	})
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
