package main

import (
	"cmp"
	"net/netip"
	"slices"
)

// A talker is an address and what it sent and got.
type talker struct {
	sent, got           int64
	sentBytes, gotBytes int64
}

// talkers are the addresses of a capture, up to a limit.
type talkers struct {
	index map[address]int32
	slabs [][]talker
	n     int
	other int64 // packets of addresses beyond the limit
}

type address struct {
	bytes [16]byte
	six   bool
}

func newTalkers() *talkers { return &talkers{index: map[address]int32{}} }

// of returns the talker of an address; nil if there are too many.
func (t *talkers) of(a netip.Addr) *talker {
	k := address{a.As16(), a.Is6()}
	n, known := t.index[k]
	if !known {
		if t.n == maxAddresses {
			return nil
		}
		if t.n%slab == 0 {
			t.slabs = append(t.slabs, make([]talker, slab))
		}
		n = int32(t.n)
		t.index[k] = n
		t.n++
	}
	return &t.slabs[n/slab][n%slab]
}

// add counts a packet for both of its ends.
func (t *talkers) add(p *packet, wire int) {
	from, to := t.of(p.from), t.of(p.to)
	if from != nil {
		from.sent++
		from.sentBytes += int64(wire)
	}
	if to != nil {
		to.got++
		to.gotBytes += int64(wire)
	}
	if from == nil || to == nil {
		t.other++
	}
}

// top returns the addresses with the most bytes.
func (t *talkers) top(n int) []talkerReport {
	best := make([]talkerReport, 0, n+1)
	order := func(a, b talkerReport) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Packets, a.Packets), a.addr.Compare(b.addr))
	}
	for k, i := range t.index {
		one := &t.slabs[i/slab][i%slab]
		r := talkerReport{Bytes: one.sentBytes + one.gotBytes, Packets: one.sent + one.got, BytesSent: one.sentBytes,
			PacketsSent: one.sent, BytesReceived: one.gotBytes, PacketsReceived: one.got, addr: netip.AddrFrom16(k.bytes)}
		if !k.six {
			r.addr = r.addr.Unmap()
		}
		at, _ := slices.BinarySearchFunc(best, r, order)
		if at == n {
			continue
		}
		best = slices.Insert(best, at, r)
		best = best[:min(len(best), n)]
	}
	for i := range best {
		best[i].Address = best[i].addr.String()
	}
	return best
}
