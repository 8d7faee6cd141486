//go:build race

package process_test

// The race detector keeps a process for a second after its end, to report what
// it found; that is too long for plugins whose end is being timed.
func init() { through = []string{"/usr/bin/env", "GORACE=atexit_sleep_ms=0"} }
