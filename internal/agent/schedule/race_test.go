//go:build race

package schedule_test

// watched is the number of zones in which the reference walks the clock minute by
// minute: computing takes ten times longer here.
const watched = 1
