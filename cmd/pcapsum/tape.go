package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// maxPacket is the longest packet that is read: four times what tcpdump takes.
// A longer one is a length that lies.
const maxPacket = 1 << 20

// A tape is a file that is read from front to back, and knows where it is.
type tape struct {
	r    *bufio.Reader
	at   int64 // how far was read
	from int64 // where the record begins that is being read
	buf  []byte
}

func newTape(r io.Reader) *tape {
	return &tape{r: bufio.NewReaderSize(r, 1<<16), buf: make([]byte, 1<<12)}
}

var errCutOff = errors.New("the file ends in the middle of a record")

// mark notes that a record begins here. It returns io.EOF where the file ends.
func (t *tape) mark() error {
	t.from = t.at
	_, err := t.r.Peek(1)
	return err
}

// read returns the next n bytes. They are good until the next read.
func (t *tape) read(n int) ([]byte, error) {
	if n > len(t.buf) {
		t.buf = make([]byte, n+n/4)
	}
	got, err := io.ReadFull(t.r, t.buf[:n])
	t.at += int64(got)
	return t.buf[:got], cutOff(err)
}

// skip passes over n bytes.
func (t *tape) skip(n int64) error {
	for n > 0 {
		got, err := t.r.Discard(int(min(n, 1<<30)))
		t.at += int64(got)
		n -= int64(got)
		if err != nil {
			return cutOff(err)
		}
	}
	return nil
}

// cutOff names the error of a file that ends too early; others it returns.
func cutOff(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errCutOff
	}
	return err
}

// tooLong refuses a packet of a length that no packet has.
func tooLong(n uint32) error {
	return fmt.Errorf("a packet of %d bytes: more than the %d that are read", n, maxPacket)
}
