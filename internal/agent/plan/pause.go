package plan

import (
	"time"
)

// How long a plan whose next step reached no plugin is tried again, and how long
// between two tries.
const (
	pausesFor  = 15 * time.Minute
	firstPause = time.Second
	lastPause  = time.Minute
)

// A pause is between two tries of the same step.
type pause struct {
	since time.Time // the first try
	until time.Time
	last  time.Duration
}

// postpone has a plan pause before its step is tried again; false if it was tried
// for long enough.
func (e *Engine) postpone(row *Row) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, key := e.Now(), row.Tenant+"\x00"+row.ID
	for other, p := range e.pauses { // those of plans that were cancelled, or that another node runs
		if now.Sub(p.until) > pausesFor {
			delete(e.pauses, other)
		}
	}
	p, again := e.pauses[key]
	if !again {
		p = pause{since: now, last: firstPause / 2}
	}
	if now.Sub(p.since) >= pausesFor {
		delete(e.pauses, key)
		return false
	}
	p.last = min(2*p.last, lastPause)
	p.until = now.Add(p.last)
	e.pauses[key] = p
	return true
}

// paused reports whether a plan pauses.
func (e *Engine) paused(row *Row) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Now().Before(e.pauses[row.Tenant+"\x00"+row.ID].until)
}

// unpause ends a plan's pauses: a step of it has ended, or a person asked.
func (e *Engine) unpause(row *Row) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.pauses, row.Tenant+"\x00"+row.ID)
}
