package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/internal/store/sqlstore"
)

// The test binary runs itself as another process on the same database; role
// says as what.
const role = "MORTISE_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		goleak.VerifyTestMain(m)
	case runTwice:
		sqlstore.RunTwice()
		goleak.VerifyTestMain(m)
	case "write and hang":
		writeAndHang(os.Args[1])
	case "full disk":
		fullDisk(os.Args[1])
	}
}

// another starts this binary in a role.
func another(t *testing.T, as, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, dir)
	cmd.Env = append(os.Environ(), role+"="+as)
	cmd.Stderr = os.Stderr
	return cmd
}

// writeAndHang writes, says so, and never closes its books.
func writeAndHang(dir string) {
	st, err := sqlite.Open(context.Background(), dir, sqlite.Options{})
	if err == nil {
		err = st.Write(context.Background(), note)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(st.Node())
	testwait.Block()
}

func TestKilledNodeIsRecovered(t *testing.T) {
	dir := t.TempDir()
	st := open(t, dir)
	write(t, st)
	cmd := another(t, "write and hang", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var node string
	if _, err := fmt.Fscanln(out, &node); err != nil {
		t.Fatal(err)
	}
	var found []string
	recoverAll := func() int {
		t.Helper()
		n, err := st.Recover(t.Context(), func(tx store.Tx, row store.NodeRow) error {
			found = append(found, row.ID)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if recoverAll() != 0 {
		t.Fatalf("recovered %v while it lives", found)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if recoverAll() != 1 || found[0] != node {
		t.Fatalf("recovered %v, want %s", found, node)
	}
	if recoverAll() != 0 {
		t.Errorf("recovered again: %v", found)
	}
	locks, err := os.ReadDir(filepath.Join(dir, "nodes"))
	if err != nil || len(locks) != 1 {
		t.Errorf("locks are %v, %v, want this process's alone", locks, err)
	}
}

func TestOrphanedLockIsSwept(t *testing.T) {
	dir := t.TempDir()
	st := open(t, dir)
	path := filepath.Join(dir, "nodes", "01890a5d-ac96-774b-bcce-b302099a8057.lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Recover(t.Context(), func(store.Tx, store.NodeRow) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the lock is there: %v", err)
	}
}

// fullDisk lets no file grow any more, and prints how writing and reading end.
func fullDisk(dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	st, err := sqlite.Open(ctx, dir, sqlite.Options{})
	if err == nil {
		err = st.Write(ctx, note)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var limit syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit)
	info, err := os.Stat(filepath.Join(dir, sqlite.File+"-wal"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	small := limit
	small.Cur = uint64(info.Size())
	syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small)
	err = st.Write(ctx, note)
	fmt.Println("a write on a full disk is refused for good:", errors.Is(err, store.ErrFailed))
	syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
	err = st.Write(ctx, note)
	fmt.Println("and so is one after room was made:", errors.Is(err, store.ErrFailed))
	chains, err := st.Chains(ctx)
	fmt.Println("reading goes on:", err == nil && chains[0].Seq == 1)
	fmt.Println("closing says so:", errors.Is(st.Close(), store.ErrFailed))
	os.Exit(0)
}

func TestFailedCommitStopsTheStore(t *testing.T) {
	dir := t.TempDir()
	out, err := another(t, "full disk", dir).Output()
	if err != nil || strings.Contains(string(out), "false") || strings.Count(string(out), "true") != 4 {
		t.Errorf("%v\n%s", err, out)
	}
	st := open(t, dir)
	if chains, err := st.Chains(t.Context()); err != nil || chains[0].Seq != 1 {
		t.Errorf("afterwards chains are %v, %v", chains, err)
	}
	write(t, st)
}
