package canon

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/protocol"
)

// A speller spells plain JSON in one pass: strings without escapes, names of ASCII, whole
// numbers of at most 15 digits, no deeper than plainDepth. Such a value has the spelling
// that [spell] gives it, which the library makes. The speller leaves all other values, and
// every value in doubt, to the library.
//
// What is spelled is out and then raw[from:at]: a value that comes without spaces, its members
// in order, is its own spelling and is never copied.
type speller struct {
	raw     []byte
	at      int
	from    int
	high    bool // there is a character beyond ASCII
	out     []byte
	members []member // of the objects that are open
	sorted  []byte   // members of one object, while they are put in order
}

// A member is where its name stands in the input, without the quotes, and where name and value
// stand in the output.
type member struct{ name, nameEnd, begin, end int }

// Bounds of what is plain.
const (
	plainDepth  = 64
	plainDigits = 15
)

var spellers = sync.Pool{New: func() any { return new(speller) }}

// plain calls use with the canonical spelling of raw, and reports whether raw is plain. use
// must not keep the spelling.
func plain(raw []byte, use func(form []byte)) bool {
	s := spellers.Get().(*speller)
	defer spellers.Put(s)
	s.raw, s.at, s.from, s.high, s.out, s.members = raw, 0, 0, false, s.out[:0], s.members[:0]
	defer func() { s.raw = nil }()
	if !s.value(0) {
		return false
	}
	end := s.at
	if s.space(); s.at != len(raw) || s.high && !utf8.Valid(raw) {
		return false
	}
	if len(s.out) == 0 {
		use(raw[s.from:end])
		return true
	}
	s.copy()
	use(s.out)
	return true
}

// copy makes out the whole of what is spelled.
func (s *speller) copy() {
	s.out = append(s.out, s.raw[s.from:s.at]...)
	s.from = s.at
}

// spelled returns how much is spelled.
func (s *speller) spelled() int { return len(s.out) + s.at - s.from }

// space passes over white space and returns the byte after it, 0 at the end.
func (s *speller) space() byte {
	if s.at < len(s.raw) && s.raw[s.at] > ' ' {
		return s.raw[s.at]
	}
	return s.spaces()
}

func (s *speller) spaces() byte {
	if s.at == len(s.raw) {
		return 0
	}
	if s.at > s.from {
		s.copy()
	}
	for ; s.at < len(s.raw); s.at++ {
		switch c := s.raw[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			s.from = s.at
			return c
		}
	}
	s.from = s.at
	return 0
}

func (s *speller) value(depth int) bool {
	if depth > plainDepth {
		return false
	}
	switch c := s.space(); c {
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case '"':
		return s.text()
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *speller) literal(word string) bool {
	if !bytes.HasPrefix(s.raw[s.at:], []byte(word)) {
		return false
	}
	s.at += len(word)
	return true
}

// text passes over a string with its quotes.
func (s *speller) text() bool {
	for at := s.at + 1; ; at++ {
		if at = protocol.Plain(s.raw, at); at >= len(s.raw) {
			return false
		}
		switch c := s.raw[at]; {
		case c == '"':
			s.at = at + 1
			return true
		case c == '\\' || c < ' ':
			return false
		default:
			s.high = true
		}
	}
}

// name passes over a name of ASCII with its quotes. Names are sorted by their UTF-16 code
// units, which are those characters.
func (s *speller) name() bool {
	at := protocol.Plain(s.raw, s.at+1)
	if at >= len(s.raw) || s.raw[at] != '"' {
		return false
	}
	s.at = at + 1
	return true
}

// number passes over a whole number. One with a fraction or an exponent, and -0, have another
// spelling than the one they came in.
func (s *speller) number() bool {
	begin := s.at
	if s.at < len(s.raw) && s.raw[s.at] == '-' {
		s.at++
	}
	digits := s.at
	for s.at < len(s.raw) && s.raw[s.at]-'0' <= 9 {
		s.at++
	}
	n := s.at - digits
	if n == 0 || n > plainDigits || s.raw[digits] == '0' && s.at-begin > 1 {
		return false
	}
	if s.at == len(s.raw) {
		return true
	}
	switch s.raw[s.at] {
	case ',', ']', '}', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

func (s *speller) array(depth int) bool {
	s.at++
	for first := true; s.space() != ']'; first = false {
		if !first {
			if s.space() != ',' {
				return false
			}
			s.at++
		}
		if !s.value(depth + 1) {
			return false
		}
	}
	s.at++
	return true
}

// object spells an object, its members by name.
func (s *speller) object(depth int) bool {
	s.at++
	mine := len(s.members)
	inOrder := true
	for first := true; s.space() != '}'; first = false {
		if !first {
			if s.space() != ',' {
				return false
			}
			s.at++
		}
		if s.space() != '"' {
			return false
		}
		m := member{name: s.at + 1, begin: s.spelled()}
		if !s.name() {
			return false
		}
		m.nameEnd = s.at - 1
		if s.space() != ':' {
			return false
		}
		s.at++
		if !s.value(depth + 1) {
			return false
		}
		m.end = s.spelled()
		if n := len(s.members); n > mine {
			inOrder = inOrder && s.compare(s.members[n-1], m) < 0
		}
		s.members = append(s.members, m)
	}
	if !inOrder && !s.sort(s.members[mine:]) {
		return false
	}
	s.at++
	s.members = s.members[:mine]
	return true
}

// compare orders two members by their names: a name comes before the longer ones that begin
// with it.
func (s *speller) compare(a, b member) int {
	return bytes.Compare(s.raw[a.name:a.nameEnd], s.raw[b.name:b.nameEnd])
}

// sort puts the members of the object that ends the output in order. It reports false where
// two have one name.
func (s *speller) sort(members []member) bool {
	s.copy()
	begin := members[0].begin
	slices.SortFunc(members, s.compare)
	s.sorted = s.sorted[:0]
	for i, m := range members {
		if i > 0 {
			if s.compare(members[i-1], m) == 0 {
				return false
			}
			s.sorted = append(s.sorted, ',')
		}
		s.sorted = append(s.sorted, s.out[m.begin:m.end]...)
	}
	copy(s.out[begin:], s.sorted)
	return true
}
