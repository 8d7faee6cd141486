//go:build !fault

// Package fault names the places where a test ends the process, and the guards
// that a test lifts to show that it would notice.
//
// Without the build tag fault, which no release has, all of it is nothing.
package fault

// Enabled reports whether this is a build for such tests.
const Enabled = false

// At ends the process if a test wants it to end here.
func At(string) {}

// Err returns what a test wants to fail here with; nil if it wants nothing.
func Err(string) error { return nil }

// Lifted reports whether a test wants to see what happens without this guard.
func Lifted(string) bool { return false }
