//go:build !race

package schedule_test

// watched is in how many zones somebody watches the clock.
const watched = 6
