package protocol

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Frame is one line of version 2: a request, a notification or a response of
// JSON-RPC 2.0. Its values are the bytes of the line, checked to be strict
// I-JSON and otherwise unread.
type Frame struct {
	ID      jsontext.Value // an integer or a string; nil in a notification
	Method  string         // empty in a response
	Params  jsontext.Value
	Result  jsontext.Value
	Error   jsontext.Value
	Unknown string // the first member beyond these, if any; "" in quotes where its name is empty
}

// IsResponse reports whether f answers a request.
func (f *Frame) IsResponse() bool { return f.Method == "" }

// IntID returns the id of a response to one of the host's requests.
func (f *Frame) IntID() (int64, bool) {
	if len(f.ID) == 0 || f.ID[0] == '"' {
		return 0, false
	}
	id, err := strconv.ParseInt(string(f.ID), 10, 64)
	return id, err == nil
}

// A decoder is a JSON decoder with the buffer it reads, kept for the next line.
type decoder struct {
	buf bytes.Buffer
	dec *jsontext.Decoder
}

var decoders = sync.Pool{New: func() any {
	d := &decoder{}
	d.dec = jsontext.NewDecoder(&d.buf)
	return d
}}

// ParseFrame reads one line. It refuses anything but one strict I-JSON object
// of the shape of JSON-RPC 2.0, nested no deeper than [MaxDepth]. The frame
// refers to the line's bytes.
func ParseFrame(line []byte) (Frame, error) {
	s := fasts.Get().(*fast)
	ok := s.parse(line)
	f := s.frame
	s.line, s.frame = nil, Frame{} // the pool keeps no line alive
	fasts.Put(s)
	if ok {
		return f, nil
	}
	return parseFrame(line)
}

var fasts = sync.Pool{New: func() any { return &fast{} }}

// parseFrame is ParseFrame by the reference decoder.
func parseFrame(line []byte) (f Frame, err error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	d.buf = *bytes.NewBuffer(line) // a decoder reads a bytes.Buffer in place
	d.dec.Reset(&d.buf)
	version, err := f.read(d.dec)
	if err == nil {
		err = f.checkShape(version)
	}
	d.buf = bytes.Buffer{}
	if err != nil {
		return Frame{}, err
	}
	if TooDeep(line) {
		return Frame{}, fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	return f, nil
}

// ReadPart decodes a part of a frame. [ParseFrame] has read it strictly, so the names of its
// members are not compared again: that takes many times their bytes where there are many.
func ReadPart(part jsontext.Value, into any) error {
	return json.Unmarshal(part, into, jsontext.AllowDuplicateNames(true))
}

// read takes the members of one object apart and returns its "jsonrpc".
func (f *Frame) read(dec *jsontext.Decoder) (version string, err error) {
	if dec.PeekKind() != '{' {
		if _, err := dec.ReadValue(); err != nil {
			return "", err
		}
		return "", errors.New("not a JSON object")
	}
	if _, err := dec.ReadToken(); err != nil {
		return "", err
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return "", err
		}
		member := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return "", err
		}
		switch member {
		case "id":
			f.ID = value
		case "result":
			f.Result = value
		case "params":
			f.Params = value
		case "error":
			f.Error = value
		case "method", "jsonrpc":
			if value.Kind() != '"' {
				return "", fmt.Errorf("%s is not a string", member)
			}
			text, err := jsontext.AppendUnquote(nil, value)
			if err != nil {
				return "", err
			}
			if member == "method" {
				f.Method = string(text)
			} else {
				version = string(text)
			}
		default:
			if f.Unknown == "" {
				f.Unknown = cmp.Or(member, `""`)
			}
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return "", err
	}
	if _, err := dec.ReadToken(); err != io.EOF {
		return "", errors.New("more than one value on the line")
	}
	return version, nil
}

// checkShape tells a request, a notification and a response from everything else.
func (f *Frame) checkShape(version string) error {
	switch {
	case version != "2.0":
		return errors.New(`jsonrpc is not "2.0"`)
	case f.ID != nil && f.ID.Kind() != '"' && (f.ID.Kind() != '0' || bytes.ContainsAny(f.ID, ".eE")):
		return errors.New("id is neither an integer nor a string")
	case len(f.ID) > MaxID+2:
		return fmt.Errorf("id is longer than %d bytes", MaxID)
	case f.Method != "" && (f.Result != nil || f.Error != nil):
		return errors.New("both a request and a response")
	case f.Method != "":
		return nil
	case f.ID == nil:
		return errors.New("neither a method nor an id")
	case (f.Result == nil) == (f.Error == nil):
		return errors.New("a response has either a result or an error")
	case f.Params != nil:
		return errors.New("a response has no params")
	}
	return nil
}

// TooDeep reports whether valid JSON is nested deeper than [MaxDepth]. Nearly
// every line has too few brackets for that, which is quick to see.
func TooDeep(line []byte) bool {
	if bytes.Count(line, []byte{'{'})+bytes.Count(line, []byte{'['}) <= MaxDepth {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// A MemberScanner goes through the members of an object that is known to be valid
// JSON, such as a part of a [Frame], in order and without allocating. It looks at
// the structure only, at a fraction of the cost of reading it again. Anything but
// an object has no members.
type MemberScanner struct {
	Name  []byte
	Value jsontext.Value

	object []byte
	at     int
}

// ScanMembers returns a scanner before the first member of object.
func ScanMembers(object []byte) MemberScanner {
	m := MemberScanner{object: object, at: len(object)}
	if i := skipSpace(object, 0); i < len(object) && object[i] == '{' {
		m.at = skipSpace(object, i+1)
	}
	return m
}

// Next goes to the next member and reports whether there is one.
func (m *MemberScanner) Next() bool {
	b, i := m.object, m.at
	if i >= len(b) || b[i] != '"' {
		return false
	}
	end := skipValue(b, i)
	if m.Name = b[i+1 : end-1]; bytes.IndexByte(m.Name, '\\') >= 0 {
		m.Name, _ = jsontext.AppendUnquote(nil, b[i:end]) // known to be valid
	}
	i = skipSpace(b, end)
	i = skipSpace(b, i+1) // the colon
	end = skipValue(b, i)
	m.Value = b[i:end]
	i = skipSpace(b, end)
	m.at = skipSpace(b, i+1) // after the comma, or the end
	return true
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns where the value that begins at i ends.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return len(b)
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for i < len(b) {
			switch b[i] {
			case '"':
				i = skipString(b, i)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
			i++
		}
		return len(b)
	default: // a number or a literal
		for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' && b[i] > ' ' {
			i++
		}
		return i
	}
}

// skipString returns where the string that begins at i ends.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		j := bytes.IndexByte(b[i:], '"')
		if j < 0 {
			return len(b)
		}
		i += j
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}
