package main

import "strings"

// maxNodes is how many combinations of protocols are kept apart.
const maxNodes = 2000

// A node is a protocol inside of those above it, and how many packets had it there.
type node struct {
	name    string
	packets int64
	bytes   int64
	inside  []*node
}

// A hierarchy counts packets by the protocols that they are made of.
type hierarchy struct {
	root  node
	nodes int
}

func (h *hierarchy) add(path []string, wire int) {
	at := &h.root
walk:
	for _, name := range path {
		for _, child := range at.inside {
			if child.name == name {
				at = child
				at.count(wire)
				continue walk
			}
		}
		if h.nodes == maxNodes {
			return
		}
		h.nodes++
		child := &node{name: name}
		at.inside = append(at.inside, child)
		at = child
		at.count(wire)
	}
}

func (n *node) count(wire int) {
	n.packets++
	n.bytes += int64(wire)
}

// report lists the nodes, those inside of one after it.
func (h *hierarchy) report() []protocolReport {
	all := []protocolReport{}
	var walk func(n *node, path []string)
	walk = func(n *node, path []string) {
		for _, child := range byPackets(n.inside) {
			here := append(path[:len(path):len(path)], child.name)
			all = append(all, protocolReport{Path: strings.Join(here, "/"), Protocol: child.name, Packets: child.packets, Bytes: child.bytes})
			walk(child, here)
		}
	}
	walk(&h.root, nil)
	return all
}
