// Package waitfor keeps the wait-for graph of the calls at work in this
// process, and avoids deadlock in it.
//
// A call that asks for another goes on holding what it has: a plugin process,
// its idempotency key. Where the other would wait for that, directly or through
// calls that wait for each other, none of them would end before its time is up.
// So each wait is entered into the graph first ([Begin]), and the one that would
// close a cycle is refused.
//
// The graph is an AND-OR graph: a resource is live if it is free or one of the
// calls that hold it is; a call is live if every resource is that it waits for,
// or that a call nested in it waits for. What a plugin does besides is not known,
// so a call counts as waiting as long as anything below it does.
package waitfor

import (
	"context"
	"sync"
)

// A Call is one call at work, from its admission to its entry in the ledger.
type Call struct {
	id     string
	parent *Call
}

// A Resource is what calls wait for. Holders returns the calls that hold it, and
// whether it serves one more without any of them ending; a nil Call is one that
// waits for nothing. It is called with the graph locked, and must not call this
// package.
type Resource interface {
	Holders() (calls []*Call, free bool)
}

// A Wait is one call that waits for one resource.
type Wait struct {
	call *Call
	on   Resource
}

// graph is that of this process: calls of one host never wait for those of
// another.
var graph = struct {
	mu      sync.Mutex
	waits   map[*Wait]bool
	calls   map[string]*Call
	awaited map[string]int // by how many waits
}{waits: map[*Wait]bool{}, calls: map[string]*Call{}, awaited: map[string]int{}}

type key struct{}

// Enter returns a context in which the call with that id is at work, nested in
// the call of ctx where that has one. [Call.Leave] must be called when it has ended.
func Enter(ctx context.Context, id string) (inside context.Context, c *Call) {
	c = &Call{id: id, parent: From(ctx)}
	graph.mu.Lock()
	defer graph.mu.Unlock()
	graph.calls[id] = c
	return context.WithValue(ctx, key{}, c), c
}

// Leave says that the call has ended.
func (c *Call) Leave() {
	graph.mu.Lock()
	defer graph.mu.Unlock()
	if graph.calls[c.id] == c {
		delete(graph.calls, c.id)
	}
}

// From returns the call of a context; nil for none.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(key{}).(*Call)
	return c
}

// Nested reports whether another call of this process asked for the call.
func (c *Call) Nested() bool { return c != nil && c.parent != nil }

// Within reports whether c is nested in the other call.
func (c *Call) Within(other *Call) bool {
	if c == nil || other == nil {
		return false
	}
	for at := c.parent; at != nil; at = at.parent {
		if at == other {
			return true
		}
	}
	return false
}

// Begin notes that c waits for r. It returns nil where that wait might never
// end, because every call that holds r waits for this one. End must be called on
// what it returns; a nil Call waits for what it likes.
func Begin(c *Call, r Resource) *Wait {
	graph.mu.Lock()
	defer graph.mu.Unlock()
	w := &Wait{c, r}
	if c == nil {
		return w
	}
	graph.waits[w] = true
	// A call that no other waits for closes no cycle.
	if (c.parent != nil || graph.awaited[c.id] > 0) && !live(r) {
		delete(graph.waits, w)
		return nil
	}
	if a, ok := r.(awaited); ok {
		graph.awaited[string(a)]++
	}
	return w
}

// End takes the wait out of the graph.
func (w *Wait) End() {
	graph.mu.Lock()
	defer graph.mu.Unlock()
	if !graph.waits[w] {
		return
	}
	delete(graph.waits, w)
	if a, ok := w.on.(awaited); ok {
		if graph.awaited[string(a)]--; graph.awaited[string(a)] == 0 {
			delete(graph.awaited, string(a))
		}
	}
}

// Live reports whether some call that holds r can end without r.
func Live(r Resource) bool {
	graph.mu.Lock()
	defer graph.mu.Unlock()
	return live(r)
}

// EndOf is the end of a call as a resource: the call itself holds it.
func EndOf(id string) Resource { return awaited(id) }

type awaited string

// Holders implements [Resource]. A call that is not at work here is none that
// could wait for one of ours.
func (a awaited) Holders() ([]*Call, bool) {
	c := graph.calls[string(a)]
	return []*Call{c}, c == nil
}

// live computes the least fixed point of the two rules of the package comment,
// as far as r needs it. The graph is locked.
func live(r Resource) bool {
	below := map[*Call][]Resource{} // what a call, or one nested in it, waits for
	for w := range graph.waits {
		for c := w.call; c != nil; c = c.parent {
			below[c] = append(below[c], w.on)
		}
	}
	type node struct {
		holders []*Call
		live    bool
	}
	nodes := map[Resource]*node{}
	var add func(r Resource)
	add = func(r Resource) {
		if nodes[r] != nil {
			return
		}
		n := &node{}
		nodes[r] = n
		if n.holders, n.live = r.Holders(); n.live {
			return
		}
		for _, c := range n.holders {
			for _, next := range below[c] {
				add(next)
			}
		}
	}
	add(r)
	for changed := true; changed && !nodes[r].live; {
		changed = false
		for _, n := range nodes {
			if n.live {
				continue
			}
			for _, c := range n.holders {
				ends := true
				for _, next := range below[c] {
					ends = ends && nodes[next].live
				}
				if n.live = ends; ends {
					changed = true
					break
				}
			}
		}
	}
	return nodes[r].live
}
