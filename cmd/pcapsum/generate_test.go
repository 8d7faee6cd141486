package main

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// A shape says how a capture is written.
type shape struct {
	name    string
	order   byteOrder
	nanos   bool // of pcap
	ng      bool
	snaplen int // 0 for whole packets
	flows   int // about how many conversations there are
}

type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

var shapes = []shape{
	{name: "pcap", order: binary.LittleEndian, flows: 300},
	{name: "pcap, big endian", order: binary.BigEndian, flows: 300},
	{name: "pcap, nanoseconds", order: binary.LittleEndian, nanos: true, flows: 300},
	{name: "pcap, nanoseconds, big endian", order: binary.BigEndian, nanos: true, flows: 300},
	{name: "pcap, short snaplen", order: binary.LittleEndian, snaplen: 60, flows: 300},
	{name: "pcap, very short snaplen", order: binary.LittleEndian, snaplen: 36, flows: 300},
	{name: "pcapng", order: binary.LittleEndian, ng: true, flows: 300},
	{name: "pcapng, big endian", order: binary.BigEndian, ng: true, flows: 300},
	{name: "pcapng, short snaplen", order: binary.LittleEndian, ng: true, snaplen: 96, flows: 300},
}

// A truth is what the generator knows of what it wrote.
type truth struct {
	packets, bytes, captured int64
	first, last              int64
	flows                    map[string]int64 // packets of each conversation that the ends, ports and protocol name
	vlans                    map[uint16]int64
	fragments                int64
	starts                   []int64 // where each packet's record begins
}

// A generator writes packets of every kind. The same seed writes the same.
type generator struct {
	r      *rand.Rand
	truth  truth
	now    int64
	hello  []byte
	number int
	flows  int
}

func newGenerator(t testing.TB, seed uint64, flows int) *generator {
	return &generator{
		r: rand.New(rand.NewPCG(seed, 1)), now: 1_767_225_600_000_000_000, hello: clientHello(t), flows: flows,
		truth: truth{flows: map[string]int64{}, vlans: map[uint16]int64{}},
	}
}

// clientHello is what a client of TLS says first.
func clientHello(t testing.TB) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Client(client, &tls.Config{ServerName: "shop.example.com", CurvePreferences: []tls.CurveID{tls.X25519}}).Handshake()
	}()
	head := make([]byte, 5)
	if _, err := io.ReadFull(server, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	server.Close()
	<-done
	return append(head, body...)
}

// next returns one packet on Ethernet.
func (g *generator) next(t testing.TB) []byte {
	g.number++
	g.now += int64(g.r.IntN(2_000_000)) / 1000 * 1000
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	kind := g.r.IntN(100)
	if kind < 2 {
		eth.EthernetType = layers.EthernetTypeARP
		return serialize(t, eth, &layers.ARP{AddrType: 1, Protocol: layers.EthernetTypeIPv4, HwAddressSize: 6, ProtAddressSize: 4, Operation: 1,
			SourceHwAddress: eth.SrcMAC, SourceProtAddress: []byte{192, 0, 2, 1}, DstHwAddress: make([]byte, 6), DstProtAddress: []byte{192, 0, 2, 2}})
	}
	flow := g.r.IntN(g.flows)
	six := flow%4 == 0
	from, to := ends(flow, six)
	src, dst := uint16(10000+flow%50000), uint16(9999)
	back := g.r.IntN(3) == 0
	if back {
		from, to, src, dst = to, from, dst, src
	}
	ip4 := &layers.IPv4{Version: 4, TTL: 64, Id: uint16(g.number), SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	ip6 := &layers.IPv6{Version: 6, HopLimit: 64, SrcIP: from.AsSlice(), DstIP: to.AsSlice()}
	tcp := &layers.TCP{SrcPort: layers.TCPPort(src), DstPort: layers.TCPPort(dst), Seq: g.r.Uint32(), ACK: true, Window: 1000}
	udp := &layers.UDP{SrcPort: layers.UDPPort(src), DstPort: layers.UDPPort(dst)}
	load := gopacket.Payload(g.bytes(g.r.IntN(1300)))
	var inner []gopacket.SerializableLayer
	proto := layers.IPProtocolTCP
	ports := true
	var extension []byte // an IPv6 fragment or destination header
	switch {
	case kind < 50:
		inner = []gopacket.SerializableLayer{tcp, load}
	case kind < 54:
		tcp.SYN, tcp.ACK = true, back
		inner = []gopacket.SerializableLayer{tcp}
	case kind < 56:
		tcp.SrcPort, tcp.DstPort = layers.TCPPort(10000+flow%50000), 443
		src, dst = uint16(tcp.SrcPort), 443
		inner = []gopacket.SerializableLayer{tcp, gopacket.Payload(g.hello)}
	case kind < 58:
		tcp.DstPort, tcp.SrcPort = 80, layers.TCPPort(10000+flow%50000)
		src, dst = uint16(tcp.SrcPort), 80
		inner = []gopacket.SerializableLayer{tcp, gopacket.Payload(fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: host%d.example.com\r\nAccept: */*\r\n\r\n", flow%7))}
	case kind < 62:
		udp.DstPort, udp.SrcPort = 53, layers.UDPPort(10000+flow%50000)
		src, dst = uint16(udp.SrcPort), 53
		proto = layers.IPProtocolUDP
		inner = []gopacket.SerializableLayer{udp, &layers.DNS{ID: uint16(g.number), RD: true, QDCount: 1,
			Questions: []layers.DNSQuestion{{Name: fmt.Appendf(nil, "name%d.example.org", flow%11), Type: layers.DNSTypeA, Class: layers.DNSClassIN}}}}
	case kind < 76:
		proto = layers.IPProtocolUDP
		inner = []gopacket.SerializableLayer{udp, load}
	case kind < 80:
		ports = false
		if six {
			proto = layers.IPProtocolICMPv6
			inner = []gopacket.SerializableLayer{&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(128, 0)}, &layers.ICMPv6Echo{Identifier: 1, SeqNumber: uint16(g.number)}, load}
		} else {
			proto = layers.IPProtocolICMPv4
			inner = []gopacket.SerializableLayer{&layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(8, 0), Id: 1, Seq: uint16(g.number)}, load}
		}
	case kind < 83:
		proto = layers.IPProtocolSCTP
		inner = []gopacket.SerializableLayer{&layers.SCTP{SrcPort: layers.SCTPPort(src), DstPort: layers.SCTPPort(dst)}, gopacket.Payload([]byte{11, 0, 0, 4})}
	case kind < 86:
		proto = layers.IPProtocolGRE // what counts is inside
		a, b := ends(flow+1, false)
		inner = []gopacket.SerializableLayer{&layers.GRE{Protocol: layers.EthernetTypeIPv4},
			&layers.IPv4{Version: 4, TTL: 9, Id: 7, Protocol: layers.IPProtocolUDP, SrcIP: a.AsSlice(), DstIP: b.AsSlice()}, udp, load}
		g.count(a, b, 17, src, dst, true)
	case kind < 92: // a fragment, the first or a later one
		proto = layers.IPProtocolUDP
		later := g.r.IntN(2) == 0
		g.truth.fragments++
		ports = !later
		if six {
			extension = make([]byte, 8)
			extension[0] = 17
			if later {
				binary.BigEndian.PutUint16(extension[2:], 185<<3)
			} else {
				binary.BigEndian.PutUint16(extension[2:], 1)
			}
			binary.BigEndian.PutUint32(extension[4:], uint32(g.number))
		} else if later {
			ip4.FragOffset = 185
		} else {
			ip4.Flags = layers.IPv4MoreFragments
		}
		if later {
			inner = []gopacket.SerializableLayer{gopacket.Payload(g.bytes(200))}
		} else {
			inner = []gopacket.SerializableLayer{udp, gopacket.Payload(g.bytes(1472))}
		}
	default:
		inner = []gopacket.SerializableLayer{tcp, load}
		if six { // behind a header of options
			extension = []byte{6, 0, 1, 4, 0, 0, 0, 0}
		}
	}
	if proto != layers.IPProtocolGRE {
		g.count(from, to, uint8(proto), src, dst, ports)
	}
	var network []gopacket.SerializableLayer
	if six {
		eth.EthernetType = layers.EthernetTypeIPv6
		ip6.NextHeader = proto
		network = append(network, ip6)
		if extension != nil {
			ip6.NextHeader = layers.IPProtocolIPv6Destination
			if kind < 92 {
				ip6.NextHeader = layers.IPProtocolIPv6Fragment
			}
			network = append(network, gopacket.Payload(extension))
		}
	} else {
		ip4.Protocol = proto
		network = append(network, ip4)
	}
	link := []gopacket.SerializableLayer{eth}
	switch tags := g.r.IntN(20); {
	case tags < 3:
		link = append(link, &layers.Dot1Q{VLANIdentifier: uint16(10 + flow%3), Type: eth.EthernetType})
		g.truth.vlans[uint16(10+flow%3)]++
		eth.EthernetType = layers.EthernetTypeDot1Q
	case tags < 4:
		link = append(link, &layers.Dot1Q{VLANIdentifier: 100, Type: layers.EthernetTypeDot1Q}, &layers.Dot1Q{VLANIdentifier: 20, Type: eth.EthernetType})
		g.truth.vlans[100]++
		g.truth.vlans[20]++
		eth.EthernetType = layers.EthernetTypeQinQ
	}
	return serialize(t, append(append(link, network...), inner...)...)
}

// ends are the addresses of a flow.
func ends(flow int, six bool) (from, to netip.Addr) {
	if six {
		return netip.MustParseAddr(fmt.Sprintf("2001:db8::%x:%x", flow>>16, flow&0xffff)), netip.MustParseAddr("2001:db8:ffff::1")
	}
	return netip.AddrFrom4([4]byte{10, byte(flow >> 16), byte(flow >> 8), byte(flow)}), netip.AddrFrom4([4]byte{198, 51, 100, byte(flow % 50)})
}

func (g *generator) count(from, to netip.Addr, proto uint8, src, dst uint16, ports bool) {
	g.truth.flows[nameOf(from.String(), to.String(), protocolName(proto), src, dst, ports)]++
}

// nameOf names a conversation, the same from both sides.
func nameOf(from, to, proto string, src, dst uint16, ports bool) string {
	a, b := from, to
	if ports {
		a, b = fmt.Sprintf("%s %05d", from, src), fmt.Sprintf("%s %05d", to, dst)
	}
	return proto + " " + min(a, b) + " " + max(a, b)
}

func (g *generator) bytes(n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += 16 { // mostly zeros, which no protocol begins with
		b[i] = byte(g.r.Uint32()) & 0x0f
	}
	if n > 0 {
		b[0] = 0
	}
	return b
}

func payload(b []byte) gopacket.SerializableLayer { return gopacket.Payload(b) }

func serialize(t testing.TB, all ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true}, all...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// write writes a capture of about so many bytes and returns its path and what is in it.
func write(t testing.TB, s shape, seed uint64, size int64) (string, *truth) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	out := newWriter(file, s)
	g := newGenerator(t, seed, s.flows)
	out.header(layers.LinkTypeEthernet)
	for half := false; out.n < size; {
		if s.ng && !half && out.n > size/2 { // another section
			half = true
			out.header(layers.LinkTypeEthernet)
		}
		data := g.next(t)
		g.truth.starts = append(g.truth.starts, out.n)
		stamp := g.now
		if out.packet(data, stamp, g.number%3); g.truth.packets == 0 {
			g.truth.first = stamp
		}
		g.truth.packets++
		g.truth.bytes += int64(len(data))
		g.truth.captured += int64(len(s.snap(data)))
		g.truth.last = stamp
	}
	if err := out.w.Flush(); err != nil {
		t.Fatal(err)
	}
	return path, &g.truth
}

func (s shape) snap(data []byte) []byte {
	if s.snaplen > 0 {
		return data[:min(len(data), s.snaplen)]
	}
	return data
}

// A writer writes captures by the words of their formats.
type writer struct {
	w *bufio.Writer
	n int64
	shape
}

func newWriter(w io.Writer, s shape) *writer {
	return &writer{w: bufio.NewWriterSize(w, 1<<20), shape: s}
}

func (w *writer) put(b []byte) {
	n, _ := w.w.Write(b)
	w.n += int64(n)
}

// resolutions are those of the interfaces of a pcapng capture: microseconds,
// nanoseconds, and 2^-30 s.
var resolutions = []byte{6, 9, 0x80 | 30}

func (w *writer) header(link layers.LinkType) {
	snap := uint32(max(w.snaplen, 262144))
	if !w.ng {
		magic := uint32(0xa1b2c3d4)
		if w.nanos {
			magic = 0xa1b23c4d
		}
		b := w.order.AppendUint32(nil, magic)
		b = w.order.AppendUint16(w.order.AppendUint16(b, 2), 4)
		for _, n := range []uint32{0, 0, snap, uint32(link)} {
			b = w.order.AppendUint32(b, n)
		}
		w.put(b)
		return
	}
	b := w.order.AppendUint32(nil, 0x1a2b3c4d)
	b = w.order.AppendUint16(w.order.AppendUint16(b, 1), 0)
	w.block(0x0a0d0d0a, w.order.AppendUint64(b, 1<<64-1))
	for i, r := range resolutions {
		b = w.order.AppendUint16(w.order.AppendUint16(nil, uint16(link)), 0)
		b = w.order.AppendUint32(b, snap)
		b = w.option(b, 2, fmt.Appendf(nil, "eth%d", i))
		b = w.option(b, 9, []byte{r})
		w.block(1, w.option(b, 0, nil))
	}
	w.block(5, make([]byte, 12)) // statistics, which say nothing
}

func (w *writer) option(b []byte, code uint16, value []byte) []byte {
	b = w.order.AppendUint16(w.order.AppendUint16(b, code), uint16(len(value)))
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}

func (w *writer) block(kind uint32, body []byte) {
	body = append(body, make([]byte, -len(body)&3)...)
	length := uint32(len(body) + 12)
	b := w.order.AppendUint32(w.order.AppendUint32(nil, kind), length)
	w.put(w.order.AppendUint32(append(b, body...), length))
}

// packet writes one record; of pcapng for one of the interfaces.
func (w *writer) packet(data []byte, nanos int64, face int) {
	kept := w.snap(data)
	if !w.ng {
		unit := int64(1000)
		if w.nanos {
			unit = 1
		}
		var b []byte
		for _, n := range []int64{nanos / 1e9, nanos % 1e9 / unit, int64(len(kept)), int64(len(data))} {
			b = w.order.AppendUint32(b, uint32(n))
		}
		w.put(append(b, kept...))
		return
	}
	ticks := uint64(nanos / 1000)
	switch face {
	case 1:
		ticks = uint64(nanos)
	case 2: // rounded up, so that it reads as the same microsecond
		ticks = uint64(nanos/1e9)<<30 | (uint64(nanos%1e9)<<30+1e9-1)/1e9
	}
	b := w.order.AppendUint32(nil, uint32(face))
	b = w.order.AppendUint32(w.order.AppendUint32(b, uint32(ticks>>32)), uint32(ticks))
	b = w.order.AppendUint32(w.order.AppendUint32(b, uint32(len(kept))), uint32(len(data)))
	w.block(6, append(b, kept...))
}
