package process

import "time"

// BePatient raises every wait that no option sets to limit, for tests in which
// these waits must not end.
func (r *Runner) BePatient(limit time.Duration) {
	r.graces = graces{kill: limit, exit: limit, drain: limit, onceHandshake: limit, onceExit: limit, hook: limit}
}

// SetExitGrace sets the wait for the exit of a process that closed its standard output.
func (r *Runner) SetExitGrace(d time.Duration) { r.graces.exit = d }

// SetOnceGraces sets the waits for the handshake and for the exit of a plugin of protocol 1.
func (r *Runner) SetOnceGraces(handshake, exit time.Duration) {
	r.graces.onceHandshake, r.graces.onceExit = handshake, exit
}

// SetHookTime sets the time of a hook whose caller sets no bound.
func (r *Runner) SetHookTime(d time.Duration) { r.graces.hook = d }

// DefaultHookTime is the time of a hook whose caller sets no bound, unless a test sets another.
var DefaultHookTime = defaultGraces.hook

// Waiting returns the number of calls that wait for a process.
func (r *Runner) Waiting() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.groups {
		g.mu.Lock()
		n += len(g.waiting)
		g.mu.Unlock()
	}
	return n
}

// Idle returns the number of processes that are ready for a call and have none.
func (r *Runner) Idle() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.groups {
		g.mu.Lock()
		for _, w := range g.workers {
			if w.busy == 0 && !w.retired {
				n++
			}
		}
		g.mu.Unlock()
	}
	return n
}
