package process

import (
	"slices"

	"github.com/mortise-dev/mortise/plugin"
	"github.com/mortise-dev/mortise/protocol"
)

// freshProcess is the metric by which a caller learns that the process of its
// session or agent is not the one that served it before: what that one kept in
// its memory is lost.
const freshProcess = "fresh_process"

// A lineage is what succeeding processes of one session or agent have in
// common, whatever becomes of the files of the package.
type lineage struct {
	tenant, program, dir string
	scope                protocol.Scope
	artifacts            string
}

func (g *group) lineage() lineage {
	return lineage{g.key.tenant, g.key.program, g.pkg.Dir, g.key.scope, g.key.artifacts}
}

// keeps reports whether processes of the group keep something from one call to
// the next that a caller relies on.
func (g *group) keeps() bool {
	kind := g.key.scope.Kind
	return kind == plugin.IsolationSession || kind == plugin.IsolationAgent
}

// maxPast is how many groups that are gone are remembered.
const maxPast = 4096

// A past remembers which sessions and agents were served by processes that
// nothing else is known of any more: the oldest are forgotten.
type past struct {
	known map[lineage]bool
	order []lineage
}

func (p *past) add(l lineage) {
	if p.known[l] {
		return
	}
	if p.known == nil {
		p.known = map[lineage]bool{}
	}
	if len(p.order) == maxPast {
		delete(p.known, p.order[0])
		p.order = slices.Delete(p.order, 0, 1)
	}
	p.known[l] = true
	p.order = append(p.order, l)
}

// forget takes out what which reports true of.
func (p *past) forget(which func(lineage) bool) {
	p.order = slices.DeleteFunc(p.order, func(l lineage) bool {
		if !which(l) {
			return false
		}
		delete(p.known, l)
		return true
	})
}

// inherit finds out whether an earlier group served what g is to serve. The
// caller has the runner's lock.
func (r *Runner) inherit(g *group) {
	if !g.keeps() {
		return
	}
	l := g.lineage()
	g.served = r.past.known[l] || r.opts.Earlier != nil && l.scope.Kind == plugin.IsolationSession && r.opts.Earlier(l.tenant, l.scope.ID)
	for _, other := range r.groups {
		if g.served {
			return
		}
		if other.keeps() && other.lineage() == l {
			other.mu.Lock()
			g.served = other.served
			other.mu.Unlock()
		}
	}
}

// tell says in a result that the process is another one than before, until a
// call has succeeded that said so.
func (w *worker) tell(res *plugin.Result, err error) {
	g := w.group
	if !g.keeps() {
		return
	}
	delete(res.Metrics, freshProcess) // a metric for the host alone
	g.mu.Lock()
	restarted := w.restarted
	w.restarted = restarted && err != nil
	g.mu.Unlock()
	if !restarted {
		return
	}
	if res.Metrics == nil {
		res.Metrics = plugin.Metrics{}
	}
	res.Metrics[freshProcess] = true
}
