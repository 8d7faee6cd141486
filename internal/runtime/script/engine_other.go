//go:build !((linux || darwin) && (amd64 || arm64))

package script

import (
	"runtime"

	"github.com/mortise-dev/mortise/plugin"
)

// newEngine refuses: without a way to take memory back from code that does not
// stop, there would be no wall.
func newEngine(host, Limits) (engine, error) {
	return nil, plugin.Errorf(plugin.CodeIsolationUnavailable,
		"plugins in TypeScript cannot be contained on %s/%s: run the host on Linux or macOS, or write the plugin as a process", runtime.GOOS, runtime.GOARCH)
}
