// Package startup lets a command collect garbage late: it is imported by the program alone, for its
// effect.
//
// The initialisers of all packages together allocate some megabytes, nearly all of which stays. A
// collection among them finds next to nothing, and wakes every thread for it. A command ends before
// much of what it allocates is garbage. The package imports little, and so is initialised before nearly
// all others. A server sets its own pace: see package budget.
package startup

import (
	"os"
	"runtime/debug"
)

// percent is how much a command allocates beside what lives before it collects: the first time at
// four times Go's four megabytes.
const percent = 400

func init() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" { // else it was chosen by who started it
		debug.SetGCPercent(percent)
	}
}
