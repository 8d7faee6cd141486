package sqlite_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/mortise-dev/mortise/internal/store"
)

// TestEachClosureRunsTwice holds the engine to its suite with every closure run again, in a
// process of its own.
func TestEachClosureRunsTwice(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^(TestStore|TestAClosureThatRunsAgainFindsNothing)$", "-test.v", "-test.short")
	cmd.Env = append(os.Environ(), role+"="+runTwice)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

const runTwice = "run closures twice"

// TestAClosureThatRunsAgainFindsNothing shows what such a process does.
func TestAClosureThatRunsAgainFindsNothing(t *testing.T) {
	if os.Getenv(role) != runTwice {
		t.Skip("of a process that runs closures twice")
	}
	st := open(t, t.TempDir())
	key := store.KVKey{Tenant: "t", Owner: "o", Scope: "s", Namespace: "n", Key: "k"}
	runs, seen := 0, 0
	if err := st.Write(t.Context(), func(tx store.Tx) error {
		runs++
		row, err := tx.KV(context.Background(), key)
		if err != nil {
			return err
		}
		if row != nil {
			seen++
		}
		return tx.PutKV(store.KVRow{KVKey: key, Value: []byte("1"), Labels: []string{}})
	}); err != nil {
		t.Fatal(err)
	}
	if runs != 2 || seen != 0 {
		t.Errorf("the closure ran %d times and %d times found what an earlier run wrote, want 2 and 0", runs, seen)
	}
}
