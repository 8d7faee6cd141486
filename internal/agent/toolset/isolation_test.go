package toolset

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/core/kernel"
	"github.com/mortise-dev/mortise/plugin"
)

type uncaged struct{ kernel.Runner }

func (uncaged) Isolation(*plugin.Target) string { return "none" }

// A script runs in the engine's own walls, whatever processes reach on this host.
func TestIsolationIsThatOfThePlugin(t *testing.T) {
	t.Parallel()
	r := Runners{Runner: uncaged{}, Scripts: &Scripts{}, Builtin: hosted{}}
	for kind, want := range map[string]string{"script": "full", "host": "full", "python": "none"} {
		target := &plugin.Target{Manifest: &plugin.Manifest{Runner: plugin.Runner{Kind: kind}}}
		if got := r.Isolation(target); got != want {
			t.Errorf("%s runs at %s, and is said to run at %s", kind, want, got)
		}
	}
}
