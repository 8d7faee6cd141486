package event

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// ordered returns the handlers with one more, in the order in which they are
// called: by priority; among equals as before and after say; else by
// registration. It is refused where before and after contradict each other.
func ordered(handlers []*handler, h *handler) ([]*handler, error) {
	from, _ := slices.BinarySearchFunc(handlers, h.priority, byPriority)
	to, _ := slices.BinarySearchFunc(handlers, h.priority, past)
	all := slices.Insert(slices.Clone(handlers), to, h)
	group := all[from : to+1]
	if !slices.ContainsFunc(group, (*handler).constrained) {
		return all, nil
	}
	return all, arrange(group)
}

// rearrange puts handlers in order again after others were taken away, which
// may have been all that kept them apart.
func rearrange(handlers []*handler) {
	for len(handlers) > 0 {
		n, _ := slices.BinarySearchFunc(handlers, handlers[0].priority, past)
		if group := handlers[:n]; slices.ContainsFunc(group, (*handler).constrained) || !slices.IsSortedFunc(group, byNumber) {
			_ = arrange(group) // fewer handlers have no circle that more had not
		}
		handlers = handlers[n:]
	}
}

func byNumber(a, b *handler) int { return cmp.Compare(a.number, b.number) }

func byPriority(h *handler, priority float64) int { return cmp.Compare(h.priority, priority) }

func (h *handler) constrained() bool { return len(h.Before) > 0 || len(h.After) > 0 }

// past looks for the end of a priority, as byPriority does for its beginning.
func past(h *handler, priority float64) int {
	if h.priority <= priority {
		return -1
	}
	return 1
}

// A node is a handler that waits for others, or the gate in front of or behind
// all handlers of a plugin that some before or after names: as many edges as
// handlers, rather than as many as pairs of them.
type node struct {
	handler *handler // nil for a gate
	next    []*node
	waits   int // for so many that have not been placed
}

func (n *node) to(other *node) {
	n.next = append(n.next, other)
	other.waits++
}

// arrange sorts handlers of one priority topologically: always the first
// registered of those that wait for no other.
func arrange(group []*handler) error {
	front, back := map[string]*node{}, map[string]*node{}
	for _, h := range group {
		for _, name := range slices.Concat(h.Before, h.After) {
			if front[name] == nil {
				front[name], back[name] = new(node), new(node)
			}
		}
	}
	nodes := make([]*node, 0, len(group)+2*len(front))
	for _, h := range group {
		n := &node{handler: h}
		nodes = append(nodes, n)
		if gate := front[h.Plugin]; gate != nil {
			gate.to(n)
			n.to(back[h.Plugin])
		}
		for _, name := range h.Before {
			n.to(front[name])
		}
		for _, name := range h.After {
			back[name].to(n)
		}
	}
	for name := range front {
		nodes = append(nodes, front[name], back[name])
	}
	var ready queue
	var placed []*handler
	release := func(n *node) {
		for open := []*node{n}; len(open) > 0; { // gates open at once
			n, open = open[len(open)-1], open[:len(open)-1]
			if n.handler != nil {
				heap.Push(&ready, n)
				continue
			}
			for _, next := range n.next {
				if next.waits--; next.waits == 0 {
					open = append(open, next)
				}
			}
		}
	}
	var first []*node
	for _, n := range nodes {
		if n.waits == 0 {
			first = append(first, n)
		}
	}
	for _, n := range first {
		release(n)
	}
	for ready.Len() > 0 {
		n := heap.Pop(&ready).(*node)
		placed = append(placed, n.handler)
		for _, next := range n.next {
			if next.waits--; next.waits == 0 {
				release(next)
			}
		}
	}
	if len(placed) < len(group) {
		return plugin.Errorf(plugin.CodeInvalidInput,
			"plugins that handle %s want to come before each other: %s; take one before or after out of their manifests", group[0].Event, circle(nodes))
	}
	copy(group, placed)
	return nil
}

// circle names the plugins of one circle among nodes that still wait.
func circle(nodes []*node) string {
	before := map[*node]*node{} // one of those that a node waits for
	for _, n := range nodes {
		if n.waits == 0 {
			continue
		}
		for _, next := range n.next {
			if next.waits > 0 {
				before[next] = n
			}
		}
	}
	var n *node
	for n = range before {
		break
	}
	seen := map[*node]bool{}
	for ; !seen[n]; n = before[n] {
		seen[n] = true
	}
	var names []string
	for at := n; ; {
		if at.handler != nil && (len(names) == 0 || names[len(names)-1] != nameOf(at.handler.Plugin)) {
			names = append(names, nameOf(at.handler.Plugin))
		}
		if at = before[at]; at == n {
			break
		}
	}
	slices.Reverse(names)
	first := slices.Index(names, slices.Min(names)) // the same words, wherever the search began
	names = slices.Compact(slices.Concat(names[first:], names[:first]))
	if last := len(names) - 1; last > 0 && names[last] == names[0] {
		names = names[:last]
	}
	return strings.Join(append(names, names[0]), " < ")
}

// A queue has the node on top that was registered first.
type queue []*node

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].handler.number < q[j].handler.number }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*node)) }
func (q *queue) Pop() any {
	last := len(*q) - 1
	n := (*q)[last]
	*q = (*q)[:last]
	return n
}
