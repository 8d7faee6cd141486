package document

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// The host and its reader speak in messages: the length of a header and that of a
// body, four bytes each, the header as JSON, the body. The reader answers each
// message with one.

// Compile is the first argument of a reader that is to compile what it needs, into the
// directory that is the second.
const Compile = "compile"

// maxHeader is the size of a header.
const maxHeader = 1 << 20

// A Request is the header of what the host wants. The body is the file.
type Request struct {
	Kind string `json:"kind"`
	MIME string `json:"mime,omitempty"`
	Draw bool   `json:"draw,omitempty"` // a page, as a PNG, in place of the text
	Page int    `json:"page,omitempty"`
}

// A Response is the header of what the reader says. The body is the text, or
// the page.
type Response struct {
	Kind       string         `json:"kind,omitempty"` // of a zip archive
	Title      string         `json:"title,omitempty"`
	Method     string         `json:"method,omitempty"`
	Engine     string         `json:"engine,omitempty"`
	Confidence float64        `json:"confidence,omitempty"`
	Details    map[string]any `json:"details,omitempty"`
	Pages      int            `json:"pages,omitempty"`
	Refusal    *Refusal       `json:"refusal,omitempty"`
	Failure    string         `json:"failure,omitempty"` // an internal failure, neither the file's nor the caller's
}

// Send writes a message.
func Send(w io.Writer, header any, body []byte) error {
	raw, err := json.Marshal(header)
	if err != nil {
		return err
	}
	head := binary.BigEndian.AppendUint32(nil, uint32(len(raw)))
	head = binary.BigEndian.AppendUint32(head, uint32(len(body)))
	if _, err := w.Write(append(head, raw...)); err != nil {
		return err
	}
	_, err = w.Write(body)
	return err
}

// Receive reads a message whose body has at most so many bytes.
func Receive(r io.Reader, header any, most int) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size, length := binary.BigEndian.Uint32(head[:4]), binary.BigEndian.Uint32(head[4:])
	if size > maxHeader || int64(length) > int64(most) {
		return nil, fmt.Errorf("a message of %d and %d bytes; at most %d and %d are read", size, length, maxHeader, most)
	}
	data := make([]byte, int(size)+int(length))
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	return data[size:], json.Unmarshal(data[:size], header)
}
