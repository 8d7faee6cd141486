// Command cage is the launcher of sandboxes as a small program of its own, which
// make build embeds in the host. It works on Linux only. Started by the host it
// never reaches main: see package launcher.
package main

import (
	"fmt"
	"os"

	_ "github.com/mortise-dev/mortise/internal/runtime/sandbox/launcher"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

func main() {
	fmt.Fprintln(os.Stderr, wire.ByHand)
	os.Exit(2)
}
