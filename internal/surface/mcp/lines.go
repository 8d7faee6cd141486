package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxLine bounds a message that comes in, in bytes.
const maxLine = 5 << 20

// A line is one message that came in, without its line break.
type line struct {
	text []byte
	long bool           // it has more than maxLine bytes; text is nil
	id   jsontext.Value // of a long one: its id, nil if it has none that can be read
}

// readLine returns the next line. Of one that is too long only the id is kept, so that the
// request can be answered, and the lines after it are read. The error is io.EOF at the end.
func readLine(r *bufio.Reader) (line, error) {
	var l line
	var found idFinder
	for {
		part, err := r.ReadSlice('\n')
		if !l.long && len(l.text)+len(part) > maxLine+1 {
			found.write(l.text)
			l.text, l.long = nil, true
		}
		if l.long {
			found.write(part)
		} else {
			l.text = append(l.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && (l.long || len(l.text) > 0):
			err = nil // a last line without a break is still a line
		}
		l.text, l.id = bytes.TrimSuffix(l.text, []byte("\n")), found.id
		return l, err
	}
}

// maxID bounds an id, in bytes.
const maxID = 256

// An idFinder finds the member "id" of a JSON object as the bytes of the object pass, in bounded
// memory. It does not check the rest of the object.
type idFinder struct {
	id jsontext.Value // the first one that is a string or a number

	depth           int
	inText, escaped bool
	inValue         bool   // of a member of the outermost object
	name            string // of that member, in its quotes
	held            []byte // of the name or the value at depth 1; at most maxID+1 bytes
}

func (f *idFinder) write(part []byte) {
	for _, c := range part {
		f.next(c)
	}
}

func (f *idFinder) next(c byte) {
	switch {
	case f.inText:
		f.keep(c)
		switch {
		case f.escaped:
			f.escaped = false
		case c == '\\':
			f.escaped = true
		case c == '"':
			f.inText = false
		}
	case c == '"':
		f.inText = true
		f.keep(c)
	case c == '{' || c == '[':
		f.keep(c) // a value that begins so is no id
		f.depth++
	case c == '}' || c == ']':
		if f.depth == 1 {
			f.end()
		}
		f.depth--
	case c == ':' && f.depth == 1 && !f.inValue:
		f.name, f.inValue, f.held = string(f.held), true, f.held[:0]
	case c == ',' && f.depth == 1:
		f.end()
	case c != ' ' && c != '\t' && c != '\r' && c != '\n':
		f.keep(c)
	}
}

func (f *idFinder) keep(c byte) {
	if f.depth == 1 && len(f.held) <= maxID {
		f.held = append(f.held, c)
	}
}

func (f *idFinder) end() {
	if f.name == `"id"` && f.id == nil && isID(f.held) {
		f.id = bytes.Clone(f.held)
	}
	f.name, f.inValue, f.held = "", false, f.held[:0]
}

// isID reports whether a value can be the id of a request: a string or a number.
func isID(v jsontext.Value) bool {
	return len(v) <= maxID && v.IsValid() && (v.Kind() == '"' || v.Kind() == '0')
}

// replaceID returns the message with another value of its member "id", and the one that it had,
// exactly as it was spelled; nil if it has none. The rest of the message stays byte for byte.
// The error says that the message is no JSON object, or names a member twice.
func replaceID(message []byte, id []byte) (replaced []byte, had jsontext.Value, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(message))
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, nil, errors.Join(err, errNoObject)
	}
	from, to := int64(0), int64(0)
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return nil, nil, err
		}
		is := name.String() == "id"
		value, err := dec.ReadValue()
		if err != nil {
			return nil, nil, err
		}
		if is {
			had, to = value.Clone(), dec.InputOffset()
			from = to - int64(len(value))
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, nil, err
	}
	if rest := bytes.TrimSpace(message[dec.InputOffset():]); len(rest) > 0 {
		return nil, nil, errNoObject
	}
	if had == nil {
		return message, nil, nil
	}
	return append(append(bytes.Clone(message[:from]), id...), message[to:]...), had, nil
}

var errNoObject = errors.New("a message is one JSON object")
