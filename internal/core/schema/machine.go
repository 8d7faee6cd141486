package schema

import (
	"math"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/protocol"
)

// A verdict is what a program says of a value.
type verdict uint8

const (
	unsure  verdict = iota // an evaluation is to say
	fits                   // it is JSON, and fits
	misfits                // it does not fit, if it is JSON
)

// Bounds of a machine; what is beyond them is for an evaluation.
const (
	maxDepth   = 200     // of values, and of schemas that refer to each other
	maxUnnamed = 64      // members of one object that its schema does not name
	maxAgain   = 8       // how often each byte may be read on the average, for anyOf and its like
	maxMatched = 1 << 20 // instructions of regular expressions
)

// A machine reads one value as a program says.
type machine struct {
	in    []byte
	at    int
	fuel  int       // how many bytes and values may still be read
	match int       // how many instructions of regular expressions may still be matched
	names []unnamed // of the objects that it is in
	text  []byte    // a string whose escapes are resolved
}

// An unnamed is the name of a member that its object's schema does not name. Names of equal keys
// may be equal.
type unnamed struct {
	key  uint64
	name []byte
}

var machines = sync.Pool{New: func() any { return new(machine) }}

// fits reports whether a value is JSON and fits for sure.
func (p *program) fits(value []byte) bool {
	m := machines.Get().(*machine)
	defer machines.Put(m)
	m.begin(value)
	defer func() { m.in = nil; clear(m.names[:cap(m.names)]); m.names = m.names[:0] }()
	if m.value(p, 0) != fits {
		return false
	}
	m.space()
	return m.at == len(m.in)
}

// begin gives a machine a value.
func (m *machine) begin(value []byte) {
	m.in, m.at, m.fuel, m.match = value, 0, maxAgain*(len(value)+256), maxMatched
}

// anything is a program that everything fits.
var anything = &program{types: kindAll, most: math.MaxInt, longest: math.MaxInt, long: math.MaxInt}

// value reads one value. Where it says that the value fits, the machine is behind it.
func (m *machine) value(p *program, depth int) verdict {
	if m.fuel--; m.fuel < 0 || depth > maxDepth || p.unsure {
		return unsure
	}
	m.space()
	if p.always != nil {
		if v := m.own(anything, depth); v != fits || *p.always {
			return v
		}
		return misfits
	}
	if p.ref != nil && p.alone {
		return m.value(p.ref, depth+1)
	}
	start := m.at
	if v := m.own(p, depth); v != fits {
		return v
	}
	if p.ref == nil && p.all == nil && p.any == nil && p.one == nil && p.not == nil && p.cond == nil {
		return fits
	}
	end := m.at
	v := m.joined(p, start, depth+1)
	m.at = end
	return v
}

// joined reads the value again for each schema that p joins.
func (m *machine) joined(p *program, start, depth int) verdict {
	again := func(p *program) verdict {
		m.at = start
		return m.value(p, depth)
	}
	if p.ref != nil {
		if v := again(p.ref); v != fits {
			return v
		}
	}
	for _, part := range p.all {
		if v := again(part); v != fits {
			return v
		}
	}
	if p.any != nil {
		best := misfits
		for _, part := range p.any {
			v := again(part)
			if v == fits {
				best = fits
				break
			}
			best = min(best, v)
		}
		if best != fits {
			return best
		}
	}
	if p.one != nil {
		found := 0
		for _, part := range p.one {
			switch again(part) {
			case unsure:
				return unsure
			case fits:
				found++
			}
		}
		if found != 1 {
			return misfits
		}
	}
	if p.not != nil {
		switch again(p.not) {
		case unsure:
			return unsure
		case fits:
			return misfits
		}
	}
	if p.cond == nil {
		return fits
	}
	next := p.no
	switch again(p.cond) {
	case unsure:
		return unsure
	case fits:
		next = p.yes
	}
	if next == nil {
		return fits
	}
	return again(next)
}

// own reads a value for the keywords that look at it alone.
func (m *machine) own(p *program, depth int) verdict {
	if m.at >= len(m.in) {
		return unsure
	}
	switch c := m.in[m.at]; {
	case c == '{':
		return m.object(p, depth)
	case c == '[':
		return m.array(p, depth)
	case c == '"':
		return m.string(p)
	case c == '-' || c-'0' <= 9:
		return m.number(p)
	case c == 'n':
		return m.word(p, "null", kindNull, p.simple == nil || p.simple.null, nil)
	case c == 't':
		return m.word(p, "true", kindBool, p.simple == nil || p.simple.yes, true)
	case c == 'f':
		return m.word(p, "false", kindBool, p.simple == nil || p.simple.no, false)
	}
	return unsure
}

// word reads null or a boolean.
func (m *machine) word(p *program, word string, kind kinds, allowed bool, value any) verdict {
	if len(m.in)-m.at < len(word) || string(m.in[m.at:m.at+len(word)]) != word {
		return unsure
	}
	m.at += len(word)
	if p.types&kind == 0 || !allowed || p.format != nil && p.format(value) != nil {
		return misfits
	}
	return fits
}

func (m *machine) object(p *program, depth int) verdict {
	if p.types&kindObject == 0 || p.simple != nil {
		return misfits // an enum with objects is unsure
	}
	if p.format != nil {
		return unsure // formats are of strings; the evaluation knows
	}
	var seen [maxMembers / 64]uint64
	first := len(m.names)
	defer func() { m.names = m.names[:first] }()
	count, required := 0, 0
	m.at++
	if m.space(); m.is('}') {
		return judged(p.fewest <= 0 && p.required == 0)
	}
	for {
		name, escaped, ok := m.quoted()
		if !ok || escaped {
			return unsure
		}
		at, named := 0, false
		if len(p.member) > 0 {
			at, named = p.member[string(name)]
		}
		if named {
			if seen[at/64]&(1<<(at%64)) != 0 {
				return unsure // a name that is there twice
			}
			seen[at/64] |= 1 << (at % 64)
			if p.members[at].required {
				required++
			}
		} else {
			if len(m.names)-first >= maxUnnamed {
				return unsure
			}
			key := protocol.NameKey(name)
			for i := range m.names[first:] {
				if other := &m.names[first+i]; other.key == key && string(other.name) == string(name) {
					return unsure
				}
			}
			m.names = append(m.names, unnamed{key, name})
		}
		if m.space(); !m.is(':') {
			return unsure
		}
		if v := m.memberValue(p, name, at, named, depth); v != fits {
			return v
		}
		count++
		if m.space(); m.is(',') {
			m.space()
			continue
		}
		if !m.is('}') {
			return unsure
		}
		return judged(count >= p.fewest && count <= p.most && required == p.required)
	}
}

// memberValue reads the value of a member, once for each schema that is for it.
func (m *machine) memberValue(p *program, name []byte, at int, named bool, depth int) verdict {
	m.space()
	start, described := m.at, false
	if named && p.members[at].schema != nil {
		if v := m.value(p.members[at].schema, depth+1); v != fits {
			return v
		}
		described = true
	}
	for _, pattern := range p.patterns {
		found, told := pattern.name.Within(&m.match, name)
		if !told {
			return unsure
		}
		if !found {
			continue
		}
		m.at, described = start, true
		if v := m.value(pattern.schema, depth+1); v != fits {
			return v
		}
	}
	switch {
	case described:
		return fits
	case p.additional != nil:
		return m.value(p.additional, depth+1)
	}
	return m.value(anything, depth+1)
}

func (m *machine) array(p *program, depth int) verdict {
	if p.types&kindArray == 0 || p.simple != nil {
		return misfits
	}
	if p.format != nil {
		return unsure
	}
	m.at++
	if m.space(); m.is(']') {
		return judged(p.shortest <= 0)
	}
	for count := 0; ; {
		item := p.items
		if count < len(p.prefix) {
			item = p.prefix[count]
		}
		if item == nil {
			item = anything
		}
		if v := m.value(item, depth+1); v != fits {
			return v
		}
		count++
		if m.space(); m.is(',') {
			continue
		}
		if !m.is(']') {
			return unsure
		}
		return judged(count >= p.shortest && count <= p.longest)
	}
}

func (m *machine) string(p *program) verdict {
	raw, escaped, ok := m.quoted()
	if !ok {
		return unsure
	}
	if p.types&kindString == 0 {
		return misfits
	}
	if p.simple == nil && p.short == 0 && p.long == math.MaxInt && p.pattern == nil && p.format == nil {
		if escaped && !m.resolve(raw) {
			return unsure
		}
		return fits
	}
	text := raw
	if escaped {
		if !m.resolve(raw) {
			return unsure
		}
		text = m.text
	}
	if p.simple != nil && !p.simple.texts[string(text)] {
		return misfits
	}
	if p.short > 0 || len(text) > p.long { // there are no more characters than bytes
		if n := utf8.RuneCount(text); n < p.short || n > p.long {
			return misfits
		}
	}
	if p.pattern != nil {
		found, told := p.pattern.Within(&m.match, text)
		if !told {
			return unsure
		}
		if !found {
			return misfits
		}
	}
	if p.format != nil && p.format(string(text)) != nil {
		return misfits
	}
	return fits
}

// resolve resolves the escapes of a string. It reports false where they are not right.
func (m *machine) resolve(raw []byte) bool {
	var err error
	m.text, err = jsontext.AppendUnquote(m.text[:0], m.in[m.at-len(raw)-2:m.at])
	return err == nil
}

// quoted reads a string, and returns what is between its quotes. What is escaped there is
// not looked at.
func (m *machine) quoted() (raw []byte, escaped, ok bool) {
	if !m.is('"') {
		return nil, false, false
	}
	start, high := m.at, false
	for ; ; m.at++ {
		if m.at = protocol.Plain(m.in, m.at); m.at >= len(m.in) {
			return nil, false, false
		}
		switch c := m.in[m.at]; {
		case c == '"':
			raw = m.in[start:m.at]
			m.fuel -= len(raw)
			m.at++
			return raw, escaped, !high || utf8.Valid(raw)
		case c == '\\':
			escaped = true
			m.at++ // whatever follows is no end
		case c < ' ':
			return nil, false, false
		default:
			high = true
		}
	}
}

// is takes a byte if it comes next.
func (m *machine) is(c byte) bool {
	if m.at < len(m.in) && m.in[m.at] == c {
		m.at++
		return true
	}
	return false
}

// space passes over white space.
func (m *machine) space() {
	for m.at < len(m.in) {
		switch m.in[m.at] {
		case ' ', '\t', '\n', '\r':
			m.at++
			m.fuel--
		default:
			return
		}
	}
}

func judged(yes bool) verdict {
	if yes {
		return fits
	}
	return misfits
}

// judgedOr is for what can be told only where it fits.
func judgedOr(yes bool) verdict {
	if yes {
		return fits
	}
	return unsure
}
