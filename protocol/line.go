package protocol

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// ErrLineTooLong is what a [LineReader] returns for a line over its bound.
var ErrLineTooLong = errors.New("line too long")

// ErrNoRoom is what a [LineReader] returns that gets no room for a line.
var ErrNoRoom = errors.New("no room for a line")

// freeLine is up to which size a buffer asks for no room.
const freeLine = 64 << 10

// A LineReader reads lines of bounded length. It is not safe for concurrent use.
type LineReader struct {
	// Room is asked before a buffer of more than 64 KiB is made, and again before
	// one of more than 1 MiB, each time for as much as it may become. It may have
	// the reader wait. It returns what gives the room back, which is called when
	// the next line is asked for, or nil if there is none: [ErrNoRoom]. It may be nil.
	Room func(bytes int) (leave func())

	r     io.Reader
	held  []func() // give back the room of the buffer
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
// returned first if it is a whole line. After a deadline of the reader it may be
// called again.
func (l *LineReader) ReadLine() ([]byte, error) {
	l.settle()
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
			err := l.err
			if errors.Is(err, os.ErrDeadlineExceeded) {
				l.err = nil // with a later deadline it goes on
			}
			return nil, err
		}
		if !l.fill() {
			return nil, ErrNoRoom
		}
	}
}

// settle gives back the room of the line before, unless what is read already
// needs it.
func (l *LineReader) settle() {
	if len(l.held) == 0 || l.end-l.start > freeLine {
		return
	}
	l.shrink()
	l.Leave()
}

// shrink makes the buffer one that needs no room.
func (l *LineReader) shrink() {
	if len(l.buf) <= freeLine {
		return
	}
	small := make([]byte, max(min(32<<10, l.limit+1), l.end-l.start))
	l.scan -= l.start
	l.start, l.end = 0, copy(small, l.buf[l.start:l.end])
	l.buf = small
}

// Take returns what gives back the room of the last line, for its taker to call
// once it is done with the line.
func (l *LineReader) Take() (leave func()) {
	if l.end-l.start > freeLine {
		return func() {}
	}
	held := l.held
	l.held = nil
	l.shrink()
	return func() {
		for _, leave := range held {
			leave()
		}
	}
}

// Leave gives back the room that the reader has, which reads no more lines.
func (l *LineReader) Leave() {
	for _, leave := range l.held {
		leave()
	}
	l.held = nil
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

// ask asks for the room of a buffer of that size, once for all up to 1 MiB and
// once for all beyond, and reports whether there is any.
func (l *LineReader) ask(size int) bool {
	for len(l.held) < 2 && l.Room != nil && size > []int{freeLine, 4 * largeLine}[len(l.held)] {
		leave := l.Room(min([]int{4 * largeLine, l.limit + 1}[len(l.held)], l.limit+1))
		if leave == nil {
			return false
		}
		l.held = append(l.held, leave)
	}
	return true
}

// fill reads more, making room first, and reports whether there was any.
func (l *LineReader) fill() bool {
	switch {
	case l.start == l.end:
		l.start, l.scan, l.end = 0, 0, 0
	case l.end == len(l.buf) && l.start > 0:
		n := copy(l.buf, l.buf[l.start:l.end])
		l.scan -= l.start
		l.start, l.end = 0, n
	case l.end == len(l.buf):
		size := 2 * len(l.buf)
		if size > 4*largeLine { // the smaller ones on the way would be as much again
			size = max(size, MaxFrame2+1)
		}
		size = min(size, l.limit+1)
		if !l.ask(size) {
			return false
		}
		grown := make([]byte, size)
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	n, err := l.r.Read(l.buf[l.end:])
	l.end += n
	l.err = err
	return true
}
