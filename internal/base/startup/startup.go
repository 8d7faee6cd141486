// Package startup keeps the collector of garbage from running before main.
//
// The initialisers of all packages together allocate some megabytes, nearly all of which stays. A
// collection among them finds nothing, and wakes every thread for it. The package imports little
// and so is initialised before nearly all others.
package startup

import (
	"math"
	"runtime/debug"
)

// asked is what GOGC says, or 100.
var asked = debug.SetGCPercent(-1)

// short is the percentage for a command, which ends before much of what it allocates is garbage.
const short = 400

// Command lets garbage be collected from here on, as is best for a command that ends soon, unless
// GOGC says otherwise.
func Command() { debug.SetGCPercent(percent(asked, short)) }

// Serve lets garbage be collected as GOGC says, as is best for what stays.
func Serve() { debug.SetGCPercent(asked) }

func percent(asked, own int) int {
	const standard = 100
	if asked != standard || debug.SetMemoryLimit(-1) != math.MaxInt64 { // chosen by who started it
		return asked
	}
	return own
}
