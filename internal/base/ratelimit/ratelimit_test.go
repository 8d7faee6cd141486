package ratelimit_test

import (
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/base/ratelimit"
)

func TestABucketFillsEvenlyUpToItsBurst(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := ratelimit.New[string](2, 3, 10)
	take := func(after time.Duration, cost float64, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		if wait := l.Take("a", cost, now); wait != want {
			t.Errorf("taking %g: wait %s, want %s", cost, wait, want)
		}
	}
	take(0, 3, 0)
	take(0, 1, 500*time.Millisecond)
	take(250*time.Millisecond, 1, 250*time.Millisecond)
	take(250*time.Millisecond, 1, 0)
	take(0, 0, 0)
	take(time.Hour, 4, 500*time.Millisecond) // more than a bucket holds
	take(-time.Hour, 3, 0)
	take(0, 0.5, 250*time.Millisecond)
	if wait := l.Take("b", 3, now); wait != 0 {
		t.Errorf("another key waits %s", wait)
	}
}

// What is given back can be taken again, and no bucket gets more than it holds.
func TestWhatIsGivenBackCanBeTaken(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := ratelimit.New[string](1, 2, 2)
	l.Give("unknown", 1)
	for range 5 {
		if wait := l.Take("a", 2, now); wait != 0 {
			t.Fatalf("it waits %s", wait)
		}
		l.Give("a", 1)
		l.Give("a", 5)
	}
	l.Take("a", 2, now)
	if wait := l.Take("a", 1, now); wait != time.Second || l.Len() != 1 {
		t.Errorf("it waits %s; %d keys are remembered", wait, l.Len())
	}
}

func TestTheKeyUsedLeastRecentlyIsForgotten(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := ratelimit.New[int](1, 1, 2)
	l.Take(1, 1, now)
	l.Take(2, 1, now)
	l.Take(1, 1, now)
	l.Take(3, 1, now)
	if l.Len() != 2 {
		t.Errorf("%d keys are remembered", l.Len())
	}
	if l.Take(1, 1, now) == 0 {
		t.Error("a key in use was forgotten")
	}
	if l.Take(2, 1, now) != 0 {
		t.Error("the least recent key was not forgotten")
	}
}

// Other numbers hold from the next request on, and what was taken stays taken.
func TestTheNumbersOfABucketChange(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := ratelimit.New[string](1, 10, 10)
	l.Take("a", 10, now)
	l.Set(2, 4)
	if wait := l.Take("a", 2, now); wait != time.Second {
		t.Errorf("it waits %s; what was taken is given back, or the rate is the old one", wait)
	}
	if wait := l.Take("b", 5, now); wait == 0 {
		t.Error("the old burst is in force")
	}
	if rate, burst := l.Bounds(); rate != 2 || burst != 4 {
		t.Errorf("its numbers are %g and %g", rate, burst)
	}
}
