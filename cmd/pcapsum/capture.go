package main

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gopacket/gopacket/layers"
)

// A capture is a file of packets, read from front to back.
type capture struct {
	file       *os.File
	tape       *tape
	compressed bool
	pcap       *pcap   // one of the two is there
	ng         *pcapng //
	broken     string  // why reading ended before the end of the file
	at         int64   // where: the beginning of what could not be read
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

// openCapture opens a file and reads as much as says that it is a capture.
func openCapture(path string) (*capture, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &failure{codeNotFound, "there is no file " + path}
	}
	if err != nil {
		return nil, &failure{codeUnreadable, err.Error()}
	}
	return readCapture(file, path)
}

// readCapture takes a file that is open, at its beginning, and closes it where it is no capture.
func readCapture(file *os.File, path string) (*capture, error) {
	c := &capture{file: file}
	if err := c.begin(); err != nil {
		file.Close()
		return nil, &failure{codeUnreadable, fmt.Sprintf("%s is no capture that can be read: %v", filepath.Base(path), err)}
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
		return errors.New("it is empty, and a capture has a header even without packets")
	}
	var source io.Reader = c.file
	var magic [2]byte
	if n, _ := c.file.ReadAt(magic[:], 0); n == 2 && magic == [2]byte{0x1f, 0x8b} {
		c.compressed = true
		if source, err = gzip.NewReader(bufio.NewReaderSize(c.file, 1<<18)); err != nil {
			return fmt.Errorf("it begins as gzip does and cannot be decompressed: %w", err)
		}
	}
	c.tape = newTape(source)
	head, err := c.tape.r.Peek(4)
	if err != nil {
		return fmt.Errorf("it has %d bytes", len(head))
	}
	switch binary.BigEndian.Uint32(head) {
	case blockSection:
		c.ng, err = newPcapNG(c.tape)
	case 0xa1b2c3d4, 0xa1b23c4d, 0xd4c3b2a1, 0x4d3cb2a1:
		c.pcap, err = newPcap(c.tape)
	case 0xa1b2cd34, 0x34cdb2a1:
		err = errors.New("it is in the modified pcap format of old systems; convert it first: editcap FILE OUT")
	default:
		err = fmt.Errorf("it begins with the bytes % x, which neither pcap nor pcapng does", head)
	}
	return err
}

// next reads one packet. It reports false at the end, be it the file's own or
// the place from where nothing can be read: broken says so then.
func (c *capture) next(f *frame) bool {
	var err error
	if c.ng != nil {
		err = c.ng.next(f)
	} else {
		err = c.pcap.next(f)
	}
	if err != nil && err != io.EOF {
		c.broken, c.at = err.Error(), c.tape.from
	}
	return err == nil
}

// rest is how much of the file was not read.
func (c *capture) rest() int64 {
	info, err := c.file.Stat()
	if err != nil {
		return 0
	}
	return max(0, info.Size()-c.at)
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
