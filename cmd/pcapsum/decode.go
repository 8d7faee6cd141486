package main

import (
	"encoding/binary"
	"net/netip"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// maxDepth is how many headers of one packet are looked at: tunnels nest.
const maxDepth = 16

// A packet is what its headers say. Addresses and ports are those of the
// innermost IP header.
type packet struct {
	path []string // the protocols, from the link on

	ip        bool
	from, to  netip.Addr
	proto     uint8
	ports     bool
	src, dst  uint16
	flags     uint8 // of TCP, as on the wire
	vlans     []uint16
	fragment  bool // a part of a packet
	later     bool // and not the first, so that it has no ports
	malformed bool // a header says what cannot be
	short     bool // a header was not captured as a whole
	payload   []byte
}

// A decoder reads headers. It is used for one packet after another and
// returns the same packet each time.
type decoder struct {
	p   packet
	cut bool // whether the packet was captured in part

	ethernet layers.Ethernet
	sll      layers.LinuxSLL
	sll2     layers.LinuxSLL2
	loopback layers.Loopback
	dot1q    layers.Dot1Q
	arp      layers.ARP
	ip4      layers.IPv4
	ip6      layers.IPv6
	skipper  layers.IPv6ExtensionSkipper
	fragment layers.IPv6Fragment
	gre      layers.GRE
	tcp      layers.TCP
	udp      layers.UDP
	sctp     layers.SCTP
	icmp4    layers.ICMPv4
	icmp6    layers.ICMPv6
}

// Link types that have several numbers, or none in the library.
const (
	linkRawOpenBSD = layers.LinkType(14)
	linkRawBSD     = layers.LinkType(12)
	linkPPI        = layers.LinkType(192)
	linkAVS        = layers.LinkType(163)
)

// linkName is the first protocol of a packet's path.
func linkName(link layers.LinkType) string {
	switch link {
	case layers.LinkTypeEthernet:
		return "eth"
	case layers.LinkTypeRaw, linkRawBSD, linkRawOpenBSD, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
		return "raw"
	case layers.LinkTypeLinuxSLL, layers.LinkTypeLinuxSLL2:
		return "sll"
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		return "null"
	case layers.LinkTypeIEEE802_11, layers.LinkTypeIEEE80211Radio, layers.LinkTypePrismHeader, linkPPI, linkAVS:
		return "wlan"
	}
	return "other"
}

// decode reads the headers of a packet, as far as it can.
func (d *decoder) decode(f *frame) (p *packet) {
	d.p = packet{path: d.p.path[:0], vlans: d.p.vlans[:0]}
	d.cut = f.wire > len(f.data)
	defer func() {
		if recover() != nil { // the library met what it did not expect
			d.p.malformed, d.p.payload = true, nil
		}
		p = &d.p
	}()
	d.p.path = append(d.p.path, linkName(f.link))
	switch d.p.path[0] {
	case "eth":
		d.frame(f.data)
	case "raw":
		d.raw(f.data)
	case "sll":
		if f.link == layers.LinkTypeLinuxSLL2 {
			if d.read(d.sll2.DecodeFromBytes(f.data, gopacket.NilDecodeFeedback)) {
				d.next(d.sll2.ProtocolType, d.sll2.Payload)
			}
		} else if d.read(d.sll.DecodeFromBytes(f.data, gopacket.NilDecodeFeedback)) {
			d.next(d.sll.EthernetType, d.sll.Payload)
		}
	case "null":
		if !d.read(d.loopback.DecodeFromBytes(f.data, gopacket.NilDecodeFeedback)) {
			break
		}
		switch d.loopback.Family {
		case 2:
			d.next(layers.EthernetTypeIPv4, d.loopback.Payload)
		case 10, 23, 24, 28, 30: // each system has its own
			d.next(layers.EthernetTypeIPv6, d.loopback.Payload)
		}
	}
	return &d.p
}

// read notes how reading a header went and reports whether to go on.
func (d *decoder) read(err error) bool {
	switch {
	case err == nil:
		return true
	case d.cut:
		d.p.short = true
	default:
		d.p.malformed = true
	}
	return false
}

// enter adds a protocol to the path; it reports false where that is too long.
func (d *decoder) enter(name string) bool {
	if len(d.p.path) >= maxDepth {
		return false
	}
	d.p.path = append(d.p.path, name)
	return true
}

func (d *decoder) frame(data []byte) {
	if d.read(d.ethernet.DecodeFromBytes(data, gopacket.NilDecodeFeedback)) {
		d.next(d.ethernet.EthernetType, d.ethernet.Payload)
	}
}

func (d *decoder) raw(data []byte) {
	if len(data) == 0 {
		d.read(errNoBytes)
		return
	}
	switch data[0] >> 4 {
	case 4:
		d.next(layers.EthernetTypeIPv4, data)
	case 6:
		d.next(layers.EthernetTypeIPv6, data)
	default:
		d.p.malformed = true
	}
}

// Ethernet types that the library has no name for.
const (
	typeQinQOld = layers.EthernetType(0x9100)
	typeSLL8023 = layers.EthernetType(0x0001) // of Linux cooked captures
	typeSLLLLC  = layers.EthernetType(0x0004)
)

// next reads what a link layer carries.
func (d *decoder) next(kind layers.EthernetType, data []byte) {
	switch kind {
	case layers.EthernetTypeIPv4:
		if d.enter("ip") {
			d.four(data)
		}
	case layers.EthernetTypeIPv6:
		if d.enter("ipv6") {
			d.six(data)
		}
	case layers.EthernetTypeDot1Q, layers.EthernetTypeQinQ, typeQinQOld:
		if !d.enter("vlan") || !d.read(d.dot1q.DecodeFromBytes(data, gopacket.NilDecodeFeedback)) {
			return
		}
		d.p.vlans = append(d.p.vlans, d.dot1q.VLANIdentifier)
		if d.dot1q.Type < 0x0600 {
			d.enter("llc")
			return
		}
		d.next(d.dot1q.Type, d.dot1q.Payload)
	case layers.EthernetTypeARP:
		if d.enter("arp") {
			d.read(d.arp.DecodeFromBytes(data, gopacket.NilDecodeFeedback))
		}
	case layers.EthernetTypeTransparentEthernetBridging:
		if d.enter("eth") {
			d.frame(data)
		}
	case layers.EthernetTypeLLC, typeSLLLLC, typeSLL8023:
		d.enter("llc")
	case layers.EthernetTypeMPLSUnicast, layers.EthernetTypeMPLSMulticast:
		d.enter("mpls")
	case layers.EthernetTypePPPoEDiscovery, layers.EthernetTypePPPoESession:
		d.enter("pppoe")
	case layers.EthernetTypeLinkLayerDiscovery:
		d.enter("lldp")
	case layers.EthernetTypeEAPOL:
		d.enter("eapol")
	default:
		d.enter("other")
	}
}

func (d *decoder) four(data []byte) {
	err := d.ip4.DecodeFromBytes(data, gopacket.NilDecodeFeedback)
	if len(data) >= 20 {
		d.addresses(data[12:16], data[16:20], data[9])
	}
	if !d.read(err) {
		return
	}
	if d.ip4.FragOffset > 0 {
		d.p.fragment, d.p.later = true, true
	} else if d.ip4.Flags&layers.IPv4MoreFragments != 0 {
		d.p.fragment = true
	}
	d.transport(uint8(d.ip4.Protocol), d.ip4.Payload)
}

func (d *decoder) six(data []byte) {
	err := d.ip6.DecodeFromBytes(data, gopacket.NilDecodeFeedback)
	if len(data) >= 40 {
		d.addresses(data[8:24], data[24:40], data[6])
	}
	if !d.read(err) {
		return
	}
	next, rest := d.ip6.NextHeader, d.ip6.Payload
	if d.ip6.HopByHop != nil {
		next = d.ip6.HopByHop.NextHeader
	}
	for range maxDepth { // extension headers
		d.p.proto = uint8(next)
		switch next {
		case layers.IPProtocolIPv6HopByHop, layers.IPProtocolIPv6Routing, layers.IPProtocolIPv6Destination:
			if !d.read(d.skipper.DecodeFromBytes(rest, gopacket.NilDecodeFeedback)) {
				return
			}
			next, rest = d.skipper.NextHeader, d.skipper.Payload
		case layers.IPProtocolIPv6Fragment:
			if !d.read(d.fragment.DecodeFromBytes(rest, gopacket.NilDecodeFeedback)) {
				return
			}
			next, rest = d.fragment.NextHeader, d.fragment.Payload
			d.p.later = d.p.later || d.fragment.FragmentOffset > 0
			d.p.fragment = d.p.fragment || d.p.later || d.fragment.MoreFragments
			if d.fragment.FragmentOffset > 0 { // what follows is no header
				d.transport(uint8(next), rest)
				return
			}
		default:
			d.transport(uint8(next), rest)
			return
		}
	}
	d.p.malformed = true
}

// addresses notes where a packet goes, and forgets those of a tunnel around it.
func (d *decoder) addresses(from, to []byte, proto uint8) {
	d.p.ip, d.p.ports, d.p.proto = true, false, proto
	d.p.from, _ = netip.AddrFromSlice(from)
	d.p.to, _ = netip.AddrFromSlice(to)
}

// transport reads what IP carries.
func (d *decoder) transport(proto uint8, data []byte) {
	d.p.proto = proto
	if d.p.later {
		d.enter("fragment")
		return
	}
	name, known := protocols[proto]
	if !known {
		d.enter("other")
		return
	}
	if (layers.IPProtocol(proto) != layers.IPProtocolIPv4 && layers.IPProtocol(proto) != layers.IPProtocolIPv6) && !d.enter(name) {
		return
	}
	switch layers.IPProtocol(proto) {
	case layers.IPProtocolTCP:
		d.readPorts(data)
		if len(data) >= 14 {
			d.p.flags = data[13]
		}
		if d.read(d.tcp.DecodeFromBytes(data, gopacket.NilDecodeFeedback)) {
			d.p.payload = d.tcp.Payload
		}
	case layers.IPProtocolUDP:
		d.readPorts(data)
		if d.read(d.udp.DecodeFromBytes(data, gopacket.NilDecodeFeedback)) {
			d.p.payload = d.udp.Payload
		}
	case layers.IPProtocolSCTP:
		d.readPorts(data)
		d.read(d.sctp.DecodeFromBytes(data, gopacket.NilDecodeFeedback))
	case layers.IPProtocolICMPv4:
		d.read(d.icmp4.DecodeFromBytes(data, gopacket.NilDecodeFeedback))
	case layers.IPProtocolICMPv6:
		d.read(d.icmp6.DecodeFromBytes(data, gopacket.NilDecodeFeedback))
	case layers.IPProtocolGRE:
		if d.read(d.gre.DecodeFromBytes(data, gopacket.NilDecodeFeedback)) {
			d.next(d.gre.Protocol, d.gre.Payload)
		}
	case layers.IPProtocolIPv4:
		d.next(layers.EthernetTypeIPv4, data)
	case layers.IPProtocolIPv6:
		d.next(layers.EthernetTypeIPv6, data)
	}
}

// readPorts reads the ports, which stand first: they may be there where the
// rest of the header is not.
func (d *decoder) readPorts(data []byte) {
	if len(data) < 4 {
		return
	}
	d.p.ports, d.p.src, d.p.dst = true, binary.BigEndian.Uint16(data), binary.BigEndian.Uint16(data[2:])
}

// protocols are the names of what IP carries.
var protocols = map[uint8]string{
	1: "icmp", 2: "igmp", 4: "ip", 6: "tcp", 17: "udp", 41: "ipv6", 47: "gre", 50: "esp", 51: "ah", 58: "icmpv6",
	88: "eigrp", 89: "ospf", 103: "pim", 112: "vrrp", 115: "l2tp", 132: "sctp", 136: "udplite",
}

type constant string

func (c constant) Error() string { return string(c) }

const errNoBytes = constant("there are no bytes")
