package main

import (
	"bufio"
	"encoding/json"
	"net/netip"
	"os"
	"slices"
)

// The bounds of what is kept. A conversation takes 150 to 250 bytes with its
// place in the map, an address 100 to 150: all of them stay below 400 MiB.
const (
	maxFlows     = 1_000_000
	maxAddresses = 1_000_000
)

// A key is a conversation: two ends and a protocol, the smaller end first.
type key struct {
	a, b         [16]byte
	aPort, bPort uint16
	proto        uint8
	six          bool
	ports        bool
}

// A flow is what a conversation came to. Index 0 of a pair is what end a sent.
type flow struct {
	key         key
	first, last int64 // nanoseconds; first > last while no packet had a time
	packets     [2]int64
	bytes       [2]int64
	flags       [2]uint8 // of TCP, all that were seen
	opener      uint8    // the end that began, 0 or 1
}

func (f *flow) total() (packets, bytes int64) {
	return f.packets[0] + f.packets[1], f.bytes[0] + f.bytes[1]
}

// slab is how many flows are allocated together: what is kept never moves, so
// growing needs no second copy.
const slab = 4096

// flows are the conversations of a capture, up to a limit. What comes after
// is counted as one.
type flows struct {
	limit int
	index map[key]int32
	slabs [][]flow
	n     int
	other flow // those beyond the limit
}

func newFlows(limit int) *flows {
	return &flows{limit: limit, index: map[key]int32{}, other: emptyFlow}
}

var emptyFlow = flow{first: 1<<63 - 1, last: -1 << 63}

func (t *flows) at(n int) *flow { return &t.slabs[n/slab][n%slab] }

// add counts a packet.
func (t *flows) add(p *packet, f *frame) {
	k := key{a: p.from.As16(), b: p.to.As16(), aPort: p.src, bPort: p.dst, proto: p.proto, six: p.from.Is6(), ports: p.ports}
	dir := 0
	if c := p.from.Compare(p.to); c > 0 || c == 0 && p.src > p.dst {
		k.a, k.b, k.aPort, k.bPort = k.b, k.a, k.bPort, k.aPort
		dir = 1
	}
	n, known := t.index[k]
	one := &t.other
	switch {
	case known:
		one = t.at(int(n))
	case t.n < t.limit:
		if t.n%slab == 0 {
			t.slabs = append(t.slabs, make([]flow, 0, slab))
		}
		last := &t.slabs[len(t.slabs)-1]
		*last = append(*last, emptyFlow)
		t.index[k] = int32(t.n)
		one = t.at(t.n)
		t.n++
		one.key, one.opener = k, uint8(dir)
		if p.proto == 6 && p.flags&(tcpSYN|tcpACK) == tcpSYN|tcpACK { // the answer to what was missed
			one.opener ^= 1
		}
	}
	one.packets[dir]++
	one.bytes[dir] += int64(f.wire)
	if p.proto == 6 {
		one.flags[dir] |= p.flags
	}
	if f.timed {
		one.first, one.last = min(one.first, f.nanos), max(one.last, f.nanos)
	}
}

// largest returns the places of the n flows with the most bytes, all if n is 0.
func (t *flows) largest(n int) []int32 {
	all := make([]int32, t.n)
	for i := range all {
		all[i] = int32(i)
	}
	slices.SortFunc(all, func(x, y int32) int {
		xp, xb := t.at(int(x)).total()
		yp, yb := t.at(int(y)).total()
		if c := compare(yb, xb, yp, xp); c != 0 {
			return c
		}
		return int(x - y)
	})
	if n > 0 && len(all) > n {
		all = slices.Clone(all[:n])
	}
	return all
}

// compare orders by a pair, then by another.
func compare(a, b, c, d int64) int {
	switch {
	case a != b && a < b, a == b && c < d:
		return -1
	case a == b && c == d:
		return 0
	}
	return 1
}

// The bits of TCP's flags.
const (
	tcpSYN = 0x02
	tcpACK = 0x10
)

var flagNames = []string{"FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"}

func flagsOf(bits uint8) []string {
	names := []string{}
	for i, name := range flagNames {
		if bits&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// report writes a flow from the side of the end that began it.
func (f *flow) report() flowReport {
	from, to := int(f.opener), 1-int(f.opener)
	ends := [2]netip.Addr{netip.AddrFrom16(f.key.a), netip.AddrFrom16(f.key.b)}
	ports := [2]uint16{f.key.aPort, f.key.bPort}
	if !f.key.six {
		ends[0], ends[1] = ends[0].Unmap(), ends[1].Unmap()
	}
	r := flowReport{
		Source: ends[from].String(), Destination: ends[to].String(), Protocol: protocolName(f.key.proto),
		PacketsForward: f.packets[from], PacketsBack: f.packets[to], BytesForward: f.bytes[from], BytesBack: f.bytes[to],
	}
	r.Packets, r.Bytes = f.total()
	if f.key.ports {
		r.SourcePort, r.DestinationPort = &ports[from], &ports[to]
	}
	if f.first <= f.last {
		first, last := stamp(f.first), stamp(f.last)
		r.First, r.Last = &first, &last
		r.Seconds = float64(f.last-f.first) / 1e9
	}
	if f.key.proto == 6 && f.key.ports {
		r.FlagsForward, r.FlagsBack = flagsOf(f.flags[from]), flagsOf(f.flags[to])
	}
	return r
}

// writeTable writes the flows to a file, the largest first, as far as they fit.
func (t *flows) writeTable(path string, most int64) (*tableReport, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, 1<<18)
	r := &tableReport{}
	for _, n := range t.largest(0) {
		line, err := json.Marshal(t.at(int(n)).report())
		if err != nil {
			return nil, err
		}
		if r.Bytes+int64(len(line))+1 > most {
			r.Omitted = t.n - r.Written
			break
		}
		r.Bytes += int64(len(line)) + 1
		r.Written++
		if _, err := out.Write(append(line, '\n')); err != nil {
			return nil, err
		}
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	return r, file.Close()
}
