//go:build !fault

// Package fault names the places where a test ends the process, and the guards
// that a test lifts to show that it would notice.
//
// Without the build tag fault, which no release has, all of it is nothing.
package fault

import "errors"

// Enabled reports whether this is a build for such tests.
const Enabled = false

// At ends the process if a test wants it to end here.
func At(string) {}

// Err returns what a test wants to fail here with; nil if it wants nothing.
func Err(string) error { return nil }

// Arm has trouble begin that ends; without the tag there is none to be had.
func Arm(string) error { return errors.New("this build has no faults") }

// Begun reports whether the trouble that is armed has begun, and whether it is over.
func Begun() (begun, over bool) { return false, false }

// Pool is how many of something there are: n, or what a test wants.
func Pool(n int) int { return n }

// Lifted reports whether a test wants to see what happens without this guard.
func Lifted(string) bool { return false }
