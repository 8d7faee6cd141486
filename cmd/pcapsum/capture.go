package main

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// Formats of captures.
const (
	formatPcap   = "pcap"
	formatPcapNG = "pcapng"
)

// maxInterfaces is how many interfaces of a pcapng capture are listed.
const maxInterfaces = 1000

// A capture is a file of packets, read from front to back.
type capture struct {
	file   *os.File
	count  *counter
	buf    *bufio.Reader
	packet packetReader
	ng     *pcapgo.NgReader // nil for pcap

	format     string
	order      string // big or little; of the first section
	nanos      bool   // of pcap
	compressed bool
	snaplen    uint32
	link       layers.LinkType // of pcap
	interfaces []face
	section    int    // where the current one's interfaces begin
	sections   int    // of pcapng
	broken     string // why reading ended before the end of the file
	at         int64  // where: the beginning of what could not be read
}

// A face is an interface that packets were captured on.
type face struct {
	name       string
	link       layers.LinkType
	snaplen    uint32
	resolution string
	packets    int64
	bytes      int64
}

// A frame is one packet as it lies in the file. The bytes are good until the
// next one is read.
type frame struct {
	data  []byte
	wire  int // its length on the wire
	link  layers.LinkType
	nanos int64 // since 1970
	timed bool  // whether it has a time that makes sense
}

// A packetReader is what pcap and pcapng readers have in common.
type packetReader interface {
	ZeroCopyReadPacketData() ([]byte, gopacket.CaptureInfo, error)
}

// openCapture opens a file and reads as much as says that it is a capture.
func openCapture(path string) (*capture, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &failure{codeNotFound, "there is no file " + path}
	}
	if err != nil {
		return nil, &failure{codeUnreadable, err.Error()}
	}
	c := &capture{file: file}
	if err := c.begin(); err != nil {
		file.Close()
		return nil, &failure{codeUnreadable, err.Error()}
	}
	return c, nil
}

func (c *capture) close() { _ = c.file.Close() }

// begin reads the header.
func (c *capture) begin() error {
	info, err := c.file.Stat()
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errors.New("it is not a file")
	case info.Size() == 0:
		return errors.New("the file is empty: a capture has a header even without packets")
	}
	var source io.Reader = c.file
	var magic [4]byte
	n, _ := c.file.ReadAt(magic[:], 0)
	if n >= 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		c.compressed = true
		if source, err = gzip.NewReader(bufio.NewReaderSize(c.file, 1<<18)); err != nil {
			return fmt.Errorf("it begins as gzip does and cannot be decompressed: %w", err)
		}
	}
	c.count = &counter{r: source, left: patience}
	c.buf = bufio.NewReaderSize(c.count, 1<<18)
	head, err := c.buf.Peek(4)
	if err != nil {
		return fmt.Errorf("it is %d bytes long, too short for a capture", len(head))
	}
	switch binary.BigEndian.Uint32(head) {
	case 0x0a0d0d0a:
		return c.beginPcapNG()
	case 0xa1b2c3d4, 0xa1b23c4d, 0xd4c3b2a1, 0x4d3cb2a1:
		return c.beginPcap(head)
	case 0xa1b2cd34, 0x34cdb2a1:
		return errors.New("it is a capture in the modified pcap format of old systems; convert it first: editcap FILE OUT")
	}
	return fmt.Errorf("it is neither a pcap nor a pcapng capture: it begins with the bytes % x", head)
}

func (c *capture) beginPcap(head []byte) error {
	c.format, c.order = formatPcap, "little"
	if head[0] == 0xa1 {
		c.order = "big"
	}
	r, err := pcapgo.NewReader(c.buf)
	if err != nil {
		return fmt.Errorf("its pcap header cannot be read: %w", whole(err))
	}
	c.packet, c.snaplen, c.link, c.nanos = r, r.Snaplen(), r.LinkType(), r.Resolution() == gopacket.TimestampResolutionNanosecond
	return nil
}

func (c *capture) beginPcapNG() error {
	head, err := c.buf.Peek(12)
	if err != nil {
		return fmt.Errorf("its pcapng header is cut off after %d bytes", len(head))
	}
	c.format, c.order = formatPcapNG, "little"
	if binary.BigEndian.Uint32(head[8:]) == 0x1a2b3c4d {
		c.order = "big"
	}
	r, err := pcapgo.NewNgReader(c.buf, pcapgo.NgReaderOptions{
		WantMixedLinkType:  true,
		SkipUnknownVersion: true,
		SectionEndCallback: func([]pcapgo.NgInterface, pcapgo.NgSectionInfo) { c.sections++; c.section = len(c.interfaces) },
	})
	if err != nil {
		return fmt.Errorf("its pcapng header cannot be read: %w", whole(err))
	}
	c.packet, c.ng, c.sections = r, r, 1
	return nil
}

// next reads one packet. It reports false at the end, be it the file's own or
// the place from where nothing can be read: broken says so then.
func (c *capture) next(f *frame) (more bool) {
	at := c.offset()
	c.count.left = patience
	data, info, err := c.read()
	switch {
	case err == nil:
	case err == io.EOF && c.count.err == nil && (c.ng != nil || c.offset() == at):
		return false // the end, where a record could begin
	default:
		if c.count.err != nil {
			err = c.count.err
		}
		c.broken, c.at = whole(err).Error(), at
		return false
	}
	f.data, f.wire, f.link = data, max(info.Length, len(data)), c.link
	if c.ng != nil {
		f.link = c.on(info, f.wire)
	}
	f.timed = !info.Timestamp.IsZero() && info.Timestamp.Unix() >= 0 && info.Timestamp.Year() < 2262
	f.nanos = info.Timestamp.UnixNano()
	return true
}

// read is the reader's own, and a packet that makes it panic is one that
// cannot be read.
func (c *capture) read() (data []byte, info gopacket.CaptureInfo, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the reader gave up: %v", p)
		}
	}()
	return c.packet.ZeroCopyReadPacketData()
}

// on counts a packet for its interface and returns the interface's link type.
func (c *capture) on(info gopacket.CaptureInfo, wire int) layers.LinkType {
	for n := len(c.interfaces) - c.section; n <= info.InterfaceIndex && len(c.interfaces) < maxInterfaces; n++ {
		i, err := c.ng.Interface(n)
		if err != nil {
			break
		}
		c.interfaces = append(c.interfaces, face{name: cut(i.Name, 100), link: i.LinkType, snaplen: i.SnapLength, resolution: resolution(i.Resolution())})
	}
	if n := c.section + info.InterfaceIndex; n < len(c.interfaces) {
		c.interfaces[n].packets++
		c.interfaces[n].bytes += int64(wire)
	}
	link, _ := info.AncillaryData[0].(layers.LinkType)
	return link
}

// offset is how far the file was read; in a compressed one, of what is inside.
func (c *capture) offset() int64 { return c.count.n - int64(c.buf.Buffered()) }

// rest is how much of the file was not read.
func (c *capture) rest() int64 {
	if c.broken == "" || c.compressed {
		return 0
	}
	info, err := c.file.Stat()
	if err != nil {
		return 0
	}
	return max(0, info.Size()-c.at)
}

// resolution says what a time stamp of an interface counts.
func resolution(r gopacket.TimestampResolution) string {
	return fmt.Sprintf("%d^%d s", r.Base, r.Exponent)
}

// whole says of a file that just ends what it means.
func whole(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends in the middle of a record")
	}
	return err
}

// patience is how much may be read on the way to the next packet. What lies
// between packets is kept in memory in part: a file of a million interfaces
// would take all of it.
const patience = 8 << 20

// A counter counts what is read, and ends what has no packet for too long.
type counter struct {
	r    io.Reader
	n    int64
	left int64
	err  error // why reading ended, where that is not the end of the file
}

var errNoPacket = fmt.Errorf("there is no packet within %d MiB", patience>>20)

func (c *counter) Read(p []byte) (int, error) {
	if c.left <= 0 {
		c.err = errNoPacket
		return 0, c.err
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.left -= int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// stamp writes a time as RFC 3339 with what it has of fractions.
func stamp(nanos int64) string { return time.Unix(0, nanos).UTC().Format(time.RFC3339Nano) }

// links are the link types of a capture's packets, the most frequent first.
func links(counts map[layers.LinkType]int64) []linkReport {
	all := []linkReport{}
	for link, n := range counts {
		all = append(all, linkReport{Number: int(link), Name: linkName(link), Packets: n})
	}
	slices.SortFunc(all, func(a, b linkReport) int {
		return compare(b.Packets, a.Packets, int64(a.Number), int64(b.Number))
	})
	return all
}
