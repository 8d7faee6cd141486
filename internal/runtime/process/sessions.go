package process

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// EndSession ends the processes of a session, with the calls that they are at work on, and
// returns when they are gone or ctx ends. What they kept in memory is lost, which the next
// call of the session is told of, unless the session is forgotten.
func (r *Runner) EndSession(ctx context.Context, tenant, session string, forget bool) {
	of := protocol.Scope{Kind: plugin.IsolationSession, ID: session}
	var ended []*group
	r.mu.Lock()
	for k, g := range r.groups {
		if k.tenant != tenant || k.scope != of {
			continue
		}
		g.mu.Lock()
		served := g.served
		g.mu.Unlock()
		if served {
			r.past.add(g.lineage())
		}
		delete(r.groups, k)
		ended = append(ended, g)
	}
	if forget {
		r.past.forget(func(l lineage) bool { return l.tenant == tenant && l.scope == of })
	}
	r.sessionsEnded = r.sessionsEnded || len(ended) > 0
	r.mu.Unlock()
	for _, g := range ended {
		g.mu.Lock()
		workers := g.workers
		g.mu.Unlock()
		g.close()
		for _, w := range workers {
			select {
			case <-w.readDone:
			case <-ctx.Done():
				return
			}
		}
	}
}

// A Holding is what a runner keeps in the memory of plugins for sessions and agents.
type Holding struct {
	Groups int       // that have a process, or wait for one
	Busy   bool      // a process is at work, of these or any other
	Ended  bool      // a session was ended by [Runner.EndSession]
	Used   time.Time // when one ended a call last; zero where none did
}

// Holding returns what is kept.
func (r *Runner) Holding() (h Holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.groups {
		g.mu.Lock()
		for _, w := range g.workers {
			h.Busy = h.Busy || w.busy > 0
		}
		if g.keeps() && len(g.workers)+g.starting+len(g.waiting) > 0 {
			h.Groups++
		}
		g.mu.Unlock()
	}
	h.Ended = r.sessionsEnded
	if at := r.keptUsed.Load(); at != 0 {
		h.Used = time.Unix(0, at)
	}
	return h
}

// touch notes that a process which keeps something ended a call.
func (g *group) touch() {
	if g.keeps() {
		g.runner.keptUsed.Store(time.Now().UnixNano())
	}
}
