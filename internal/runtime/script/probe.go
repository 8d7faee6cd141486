//go:build (linux || darwin) && (amd64 || arm64)

package script

import (
	"runtime/debug"
	"sync"

	"github.com/mortise-dev/mortise/plugin"
)

// probe tries the wall once before anything is put behind it: memory that was
// taken away must come back as an error of the goroutine that touched it.
var probe = sync.OnceValue(func() (err error) {
	a, mapErr := newArena(page)
	if mapErr != nil {
		return plugin.Errorf(plugin.CodeIsolationUnavailable, "plugins in TypeScript cannot be contained here: %w", mapErr)
	}
	defer a.unmap()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	err = plugin.Errorf(plugin.CodeIsolationUnavailable, "plugins in TypeScript cannot be contained here: memory that is taken away can still be read")
	defer func() {
		if recover() != nil {
			err = nil
		}
	}()
	a.revoke()
	a.head.refused++
	return err
})
