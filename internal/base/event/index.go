package event

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A member is where one top-level member stands in the text of a payload.
type member struct {
	name              string // decoded
	begin, value, end uint32 // of its name's quotation mark, of its value, and behind that
}

// index returns the members in the order of the text. The first caller to
// finish stores them (compare-and-set); concurrent callers may do the same
// work.
func (p *Payload) index() []member {
	if kept := p.indexed.Load(); kept != nil {
		return *kept
	}
	members := scan(p.text)
	p.indexed.Store(&members)
	return members
}

// find returns the place of a member, -1 if there is none. Objects are small.
func find(members []member, name string) int {
	for i := range members {
		if members[i].name == name {
			return i
		}
	}
	return -1
}

// scan indexes an object that is known to be valid.
func scan(text string) []member {
	members := make([]member, 0, 24)
	i := blank(text, 1) // behind the brace
	for text[i] != '}' {
		if text[i] == ',' {
			i = blank(text, i+1)
		}
		begin := i
		i = quoted(text, i)
		name := unquote(text[begin:i])
		i = blank(text, blank(text, i)+1) // behind the colon
		value := i
		i = skip(text, i)
		members = append(members, member{name, uint32(begin), uint32(value), uint32(i)})
		i = blank(text, i)
	}
	return members
}

// blank returns the place of the first byte from i that is no white space.
func blank(text string, i int) int {
	for text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r' {
		i++
	}
	return i
}

// quoted returns the place behind the string that begins at i.
func quoted(text string, i int) int {
	for i++; ; i++ {
		n := strings.IndexByte(text[i:], '"')
		i += n
		back := i
		for text[back-1] == '\\' {
			back--
		}
		if (i-back)%2 == 0 { // not escaped
			return i + 1
		}
	}
}

// skip returns the place behind the value that begins at i.
func skip(text string, i int) int {
	depth := 0
	for {
		switch text[i] {
		case '"':
			i = quoted(text, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // of the object around a number or word
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
}

// unquote returns the string that a valid JSON string stands for.
func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "" // it is known to be valid
	}
	return string(text)
}

// put splices a value that is known to be valid into the text, and carries the
// index over.
func (p *Payload) put(name, raw string) *Payload {
	members := p.index()
	i := find(members, name)
	if i < 0 {
		return p.add(name, raw, members)
	}
	m := members[i]
	shift := uint32(len(raw)) - (m.end - m.value) // wraps around where it shrinks, and back again below
	moved := append([]member(nil), members...)
	moved[i].end += shift
	for j := i + 1; j < len(moved); j++ {
		moved[j].begin += shift
		moved[j].value += shift
		moved[j].end += shift
	}
	return spliced(p.text[:m.value]+raw+p.text[m.end:], moved)
}

// add puts a new member at the end of the text.
func (p *Payload) add(name, raw string, members []member) *Payload {
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		panic(err) // names are valid UTF-8
	}
	at, comma := len(p.text)-1, "" // of the closing brace
	if len(members) > 0 {
		at, comma = int(members[len(members)-1].end), ","
	}
	begin := at + len(comma)
	value := begin + len(quoted) + 1
	more := append(members[:len(members):len(members)], member{name, uint32(begin), uint32(value), uint32(value + len(raw))})
	return spliced(p.text[:at]+comma+string(quoted)+":"+raw+p.text[at:], more)
}

// spliced returns a payload whose index is known, in one allocation.
func spliced(text string, members []member) *Payload {
	whole := &struct {
		payload Payload
		members []member
	}{members: members}
	whole.payload.text = text
	whole.payload.indexed.Store(&whole.members)
	return &whole.payload
}
