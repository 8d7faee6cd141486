//go:build !race

package schedule_test

// watched is the number of zones in which the reference walks the clock minute by
// minute.
const watched = 6
