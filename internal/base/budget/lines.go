package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the lines that plugins are in the middle of, over all of them. A line
// is counted from [LineFree] bytes on, in one of two classes by the size of its
// buffer, so that a line that grows from one to the other waits for nothing that
// it has itself: lines of the first class wait for those of the second, and those
// for the plugin that writes.
const (
	LineFree   = 64 << 10 // what the buffer of a line may have and not be counted
	lineLarge  = 1 << 20  // up to which it is of the first class
	lineRoom   = 4 << 20  // of all buffers of the first class
	largeRoom  = 8<<20 + 4<<10
	lineTime   = 5 * time.Second        // for which a line keeps room that others wait for
	resultTime = 2 * time.Second        // for which a call keeps the room of its result
	exitedTime = 250 * time.Millisecond // for which what an ended process wrote still waits
)

var (
	lines = room{capacity: lineRoom}
	large = room{capacity: largeRoom}
)

// Line takes room for a buffer of that many bytes for a line, and returns what
// gives it back. It waits while other lines have the room; once exited is closed
// no longer than a moment, and returns nil if there was none until then. overdue is
// called if the line keeps what others wait for longer than [lineTime]: it must
// see to it that the line ends.
func Line(bytes int, exited <-chan struct{}, overdue func()) (leave func()) {
	if bytes <= LineFree {
		return func() {}
	}
	r := &lines
	if bytes > lineLarge {
		r = &large
	}
	bytes = min(bytes, r.capacity)
	if !r.take(bytes, exited) {
		return nil
	}
	Made(bytes)
	end := r.watch(overdue)
	return sync.OnceFunc(func() { end(); r.give(bytes) })
}

// A room is handed out in the order in which it is asked for.
type room struct {
	capacity int
	patience time.Duration // lineTime where it is 0

	mu      sync.Mutex // guards the rest
	used    int
	waiting []*request
}

func (r *room) take(n int, exited <-chan struct{}) bool {
	r.mu.Lock()
	if len(r.waiting) == 0 && r.used+n <= r.capacity {
		r.used += n
		r.mu.Unlock()
		return true
	}
	own := &request{n, make(chan struct{})}
	r.waiting = append(r.waiting, own)
	r.mu.Unlock()
	select {
	case <-own.ready:
		return true
	case <-exited:
	}
	select {
	case <-own.ready:
		return true
	case <-time.After(exitedTime):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, w := range r.waiting {
		if w == own {
			r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
			r.next() // those behind may need less
			return false
		}
	}
	return true // it was handed over meanwhile
}

func (r *room) give(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
	r.next()
}

// next hands out what there is. The lock is held.
func (r *room) next() {
	for len(r.waiting) > 0 && r.used+r.waiting[0].n <= r.capacity {
		own := r.waiting[0]
		r.waiting = r.waiting[1:]
		r.used += own.n
		close(own.ready)
	}
}

// watch calls overdue once time is up while others wait, unless it is ended first.
func (r *room) watch(overdue func()) (end func()) {
	patience := r.patience
	if patience == 0 {
		patience = lineTime
	}
	var mu sync.Mutex
	ended := false
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(patience, func() {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		r.mu.Lock()
		wanted := len(r.waiting) > 0
		r.mu.Unlock()
		if !wanted {
			timer.Reset(patience)
			return
		}
		go overdue()
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		timer.Stop()
	}
}

// A Holder keeps the room of results while a call works on them.
type Holder struct {
	answer *Answer // for which the call is made; nil for none
	mu     sync.Mutex
	ended  bool
	leaves []func()
}

type holderKey struct{}

// Holding has results of a call keep their room until [Holder.Done]; see [Keep].
// Where an answer is made of the call's own, until that has room itself.
func Holding(ctx context.Context) (held context.Context, h *Holder) {
	h = &Holder{answer: AnswerOf(ctx)}
	return context.WithValue(ctx, holderKey{}, h), h
}

// Done gives back the room, or hands it to the answer that is made of the results.
func (h *Holder) Done() {
	h.mu.Lock()
	leaves := h.leaves
	h.ended, h.leaves = true, nil
	h.mu.Unlock()
	if h.answer.adopt(leaves) {
		return
	}
	for _, leave := range leaves {
		leave()
	}
}

// Keep hands the room of a line to the call of ctx, which goes on with it. A call
// has it for [resultTime] at most, whatever it waits for then, so that no call can
// wait for room that it keeps itself.
func Keep(ctx context.Context, leave func()) {
	h, _ := ctx.Value(holderKey{}).(*Holder)
	if h == nil {
		leave()
		return
	}
	h.mu.Lock()
	ended := h.ended
	if !ended {
		timer := time.AfterFunc(resultTime, leave)
		h.leaves = append(h.leaves, func() { timer.Stop(); leave() })
	}
	h.mu.Unlock()
	if ended {
		leave()
	}
}

// pieces are the bytes of events that no caller took yet, of all calls.
var pieces atomic.Int64

// maxPieces bounds them, unless it is a single one.
const maxPieces = 6 << 20

// Piece counts an event that will wait for its caller, and reports whether there is
// room for it. [PieceTaken] must follow.
func Piece(bytes int) bool {
	n := int64(bytes)
	if all := pieces.Add(n); all > maxPieces && all > n && n > 0 {
		pieces.Add(-n)
		return false
	}
	return true
}

// PieceTaken says that it waits no more.
func PieceTaken(bytes int) { pieces.Add(-int64(bytes)) }
