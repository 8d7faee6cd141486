// Package testwait waits for conditions in tests.
//
// Tests run on busy machines. A test therefore never sleeps for a time in which
// something should have happened: it waits for the condition itself. [Limit] is a
// safety net that ends a hung test. No test may depend on its length.
package testwait

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// Limit is the longest wait for one condition.
const Limit = 5 * time.Minute

// interval is the time between two checks of a condition.
const interval = 5 * time.Millisecond

// Until returns when holds returns true. It calls holds in the goroutine of the
// test, so holds may call t.Fatal. The test fails after [Limit]; condition then
// names what did not happen, for example "the queue is empty".
func Until(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	if holds() {
		return
	}
	deadline := time.NewTimer(Limit)
	defer deadline.Stop()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if holds() {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("the test ended before this condition held: %s", condition)
		case <-deadline.C:
			t.Fatalf("after %v this condition still does not hold: %s", Limit, condition)
		}
	}
}

// Receive returns the next value of c, or the zero value if c is closed. The
// test fails after [Limit]; value names what did not arrive.
func Receive[T any](t testing.TB, value string, c <-chan T) T {
	t.Helper()
	deadline := time.NewTimer(Limit)
	defer deadline.Stop()
	select {
	case v := <-c:
		return v
	case <-deadline.C:
		t.Fatalf("after %v this did not arrive: %s", Limit, value)
		panic("unreachable")
	}
}

// AtMost fails the test if the work took longer than limit. It does nothing under
// -short: `make test` also runs on busy machines, and `make test-long` measures.
func AtMost(t testing.TB, work string, took, limit time.Duration) {
	t.Helper()
	if !testing.Short() && took > limit {
		t.Errorf("%s took %v, want at most %v", work, took, limit)
	}
}

// Advance lets d pass on the fake clock of a synctest bubble and then waits until
// every other goroutine of the bubble is blocked. It panics outside of a bubble,
// so it never waits for real time.
func Advance(d time.Duration) {
	synctest.Wait() // panics outside of a bubble
	time.Sleep(d)
	synctest.Wait()
}

// RandomMoment returns after a random time below limit. Campaigns use it so that a
// fault comes at any moment; no result may depend on the moment.
func RandomMoment(limit time.Duration) {
	time.Sleep(rand.N(limit))
}

// Block never returns. A process that a test starts and kills calls it to stay. An
// empty select would not do: the runtime ends a program whose goroutines all wait.
func Block() {
	for {
		time.Sleep(time.Hour)
	}
}
