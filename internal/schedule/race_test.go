//go:build race

package schedule_test

// watched is in how many zones somebody watches the clock: computing takes ten
// times longer here.
const watched = 1
