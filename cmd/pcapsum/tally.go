package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/gopacket/gopacket/layers"
)

// A tally is everything that is counted. Nothing in it grows without a bound:
// conversations and addresses have theirs in flow.go, names in names.go,
// protocols in hierarchy.go; link types and VLANs have 65,536 and 4,096 values.
type tally struct {
	packets, bytes, captured int64
	first, last, latest      int64 // nanoseconds
	timed                    int64
	disorder                 int64 // packets that are older than the one before them
	short, malformed         int64
	snapped                  int64 // packets of which a part was captured
	fragments                int64
	ip                       int64

	links         map[layers.LinkType]int64
	vlans         map[uint16]int64
	protocols     hierarchy
	conversations *flows
	talkers       *talkers
	listener      *listener
}

func newTally(limit int) *tally {
	return &tally{
		first: emptyFlow.first, last: emptyFlow.last, latest: emptyFlow.last,
		links: map[layers.LinkType]int64{}, vlans: map[uint16]int64{},
		conversations: newFlows(limit), talkers: newTalkers(), listener: newListener(),
	}
}

// readAll counts all packets of a capture.
func (t *tally) readAll(c *capture) {
	var f frame
	var d decoder
	for c.next(&f) {
		t.add(&f, d.decode(&f))
	}
}

func (t *tally) add(f *frame, p *packet) {
	t.packets++
	t.bytes += int64(f.wire)
	t.captured += int64(len(f.data))
	if f.wire > len(f.data) {
		t.snapped++
	}
	t.links[f.link]++
	if f.timed {
		t.timed++
		t.first, t.last = min(t.first, f.nanos), max(t.last, f.nanos)
		if f.nanos < t.latest {
			t.disorder++
		}
		t.latest = f.nanos
	}
	if p.malformed {
		t.malformed++
	}
	if p.short {
		t.short++
	}
	if p.fragment {
		t.fragments++
	}
	for _, id := range p.vlans {
		t.vlans[id]++
	}
	if p.ip {
		t.ip++
		t.conversations.add(p, f)
		t.talkers.add(p, f.wire)
		t.listener.hear(p, t.packets)
	}
	t.protocols.add(p.path, f.wire)
}

// protocolName is what the number of a protocol is called.
func protocolName(proto uint8) string {
	if name, known := protocols[proto]; known {
		return name
	}
	return "ip_" + strconv.Itoa(int(proto))
}

// byPackets sorts nodes, those with the most packets first.
func byPackets(nodes []*node) []*node {
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.packets, a.packets), cmp.Compare(a.name, b.name))
	})
	return sorted
}
