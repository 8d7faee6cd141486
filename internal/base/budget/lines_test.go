package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However many lines are read at a time, their buffers stay within the room.
func TestLinesBeingReadStayWithinTheirRoom(t *testing.T) {
	var used, most atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			const size = 4<<20 + 1
			first := Line(lineLarge, nil, func() { t.Error("overdue") })
			leave := Line(size, nil, func() { t.Error("overdue") })
			now := used.Add(size)
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			used.Add(-size)
			leave()
			first()
			leave() // a second time does nothing
		})
	}
	all.Wait()
	if most.Load() > largeRoom || lines.used != 0 || large.used != 0 {
		t.Errorf("%d bytes were taken at a time, %d and %d are left", most.Load(), lines.used, large.used)
	}
}

// A line that is never finished keeps others waiting for a while and no longer;
// where no other waits it may take its time.
func TestAHalfLineCannotKeepTheRoomThatOthersWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{capacity: 10, patience: 50 * time.Millisecond}
		if !r.take(10, nil) {
			t.Fatal("there was no room")
		}
		overdue := make(chan struct{})
		end := r.watch(func() { close(overdue); r.give(10) })
		defer end()
		<-time.After(time.Hour)
		select {
		case <-overdue:
			t.Fatal("it was ended though no other waited")
		default:
		}
		if !r.take(5, nil) {
			t.Fatal("there was no room")
		}
		<-overdue
	})
}

// What waits for room for a process that has ended waits a moment only, and those
// behind it do not wait for it.
func TestAnEndedProcessWaitsForNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{capacity: 10}
		r.take(6, nil)
		exited := make(chan struct{})
		close(exited)
		small := make(chan bool)
		gone := make(chan bool)
		go func() { gone <- r.take(10, exited) }()
		if synctest.Wait(); len(r.waiting) != 1 {
			t.Fatalf("%d wait for room", len(r.waiting))
		}
		go func() { small <- r.take(4, nil) }()
		if <-gone {
			t.Error("there was room")
		}
		if !<-small {
			t.Error("there was none for the one behind")
		}
	})
}

// A call has the room of its result until it ends, or for a while.
func TestACallKeepsTheRoomOfItsResultUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int64
		leave := func() { left.Add(1) }
		ctx, held := Holding(context.Background())
		Keep(ctx, leave)
		if left.Load() != 0 {
			t.Error("the room was given back before the call ended")
		}
		held.Done()
		if left.Load() != 1 {
			t.Error("the room was not given back")
		}
		Keep(ctx, leave) // too late
		Keep(context.Background(), leave)
		if left.Load() != 3 {
			t.Error("what no call keeps was not given back")
		}
		ctx, held = Holding(context.Background())
		defer held.Done()
		once := sync.OnceFunc(leave)
		Keep(ctx, once)
		<-time.After(resultTime - time.Nanosecond)
		if left.Load() != 3 {
			t.Error("the room was given back before its time")
		}
		<-time.After(time.Nanosecond)
		if synctest.Wait(); left.Load() != 4 {
			t.Error("a call that does not end keeps the room")
		}
	})
}

// Events that wait are bounded over all calls; a single one always fits.
func TestEventsThatWaitAreBoundedOverAllCalls(t *testing.T) {
	if !Piece(2 * maxPieces) {
		t.Error("a single one was refused")
	}
	if Piece(1) {
		t.Error("another was taken beside it")
	}
	PieceTaken(2 * maxPieces)
	if !Piece(1) {
		t.Error("there is room again, and it was refused")
	}
	PieceTaken(1)
}
