package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one event of a stream, in bytes.
const maxEvent = maxAnswer

// events reads server-sent events until the stream ends, or show returns false. A stream that
// is cut off ends with io.ErrUnexpectedEOF.
func events(r io.Reader, show func(name string, data []byte) (more bool, err error)) error {
	lines := bufio.NewReaderSize(r, 64<<10)
	var name string
	var data []byte
	for {
		line, err := wholeLine(lines)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) > 0 && string(field) == "event":
			name = string(value)
		case len(line) > 0 && string(field) == "data":
			data = append(data, value...)
		case len(line) == 0 && name != "":
			more, err := show(name, data)
			if err != nil || !more {
				return err
			}
			name, data = "", nil
		}
	}
}

// wholeLine reads a line without its end.
func wholeLine(r *bufio.Reader) (line []byte, err error) {
	for {
		piece, err := r.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case len(line) > maxEvent:
			return nil, errors.New("an event is longer than it may be")
		case err == nil:
			return bytes.TrimRight(line, "\r\n"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
