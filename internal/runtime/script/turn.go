package script

import (
	"context"
	"sync/atomic"
	"time"
)

// A turn is a lock, held by one goroutine at a time. A goroutine that arrives while
// others wait does not overtake them.
type turn struct {
	taken   atomic.Bool
	waiting atomic.Int32
	given   chan struct{} // has room for one: a waiter may try
}

func newTurn() *turn { return &turn{given: make(chan struct{}, 1)} }

// try takes the turn if it is free and has no waiters.
func (t *turn) try() bool { return t.waiting.Load() == 0 && t.taken.CompareAndSwap(false, true) }

// wait takes the turn, for limit at most; 0 is for as long as it takes. It
// reports false if it did not get it.
func (t *turn) wait(ctx context.Context, limit time.Duration) bool {
	before := t.waiting.Add(1) - 1
	defer t.waiting.Add(-1)
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	for before > 0 || !t.taken.CompareAndSwap(false, true) {
		before = 0 // goroutines that came later have had to wait as well
		select {
		case <-t.given:
		case <-ctx.Done():
			return false
		case <-late:
			return false
		}
	}
	return true
}

// give releases the turn. A goroutine that begins to wait either sees it free or is
// seen here.
func (t *turn) give() {
	t.taken.Store(false)
	if t.waiting.Load() > 0 {
		select {
		case t.given <- struct{}{}:
		default:
		}
	}
}
