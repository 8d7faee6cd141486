package main

import (
	"encoding/binary"
	"fmt"

	"github.com/gopacket/gopacket/layers"
)

// A pcap reads the packets of a capture of that format: a header, and records
// of a time, two lengths and the bytes.
type pcap struct {
	tape    *tape
	order   binary.ByteOrder
	unit    int64 // nanoseconds that the fractions of times count
	snaplen uint32
	link    layers.LinkType
}

// newPcap reads the header.
func newPcap(t *tape) (*pcap, error) {
	head, err := t.read(24)
	if err != nil {
		return nil, fmt.Errorf("its pcap header has 24 bytes, and only %d are there", len(head))
	}
	p := &pcap{tape: t, order: binary.LittleEndian, unit: 1000}
	if head[0] == 0xa1 {
		p.order = binary.BigEndian
	}
	if p.order.Uint32(head) == 0xa1b23c4d {
		p.unit = 1
	}
	if major := p.order.Uint16(head[4:]); major != 2 {
		return nil, fmt.Errorf("it is a pcap capture of version %d.%d; 2.4 is the one in use", major, p.order.Uint16(head[6:]))
	}
	p.snaplen = p.order.Uint32(head[16:])
	p.link = layers.LinkType(p.order.Uint32(head[20:]) & 0xffff) // above it stand the length of checksums and what is reserved
	return p, nil
}

func (p *pcap) next(f *frame) error {
	if err := p.tape.mark(); err != nil {
		return err
	}
	head, err := p.tape.read(16)
	if err != nil {
		return err
	}
	seconds, fraction, kept := p.order.Uint32(head), p.order.Uint32(head[4:]), p.order.Uint32(head[8:])
	f.wire, f.link = int(p.order.Uint32(head[12:])), p.link
	f.nanos, f.timed = int64(seconds)*1e9+int64(fraction)*p.unit, true
	if kept > maxPacket {
		return tooLong(kept)
	}
	if f.data, err = p.tape.read(int(kept)); err != nil {
		return err
	}
	f.wire = max(f.wire, len(f.data))
	return nil
}
