//go:build race

package script

// slow is how many times longer code may take in tests: the race detector looks
// at each step of the engine.
const slow = 30
