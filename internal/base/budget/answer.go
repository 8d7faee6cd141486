package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Bounds of the answers that the host makes for plugins, over all plugins: what is
// read for one, its encoded form, and the frame that waits until the plugin has read
// it. An answer has its room before its bytes are there. It has it in one of two
// classes, so that an answer whose size is not known begins in the first and goes on
// in the second: those of the first class wait for those of the second, and those for
// nothing but the network and the plugin, for a bounded time.
const (
	AnswerFree  = 64 << 10 // what an answer may have and not be counted
	AnswerSmall = 1 << 20  // up to which it is of the first class
	smallRoom   = 8 << 20
	bigRoom     = 16 << 20
	handRoom    = 8 << 20          // of answers that were there before they had room, and wait for it long
	turnTime    = 5 * time.Second  // after which one that keeps room which others wait for is told
	waitTime    = 25 * time.Second // for which an answer waits for room
)

var (
	smallAnswers = &turns{capacity: smallRoom}
	bigAnswers   = &turns{capacity: bigRoom}
	inHand       = &counter{most: handRoom}
)

// ErrNoRoom says that an answer was given up because others had the room.
var ErrNoRoom = errors.New("the memory that answers to plugins may take is in use by others; read the answers that were asked for, or ask for fewer large ones at a time")

// An Answer is the room of one answer. Its methods are safe for concurrent use, and
// on nil do nothing.
type Answer struct {
	owner string

	mu      sync.Mutex // guards the rest
	turns   *turns     // in which it has room; nil where it has none
	bytes   int
	left    bool
	overdue func()
	timer   *time.Timer
	also    []func() // what gives back the room of what it was made of
}

type answerKey struct{}

// Answering begins an answer for an owner, the plugin of a tenant. [Answer.Leave]
// must follow.
func Answering(ctx context.Context, owner string) (context.Context, *Answer) {
	a := &Answer{owner: owner}
	return context.WithValue(ctx, answerKey{}, a), a
}

// AnswerOf returns the answer that is made under ctx, nil where there is none.
func AnswerOf(ctx context.Context) *Answer {
	a, _ := ctx.Value(answerKey{}).(*Answer)
	return a
}

// Take waits until the answer has room for so many bytes in all. It must not be
// called by one who holds what another needs to get on, and takes room of each class
// once: one that has some of the second class has had all that it can wait for.
func (a *Answer) Take(ctx context.Context, bytes int) error { return a.take(ctx, bytes, false) }

// TakeInHand is Take for an answer that is there already, such as one of another
// plugin: it is refused where many of those wait long.
func (a *Answer) TakeInHand(ctx context.Context, bytes int) error { return a.take(ctx, bytes, true) }

func (a *Answer) take(ctx context.Context, bytes int, there bool) error {
	if a == nil || bytes <= AnswerFree {
		return nil
	}
	a.mu.Lock()
	had, from, left := a.bytes, a.turns, a.left
	a.mu.Unlock()
	if left || bytes <= had {
		return nil
	}
	room := bigAnswers
	if bytes <= AnswerSmall {
		room = smallAnswers
	}
	bytes = min(bytes, room.capacity)
	if room == from { // the rest of what it has, which it does not wait for
		room.grow(a.owner, bytes-had)
	} else if err := room.take(ctx, a.owner, bytes, there); err != nil {
		return err
	}
	Made(bytes - had)
	a.mu.Lock()
	if a.left { // meanwhile
		a.mu.Unlock()
		room.give(a.owner, bytes)
		return nil
	}
	a.turns, a.bytes = room, bytes
	also := a.also
	a.also = nil
	a.watch()
	a.mu.Unlock()
	if from != nil && from != room {
		from.give(a.owner, had)
	}
	for _, leave := range also {
		leave()
	}
	return nil
}

// Settle gives back what the answer has beyond so many bytes.
func (a *Answer) Settle(bytes int) {
	if a == nil {
		return
	}
	a.mu.Lock()
	room, over := a.turns, a.bytes-bytes
	if room != nil && over > 0 {
		a.bytes = bytes
	}
	a.mu.Unlock()
	if room != nil && over > 0 {
		room.give(a.owner, over)
	}
}

// Overdue has a function called, now and then, while the answer keeps room that
// others wait for: it must see to it that the answer ends, if it does not get on.
func (a *Answer) Overdue(overdue func()) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.overdue = overdue
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	a.watch()
}

// watch starts the timer. The lock is held.
func (a *Answer) watch() {
	if a.timer != nil || a.turns == nil || a.overdue == nil || a.left {
		return
	}
	a.timer = time.AfterFunc(a.turns.time(), a.look)
}

func (a *Answer) look() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left || a.timer == nil {
		return
	}
	a.timer.Reset(a.turns.time())
	if a.turns.wanted() {
		go a.overdue()
	}
}

// Leave gives back all room. Take gets none afterwards.
func (a *Answer) Leave() {
	if a == nil {
		return
	}
	a.mu.Lock()
	room, bytes, also := a.turns, a.bytes, a.also
	a.turns, a.bytes, a.left, a.also = nil, 0, true, nil
	if a.timer != nil {
		a.timer.Stop()
	}
	a.mu.Unlock()
	if room != nil {
		room.give(a.owner, bytes)
	}
	for _, leave := range also {
		leave()
	}
}

// adopt has the answer keep what it is made of until it has room of its own, and
// reports whether it does.
func (a *Answer) adopt(leaves []func()) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left || a.turns != nil {
		return false
	}
	a.also = append(a.also, leaves...)
	return true
}

// A turns is room that is handed out to the owner that has the least of it first.
// One owner has at most half, unless it is for a single answer.
type turns struct {
	capacity int
	patience time.Duration // turnTime where it is 0

	mu      sync.Mutex // guards the rest
	used    int
	by      map[string]int
	waiting []*turn
}

type turn struct {
	owner string
	n     int
	ready chan struct{}
}

func (t *turns) time() time.Duration {
	if t.patience != 0 {
		return t.patience
	}
	return turnTime
}

func (t *turns) wanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting) > 0
}

func (t *turns) take(ctx context.Context, owner string, n int, there bool) error {
	own := &turn{owner, n, make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, own)
	t.next()
	t.mu.Unlock()
	select {
	case <-own.ready:
		return nil
	default:
	}
	long := time.NewTimer(resultTime)
	defer long.Stop()
	end := time.NewTimer(waitTime)
	defer end.Stop()
	why := error(ErrNoRoom)
	for waits := true; waits; {
		select {
		case <-own.ready:
			return nil
		case <-long.C:
			if !there {
				continue
			}
			if waits = inHand.add(n); waits {
				defer inHand.add(-n)
			}
		case <-end.C:
			waits = false
		case <-ctx.Done():
			why, waits = context.Cause(ctx), false
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiting {
		if w == own {
			t.waiting = append(t.waiting[:i:i], t.waiting[i+1:]...)
			t.next() // those behind may need less
			return why
		}
	}
	return nil // it was handed over meanwhile
}

// grow takes more without waiting; who waits, waits longer.
func (t *turns) grow(owner string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(owner, n)
}

func (t *turns) give(owner string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(owner, -n)
	t.next()
}

// add counts. The lock is held.
func (t *turns) add(owner string, n int) {
	if t.by == nil {
		t.by = map[string]int{}
	}
	t.used += n
	if t.by[owner] += n; t.by[owner] == 0 {
		delete(t.by, owner)
	}
}

// next hands out what there is. Where there is not enough for the one that is next,
// the others wait with it, so that large answers get their turn. The lock is held.
func (t *turns) next() {
	for {
		best := -1
		for i, w := range t.waiting {
			has := t.by[w.owner]
			if has > 0 && has+w.n > t.capacity/2 {
				continue
			}
			if best < 0 || has < t.by[t.waiting[best].owner] {
				best = i
			}
		}
		if best < 0 || t.used > 0 && t.used+t.waiting[best].n > t.capacity {
			return
		}
		own := t.waiting[best]
		t.waiting = append(t.waiting[:best:best], t.waiting[best+1:]...)
		t.add(own.owner, own.n)
		close(own.ready)
	}
}

// A counter counts bytes up to a bound.
type counter struct {
	most int

	mu   sync.Mutex
	used int
}

// add counts so many more, unless that were too many and not a single one.
func (c *counter) add(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n > 0 && c.used > 0 && c.used+n > c.most {
		return false
	}
	c.used += n
	return true
}

// String says how much room is in use, for failing tests.
func (t *turns) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d of %d in use by %v, %d wait", t.used, t.capacity, t.by, len(t.waiting))
}
