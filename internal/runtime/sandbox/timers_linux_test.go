package sandbox_test

import (
	"testing"

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
			if got := run(t, way(t), shell(t, script)); !got.OK() || got.out != "500000\n" {
				t.Errorf("the slack is %q ns: %v %s", got.out, got.State, got.err)
			}
		})
	}
}
