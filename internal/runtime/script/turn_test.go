package script

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestATurnIsHadByOneAtATime(t *testing.T) {
	turn, had, inside := newTurn(), 0, 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				if !turn.try() && !turn.wait(context.Background(), time.Minute) {
					t.Error("the turn did not come")
					return
				}
				if inside++; inside != 1 {
					t.Errorf("%d have the turn", inside)
				}
				had++
				inside--
				turn.give()
			}
		})
	}
	all.Wait()
	if had != 8*500 || !turn.try() {
		t.Errorf("it was had %d times, and is not free again", had)
	}
}

func TestWaitingForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turn := newTurn()
		if !turn.try() || turn.try() {
			t.Fatal("a turn is free, and then it is not")
		}
		if turn.wait(context.Background(), time.Millisecond) {
			t.Error("the turn of another was had")
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if turn.wait(ctx, time.Minute) {
			t.Error("the turn of another was had after the end")
		}
		came := make(chan bool)
		go func() { came <- turn.wait(context.Background(), time.Minute) }()
		if synctest.Wait(); turn.waiting.Load() != 1 {
			t.Fatal("it does not wait")
		}
		turn.give()
		if !<-came || turn.try() {
			t.Error("the waiter did not get the turn")
		}
	})
}
