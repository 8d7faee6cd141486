package sandbox_test

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// A program, and what that starts, has coarser timers than the host, however it was started.
func TestTimersOfPluginsFireTogether(t *testing.T) {
	const script = "cat /proc/self/timerslack_ns"
	ways := map[string]func(testing.TB) *sandbox.Sandbox{
		"plain": func(t testing.TB) *sandbox.Sandbox { return newSandbox(t, sandbox.Off) },
	}
	for name, way := range sandboxes {
		ways[name] = way
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			s := way(t)
			if got := run(t, s, shell(t, script)); !got.OK() || got.out != "500000\n" {
				t.Errorf("the slack is %q ns: %v %s", got.out, got.State, got.err)
			}
			if got := run(t, s, self(t, "clock")); !got.OK() || got.out != "20000\n" {
				t.Errorf("a slack that a program sets itself is %q ns: %v %s", got.out, got.State, got.err)
			}
		})
	}
}

// clock is a program that needs finer timers.
func clock([]string) {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 20_000, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	fmt.Println(slack)
	if err != nil {
		os.Exit(1)
	}
}
