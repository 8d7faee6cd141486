package protocol

import (
	"bytes"
	"errors"
	"io"
)

// ErrLineTooLong is what a [LineReader] returns for a line over its bound.
var ErrLineTooLong = errors.New("line too long")

// A LineReader reads lines of bounded length. It is not safe for concurrent use.
type LineReader struct {
	Grown func(bytes int) // hears of large buffers before they are made; may be nil

	r     io.Reader
	limit int
	buf   []byte // buf[start:end] is read and not yet returned
	start int
	end   int
	scan  int // buf[start:scan] holds no newline
	err   error
}

// NewLineReader returns a reader of lines of at most limit bytes, the newline
// not counted.
func NewLineReader(r io.Reader, limit int) *LineReader {
	return &LineReader{r: r, limit: limit, buf: make([]byte, min(32<<10, limit+1))}
}

// ReadLine returns the next line without its newline; the caller may keep it.
// A last line without a newline is still a line. It returns io.EOF when there
// is no more, ErrLineTooLong for a line over the bound, and the reader's own
// error for anything else; what was read before a reader's error is still
// returned first if it is a whole line.
func (l *LineReader) ReadLine() ([]byte, error) {
	for {
		if i := bytes.IndexByte(l.buf[l.scan:l.end], '\n'); i >= 0 {
			end := l.scan + i
			if end-l.start > l.limit {
				return nil, ErrLineTooLong
			}
			return l.cut(end, 1), nil
		}
		l.scan = l.end
		if l.end-l.start > l.limit {
			return nil, ErrLineTooLong
		}
		if l.err != nil {
			if l.end > l.start && l.err == io.EOF {
				return l.cut(l.end, 0), nil
			}
			return nil, l.err
		}
		l.fill()
	}
}

// largeLine is from which size on a line takes the buffer with it.
const largeLine = 256 << 10

// cut takes out the line that ends there, and the newline behind it: a copy of
// it or, of a large one, the buffer itself, so that the memory is not taken twice
// and not kept either.
func (l *LineReader) cut(end, newline int) []byte {
	line, next := l.buf[l.start:end:end], end+newline
	if len(line) < largeLine || len(line) < len(l.buf)/2 {
		l.start, l.scan = next, next
		line = bytes.Clone(line)
		if l.start == l.end && len(l.buf) > 2*largeLine {
			l.buf, l.start, l.scan, l.end = make([]byte, min(32<<10, l.limit+1)), 0, 0, 0
		}
		return line
	}
	rest := l.buf[next:l.end]
	l.buf = make([]byte, max(min(32<<10, l.limit+1), len(rest)))
	l.start, l.scan, l.end = 0, 0, copy(l.buf, rest)
	return line
}

// fill reads more, making room first.
func (l *LineReader) fill() {
	switch {
	case l.start == l.end:
		l.start, l.scan, l.end = 0, 0, 0
	case l.end == len(l.buf) && l.start > 0:
		n := copy(l.buf, l.buf[l.start:l.end])
		l.scan -= l.start
		l.start, l.end = 0, n
	case l.end == len(l.buf):
		size := 2 * len(l.buf)
		if size > 2*largeLine { // the smaller ones on the way would be as much again
			size = max(size, MaxFrame2+1)
		}
		if l.Grown != nil && size > largeLine {
			l.Grown(size)
		}
		grown := make([]byte, min(size, l.limit+1))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	l.err = err
}
