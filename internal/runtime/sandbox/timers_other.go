//go:build !linux

package sandbox

// coarsenTimers does nothing: only Linux has a slack of timers that a program inherits.
func coarsenTimers() {}
