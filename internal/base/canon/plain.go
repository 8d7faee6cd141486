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
type speller struct {
	raw     []byte
	at      int
	out     []byte
	members []member // of the objects that are open
	sorted  []byte   // members of one object, while they are put in order
}

// A member is where a name and its value stand in the output.
type member struct{ name, nameEnd, end int }

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
	s.raw, s.at, s.out, s.members = raw, 0, s.out[:0], s.members[:0]
	defer func() { s.raw = nil }()
	if !utf8.Valid(raw) {
		return false
	}
	if !s.value(0) {
		return false
	}
	if s.space(); s.at != len(raw) {
		return false
	}
	use(s.out)
	return true
}

func ascii(raw []byte) bool {
	for _, c := range raw {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// space passes over white space and returns the byte after it, 0 at the end.
func (s *speller) space() byte {
	for ; s.at < len(s.raw); s.at++ {
		switch c := s.raw[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
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
	s.out = append(s.out, word...)
	return true
}

// text copies a string with its quotes.
func (s *speller) text() bool {
	begin := s.at
	for at := begin + 1; ; at++ {
		if at = protocol.Plain(s.raw, at); at >= len(s.raw) {
			return false
		}
		switch c := s.raw[at]; {
		case c == '"':
			s.at = at + 1
			s.out = append(s.out, s.raw[begin:s.at]...)
			return true
		case c == '\\' || c < ' ':
			return false
		}
	}
}

// number copies a whole number. One with a fraction or an exponent, and -0, have another
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
	if s.at < len(s.raw) {
		switch s.raw[s.at] {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
		default:
			return false
		}
	}
	s.out = append(s.out, s.raw[begin:s.at]...)
	return true
}

func (s *speller) array(depth int) bool {
	s.at++
	s.out = append(s.out, '[')
	for first := true; s.space() != ']'; first = false {
		if !first {
			if s.space() != ',' {
				return false
			}
			s.at++
			s.out = append(s.out, ',')
		}
		if !s.value(depth + 1) {
			return false
		}
	}
	s.at++
	s.out = append(s.out, ']')
	return true
}

// object copies an object, its members by name.
func (s *speller) object(depth int) bool {
	s.at++
	s.out = append(s.out, '{')
	mine := len(s.members)
	inOrder := true
	for first := true; s.space() != '}'; first = false {
		if !first {
			if s.space() != ',' {
				return false
			}
			s.at++
			s.out = append(s.out, ',')
		}
		if s.space() != '"' {
			return false
		}
		m := member{name: len(s.out)}
		if !s.text() {
			return false
		}
		if m.nameEnd = len(s.out); !ascii(s.out[m.name:]) {
			return false // names are sorted by their UTF-16 code units
		}
		if s.space() != ':' {
			return false
		}
		s.at++
		s.out = append(s.out, ':')
		if !s.value(depth + 1) {
			return false
		}
		m.end = len(s.out)
		if n := len(s.members); n > mine {
			inOrder = inOrder && s.compare(s.members[n-1], m) < 0
		}
		s.members = append(s.members, m)
	}
	s.at++
	if !inOrder && !s.sort(s.members[mine:]) {
		return false
	}
	s.members = s.members[:mine]
	s.out = append(s.out, '}')
	return true
}

// compare orders two members by their names, without the quotes: a name comes before the
// longer ones that begin with it.
func (s *speller) compare(a, b member) int {
	return bytes.Compare(s.out[a.name+1:a.nameEnd-1], s.out[b.name+1:b.nameEnd-1])
}

// sort puts the members of the object that ends the output in order. It reports false where
// two have one name.
func (s *speller) sort(members []member) bool {
	begin := members[0].name
	slices.SortFunc(members, s.compare)
	s.sorted = s.sorted[:0]
	for i, m := range members {
		if i > 0 {
			if s.compare(members[i-1], m) == 0 {
				return false
			}
			s.sorted = append(s.sorted, ',')
		}
		s.sorted = append(s.sorted, s.out[m.name:m.end]...)
	}
	copy(s.out[begin:], s.sorted)
	return true
}
