package postgres_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestEachClosureRunsTwice holds the engine to its suite with every closure run again, in a
// process of its own.
func TestEachClosureRunsTwice(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^(TestStore)$", "-test.v", "-test.short")
	cmd.Env = append(os.Environ(), role+"="+runTwice)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

const runTwice = "run closures twice"
