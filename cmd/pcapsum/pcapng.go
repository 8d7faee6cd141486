package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/gopacket/gopacket/layers"
)

// Kinds of blocks.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 2 // obsolete
	blockSimple    = 3
	blockEnhanced  = 6
)

// The bounds of what is kept of a section.
const (
	maxFaces = 65_536 // interfaces
	maxNamed = 1_000  // of them with their names, in all sections
	maxBlock = maxPacket + 1<<18
)

// A pcapng reads the packets of a capture of that format: blocks, of which
// some hold packets, others describe the interfaces that these came from, and
// each sort that is not known is passed over.
type pcapng struct {
	tape     *tape
	order    binary.ByteOrder
	sections int
	faces    []face // of the section
	first    int    // the place of its first one in named
	named    []named
}

// A face is an interface that packets were captured on.
type face struct {
	link       layers.LinkType
	snaplen    uint32
	resolution byte  // what a time counts: 10^-n s, with the highest bit 2^-n s
	offset     int64 // seconds to be added to each time
}

// A named is an interface in the report.
type named struct {
	face
	name           string
	packets, bytes int64
}

// newPcapNG reads the first block, which says how to read the others.
func newPcapNG(t *tape) (*pcapng, error) {
	p := &pcapng{tape: t, order: binary.LittleEndian}
	if _, _, err := p.block(); err != nil {
		return nil, fmt.Errorf("its pcapng header cannot be read: %w", err)
	}
	return p, nil
}

func (p *pcapng) next(f *frame) error {
	for {
		if err := p.tape.mark(); err != nil {
			return err
		}
		kind, body, err := p.block()
		if err != nil {
			return err
		}
		switch kind {
		case blockEnhanced, blockPacket:
			return p.packet(f, kind, body)
		case blockSimple:
			return p.simple(f, body)
		}
	}
}

// block reads a block. What is no packet has been dealt with then.
func (p *pcapng) block() (kind uint32, body []byte, err error) {
	head, err := p.tape.read(8)
	if err != nil {
		return 0, nil, err
	}
	kind = p.order.Uint32(head)
	length := [4]byte(head[4:])
	read := 8
	if kind == blockSection { // the same in both orders
		magic, err := p.tape.read(4)
		if err != nil {
			return 0, nil, err
		}
		switch binary.BigEndian.Uint32(magic) {
		case 0x1a2b3c4d:
			p.order = binary.BigEndian
		case 0x4d3c2b1a:
			p.order = binary.LittleEndian
		default:
			return 0, nil, fmt.Errorf("a section header says its byte order with % x", magic)
		}
		read = 12
	}
	size := p.order.Uint32(length[:])
	if size < uint32(read)+4 || size%4 != 0 {
		return 0, nil, fmt.Errorf("a block says that it is %d bytes long", size)
	}
	rest := size - uint32(read) - 4
	switch kind {
	case blockSection, blockInterface, blockPacket, blockSimple, blockEnhanced:
		if rest > maxBlock {
			return 0, nil, tooLong(rest)
		}
		if body, err = p.tape.read(int(rest) + 4); err != nil {
			return 0, nil, err
		}
		if again := p.order.Uint32(body[rest:]); again != size {
			return 0, nil, fmt.Errorf("a block says that it is %d bytes long at its beginning, and %d at its end", size, again)
		}
		body = body[:rest]
	default:
		if err := p.tape.skip(int64(rest)); err != nil {
			return 0, nil, err
		}
		tail, err := p.tape.read(4)
		if err != nil {
			return 0, nil, err
		}
		if again := p.order.Uint32(tail); again != size {
			return 0, nil, fmt.Errorf("a block says that it is %d bytes long at its beginning, and %d at its end", size, again)
		}
	}
	switch kind {
	case blockSection:
		err = p.section(body)
	case blockInterface:
		err = p.described(body)
	}
	return kind, body, err
}

// section begins a section: the interface count restarts.
func (p *pcapng) section(body []byte) error {
	if len(body) < 12 {
		return errors.New("a section header is too short")
	}
	if major := p.order.Uint16(body); major != 1 {
		return fmt.Errorf("a section is of version %d.%d; 1.0 is the one in use", major, p.order.Uint16(body[2:]))
	}
	p.sections++
	p.faces, p.first = p.faces[:0], len(p.named)
	return nil
}

// Options of an interface.
const (
	optionEnd        = 0
	optionName       = 2
	optionResolution = 9
	optionOffset     = 14
)

// described notes an interface.
func (p *pcapng) described(body []byte) error {
	if len(body) < 8 {
		return errors.New("the description of an interface is too short")
	}
	if len(p.faces) == maxFaces {
		return fmt.Errorf("a section has more than %d interfaces", maxFaces)
	}
	one := named{face: face{link: layers.LinkType(p.order.Uint16(body)), snaplen: p.order.Uint32(body[4:]), resolution: 6}}
	for rest := body[8:]; len(rest) >= 4; {
		code, size := p.order.Uint16(rest), int(p.order.Uint16(rest[2:]))
		if code == optionEnd || 4+size > len(rest) {
			break
		}
		value := rest[4 : 4+size]
		switch {
		case code == optionName:
			one.name = cut(string(value), 100)
		case code == optionResolution && size == 1:
			one.resolution = value[0]
		case code == optionOffset && size == 8:
			one.offset = int64(p.order.Uint64(value))
		}
		rest = rest[min(len(rest), 4+(size+3)&^3):]
	}
	p.faces = append(p.faces, one.face)
	if len(p.named) < maxNamed {
		p.named = append(p.named, one)
	}
	return nil
}

// packet reads a packet with a time.
func (p *pcapng) packet(f *frame, kind uint32, body []byte) error {
	if len(body) < 20 {
		return errors.New("the block of a packet is too short")
	}
	id := p.order.Uint32(body)
	if kind == blockPacket {
		id = uint32(p.order.Uint16(body))
	}
	if int64(id) >= int64(len(p.faces)) {
		return fmt.Errorf("a packet is of interface %d, and there are %d", id, len(p.faces))
	}
	from := p.faces[id]
	kept := p.order.Uint32(body[12:])
	if kept > maxPacket {
		return tooLong(kept)
	}
	if int(kept) > len(body)-20 {
		return fmt.Errorf("a packet of %d bytes is in a block with room for %d", kept, len(body)-20)
	}
	f.data, f.link = body[20:20+kept], from.link
	f.wire = max(int(p.order.Uint32(body[16:])), len(f.data))
	f.nanos, f.timed = from.time(uint64(p.order.Uint32(body[4:]))<<32 | uint64(p.order.Uint32(body[8:])))
	p.count(int(id), f)
	return nil
}

// simple reads a packet without a time, of the first interface.
func (p *pcapng) simple(f *frame, body []byte) error {
	if len(body) < 4 || len(p.faces) == 0 {
		return errors.New("a simple packet is too short, or there is no interface that it could be of")
	}
	from := p.faces[0]
	f.wire = int(p.order.Uint32(body))
	kept := min(f.wire, len(body)-4)
	if from.snaplen > 0 {
		kept = min(kept, int(from.snaplen))
	}
	f.data, f.link, f.nanos, f.timed = body[4:4+kept], from.link, 0, false
	p.count(0, f)
	return nil
}

func (p *pcapng) count(id int, f *frame) {
	if n := p.first + id; n < len(p.named) {
		p.named[n].packets++
		p.named[n].bytes += int64(f.wire)
	}
}

// latest is the last second whose nanoseconds an int64 can count.
const latest = (1<<63-1)/1_000_000_000 - 1

// time returns the nanoseconds since 1970 that a time stamp stands for; false
// if it stands for a time centuries away.
func (i face) time(stamp uint64) (nanos int64, sensible bool) {
	seconds, fraction := uint64(0), uint64(0)
	switch n := uint(i.resolution & 0x7f); {
	case i.resolution&0x80 == 0 && n <= 19:
		unit := power(n)
		high, low := bits.Mul64(stamp%unit, 1e9)
		seconds = stamp / unit
		fraction, _ = bits.Div64(high, low, unit)
	case i.resolution&0x80 == 0: // less than a second in all
		if n-9 <= 19 {
			fraction = stamp / power(n-9)
		}
	case n < 64:
		high, low := bits.Mul64(stamp&(1<<n-1), 1e9)
		seconds, fraction = stamp>>n, high<<(64-n)|low>>n
	default: // the same
		high, _ := bits.Mul64(stamp, 1e9)
		fraction = high >> (n - 64)
	}
	if seconds > latest || i.offset > latest || i.offset < -latest {
		return 0, false
	}
	total := int64(seconds) + i.offset
	return total*1e9 + int64(fraction), total >= 0 && total < latest
}

// power is 10^n, for n up to 19.
func power(n uint) uint64 {
	unit := uint64(1)
	for range n {
		unit *= 10
	}
	return unit
}

// unit says what the times of an interface count.
func (i face) unit() string {
	if i.resolution&0x80 != 0 {
		return fmt.Sprintf("2^-%d s", i.resolution&0x7f)
	}
	return fmt.Sprintf("10^-%d s", i.resolution)
}
