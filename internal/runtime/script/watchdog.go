package script

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	tick  = 5 * time.Millisecond
	quiet = 20 // ticks without a run after which the watchdog sleeps
)

// A run is what the watchdog sees of one engine. The engine says when code
// begins and ends; from a run that lasts too long the watchdog first asks it to
// stop and then revokes its memory.
//
// The clock is read by the watchdog alone, once a tick, and time counts only as far as
// the watchdog itself got to run: on a machine that stands still, no run times out.
type run struct {
	state atomic.Uint64 // number of the run << 2 | how it stands
	limit atomic.Int64  // nanoseconds that the present run may take
	asked atomic.Uint64 // the number of the run that is asked to stop

	grace  time.Duration // after the limit, until the memory is revoked
	revoke func()        // called once at most, by the watchdog

	// Of the watchdog:
	number uint64
	spent  time.Duration
}

// How a run stands.
const (
	idle = iota
	running
	waiting // for the host: it does not count, and nothing is revoked
	revoked
)

// begin starts a run that may take limit.
func (r *run) begin(limit time.Duration) {
	if r.limit.Load() != int64(limit) {
		r.limit.Store(int64(limit))
	}
	r.state.Store((r.state.Load()>>2+1)<<2 | running)
	watch.wakeUp()
}

// end ends it. It reports false if the memory is gone.
func (r *run) end() bool { return r.turn(running, idle) }

// pause and resume stand around the time that the host takes for an answer.
func (r *run) pause() bool  { return r.turn(running, waiting) }
func (r *run) resume() bool { return r.turn(waiting, running) }

func (r *run) turn(from, to uint64) bool {
	s := r.state.Load()
	return s&3 == from && r.state.CompareAndSwap(s, s&^3|to)
}

// stopping reports whether the present run has been asked to stop.
func (r *run) stopping() bool { return r.asked.Load() == r.state.Load()>>2 }

// gone reports whether the memory has been revoked.
func (r *run) gone() bool { return r.state.Load()&3 == revoked }

// look is what the watchdog does at each tick. It reports whether code runs.
func (r *run) look(passed time.Duration) bool {
	s := r.state.Load()
	if s&3 == idle || s&3 == revoked {
		return false
	}
	if s>>2 != r.number {
		r.number, r.spent = s>>2, 0
		return true
	}
	if s&3 == waiting {
		return true
	}
	r.spent += passed
	limit := time.Duration(r.limit.Load())
	if r.spent >= limit {
		r.asked.Store(s >> 2)
	}
	if r.spent >= limit+r.grace && r.state.CompareAndSwap(s, s&^3|revoked) {
		r.revoke()
	}
	return true
}

// A watchdog looks after all runs of the process. Its goroutine is there as long
// as there is an engine, and sleeps while no code runs.
type watchdog struct {
	asleep atomic.Bool
	wake   chan struct{}

	mu   sync.Mutex // guards the rest, and is held while runs are looked at
	runs []*run
	quit chan struct{} // nil without a goroutine
	done chan struct{}
}

var watch = &watchdog{wake: make(chan struct{}, 1)}

// add has r looked after.
func (w *watchdog) add(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs = append(w.runs, r)
	if w.quit == nil {
		w.quit, w.done = make(chan struct{}), make(chan struct{})
		w.asleep.Store(false)
		go w.watch(w.quit, w.done)
	}
}

// remove ends that: once it returns, r is not revoked any more.
func (w *watchdog) remove(r *run) {
	w.mu.Lock()
	i := slices.Index(w.runs, r)
	if i < 0 {
		w.mu.Unlock()
		return
	}
	w.runs = slices.Delete(w.runs, i, i+1)
	var done chan struct{}
	if len(w.runs) == 0 {
		close(w.quit)
		done, w.quit = w.done, nil
	}
	w.mu.Unlock()
	if done != nil {
		<-done
	}
}

func (w *watchdog) wakeUp() {
	if w.asleep.Load() {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

func (w *watchdog) watch(quit, done chan struct{}) {
	defer close(done)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	last, idle := time.Now(), 0
	for {
		select {
		case <-quit:
			return
		case <-ticker.C:
		}
		now := time.Now()
		busy := w.look(min(now.Sub(last), 4*tick))
		last = now
		if idle++; busy {
			idle = 0
		}
		if idle < quiet {
			continue
		}
		// A goroutine that begins a run either sees asleep or is seen by look.
		w.asleep.Store(true)
		if !w.look(0) {
			ticker.Stop()
			select {
			case <-quit:
				return
			case <-w.wake:
			}
			ticker.Reset(tick)
		}
		w.asleep.Store(false)
		last, idle = time.Now(), 0
	}
}

func (w *watchdog) look(passed time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	busy := false
	for _, r := range w.runs {
		if r.look(passed) {
			busy = true
		}
	}
	return busy
}
