package protocol

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// This file reads in one pass, without allocating, the lines that nearly all
// lines are. It never has the last word against a line: whatever it does not
// recognise is read again by the reference decoder, which decides. So it has to
// be right only about what it accepts, and FuzzFast holds it to that.

// Bounds of what is read in one pass.
const (
	fastDepth = 32 // levels of nesting, fewer than MaxDepth
	fastNames = 64 // members of one object: each is compared with those before it
)

// A fast is one line being read. A position below zero says: ask the reference.
type fast struct {
	line  []byte
	frame Frame
	ok    bool // "jsonrpc" was there and right
	names [4 * fastNames]fastName
	top   int // names[:top] belong to the objects that are open
}

// A fastName is a member name of an object that is open.
type fastName struct {
	key        uint64 // equal where the names are; rarely otherwise
	start, end int
}

// parse takes the line apart, and returns false for what it does not recognise.
func (s *fast) parse(line []byte) bool {
	s.line, s.frame, s.top, s.ok = line, Frame{}, 0, false
	end := s.object(s.space(0), 1)
	return end >= 0 && s.ok && s.space(end) == len(line) && s.frame.checkShape("2.0") == nil
}

// object reads one object, which begins at i, and returns where it ends.
func (s *fast) object(i, depth int) int {
	b := s.line
	if i >= len(b) || b[i] != '{' || depth > fastDepth {
		return -1
	}
	first := s.top
	if i = s.space(i + 1); i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i >= len(b) || b[i] != '"' {
			return -1
		}
		name := i + 1
		nameEnd := s.name(name)
		if nameEnd < 0 || !s.fresh(first, name, nameEnd) {
			return -1
		}
		if i = s.space(nameEnd + 1); i >= len(b) || b[i] != ':' {
			return -1
		}
		value := s.space(i + 1)
		if i = s.value(value, depth+1); i < 0 {
			return -1
		}
		if depth == 1 && !s.member(name, nameEnd, value, i) {
			return -1
		}
		if i = s.space(i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case ',':
			i = s.space(i + 1)
		case '}':
			s.top = first
			return i + 1
		default:
			return -1
		}
	}
}

// member keeps a member of the frame.
func (s *fast) member(name, nameEnd, start, end int) bool {
	f := &s.frame
	value := jsontext.Value(s.line[start:end])
	switch string(s.line[name:nameEnd]) {
	case "id":
		f.ID = value
	case "params":
		f.Params = value
	case "result":
		f.Result = value
	case "error":
		f.Error = value
	case "jsonrpc":
		s.ok = string(value) == `"2.0"`
		return s.ok
	case "method":
		if len(value) < 2 || value[0] != '"' {
			return false
		}
		for _, c := range value {
			if c == '\\' {
				return false
			}
		}
		f.Method = word(value[1 : len(value)-1])
	default:
		return false // rare: the host refuses it, a plugin passes over it
	}
	return true
}

// word returns the text, without allocating where it is a usual one.
func word(b []byte) string {
	switch string(b) {
	case "execute":
		return "execute"
	case "emit":
		return "emit"
	case "log":
		return "log"
	}
	return string(b)
}

// fresh adds a name to those of the object whose names begin at first, and
// returns false where it may be there already or is one too many.
func (s *fast) fresh(first, start, end int) bool {
	if s.top == len(s.names) || s.top-first == fastNames {
		return false
	}
	key := NameKey(s.line[start:end])
	for _, other := range s.names[first:s.top] {
		if other.key == key && string(s.line[other.start:other.end]) == string(s.line[start:end]) {
			return false
		}
	}
	s.names[s.top] = fastName{key, start, end}
	s.top++
	return true
}

// NameKey mixes the length of a member's name with its first and last eight bytes: names with
// different keys differ, and those with the same key may be equal.
func NameKey(name []byte) uint64 {
	n := len(name)
	if n >= 8 {
		return binary.LittleEndian.Uint64(name)*0x9e3779b97f4a7c15 ^ binary.LittleEndian.Uint64(name[n-8:]) ^ uint64(n)<<56
	}
	key := uint64(n)
	for _, c := range name {
		key = key<<8 | uint64(c)
	}
	return key
}

// value reads one value and returns where it ends.
func (s *fast) value(i, depth int) int {
	b := s.line
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; c {
	case '"':
		return s.text(i + 1)
	case '{':
		return s.object(i, depth)
	case '[':
		return s.array(i, depth)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		return s.number(i)
	}
}

func (s *fast) array(i, depth int) int {
	b := s.line
	if depth > fastDepth {
		return -1
	}
	if i = s.space(i + 1); i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth+1); i < 0 {
			return -1
		}
		if i = s.space(i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case ',':
			i = s.space(i + 1)
		case ']':
			return i + 1
		default:
			return -1
		}
	}
}

func (s *fast) literal(i int, want string) int {
	if end := i + len(want); end <= len(s.line) && string(s.line[i:end]) == want {
		return end
	}
	return -1
}

// number reads one as RFC 8259 has it.
func (s *fast) number(i int) int {
	b := s.line
	if i < len(b) && b[i] == '-' {
		i++
	}
	whole := i
	i = digits(b, i)
	if i == whole || b[whole] == '0' && i > whole+1 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		fraction := i + 1
		if i = digits(b, fraction); i == fraction {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		exponent := i
		if i = digits(b, exponent); i == exponent {
			return -1
		}
	}
	return i
}

func digits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// Plain returns where the run of characters that stand for themselves in a JSON string ends
// that begins at i: at a quote, a backslash, a control character, no ASCII, or the end of b.
func Plain(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 { // eight at a time
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// The lowest bit set is in the first byte looked for; higher ones may err. A byte that
		// is no ASCII sets it in each of the four.
		if stop := ((quote - ones) | (slash - ones) | (w - ones*' ') | w) & highs; stop != 0 {
			return i + bits.TrailingZeros64(stop)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// name reads a member name without escapes up to its closing quote.
func (s *fast) name(i int) int {
	if i = Plain(s.line, i); i < len(s.line) && s.line[i] == '"' {
		return i
	}
	return -1
}

// text reads a string, which begins at i, and returns where its quote is closed.
func (s *fast) text(i int) int {
	b := s.line
	for {
		if i = Plain(b, i); i >= len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = escape(b, i+1); i < 0 {
				return -1
			}
		case c < ' ':
			return -1
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return -1
			}
			i += n
		}
	}
}

// escape reads what follows a backslash. Surrogates are the reference's.
func escape(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if i+5 > len(b) {
			return -1
		}
		code := 0
		for _, c := range b[i+1 : i+5] {
			switch {
			case c-'0' <= 9:
				code = code<<4 | int(c-'0')
			case c|' ' >= 'a' && c|' ' <= 'f':
				code = code<<4 | int(c|' '-'a'+10)
			default:
				return -1
			}
		}
		if code >= 0xd800 && code <= 0xdfff {
			return -1
		}
		return i + 5
	}
	return -1
}

func (s *fast) space(i int) int { return skipSpace(s.line, i) }
