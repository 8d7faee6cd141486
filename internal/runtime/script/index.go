package script

import (
	"strings"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mortise-dev/mortise/internal/base/event"
)

// An outline is an object of a payload. What is in it is looked for once, by the
// first engine that wants to know; it is safe for concurrent use.
type outline struct {
	text string
	in   atomic.Pointer[contents]
}

// contents are the members of an object.
type contents struct {
	members []member
	room    [12]member // for those of most objects
}

// outlineOf returns the one outline of a payload.
func outlineOf(p *event.Payload) *outline { return p.Aside(newOutline).(*outline) }

func newOutline(p *event.Payload) any {
	o := &outline{text: p.Text()}
	in := new(contents)
	in.members = in.room[:0]
	for name, raw := range p.Members() {
		in.members = append(in.members, member{name: name, raw: raw})
	}
	o.keep(in)
	return o
}

// look returns what is in the object.
func (o *outline) look() *contents {
	if in := o.in.Load(); in != nil {
		return in
	}
	in := new(contents)
	in.members = appendMembers(in.room[:0], o.text)
	return o.keep(in)
}

func (o *outline) keep(in *contents) *contents {
	n := 0
	for i := range in.members {
		if in.members[i].raw[0] == '{' {
			n++
		}
	}
	objects := make([]outline, n)
	for i := range in.members {
		if one := &in.members[i]; one.raw[0] == '{' {
			one.object, objects = &objects[0], objects[1:]
			one.object.text = one.raw
		}
	}
	if !o.in.CompareAndSwap(nil, in) {
		return o.in.Load()
	}
	return in
}

// A member is one name and value of a JSON object.
type member struct {
	name   string   // decoded
	raw    string   // as it is written
	object *outline // if it is one, of a payload
}

// appendMembers appends the members of an object that is known to be valid, in
// the order of its text. Whatever is inside of a value is not looked at.
func appendMembers(members []member, object string) []member {
	i := blank(object, 1)
	for object[i] != '}' {
		if object[i] == ',' {
			i = blank(object, i+1)
		}
		begin := i
		i = quoted(object, i)
		name := object[begin+1 : i-1]
		if strings.IndexByte(name, '\\') >= 0 {
			name = unquote(object[begin:i])
		}
		begin = blank(object, blank(object, i)+1) // behind the colon
		i = skip(object, begin)
		members = append(members, member{name: name, raw: object[begin:i]})
		i = blank(object, i)
	}
	return members
}

// elements yields the values of an array that is known to be valid.
func elements(array string, yield func(raw string) bool) bool {
	i := blank(array, 1)
	for array[i] != ']' {
		if array[i] == ',' {
			i = blank(array, i+1)
		}
		begin := i
		i = skip(array, begin)
		if !yield(array[begin:i]) {
			return false
		}
		i = blank(array, i)
	}
	return true
}

// blank returns the place of the first byte from i that is no white space.
func blank(text string, i int) int {
	for text[i] <= ' ' {
		i++
	}
	return i
}

// quoted returns the place behind the string that begins at i.
func quoted(text string, i int) int {
	for i++; ; i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
}

// skip returns the place behind the value that begins at i.
func skip(text string, i int) int {
	switch text[i] {
	case '"':
		return quoted(text, i)
	case '{', '[':
		for depth := 0; ; i++ {
			switch text[i] {
			case '"':
				i = quoted(text, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	for i < len(text) && text[i] > ' ' && text[i] != ',' && text[i] != '}' && text[i] != ']' {
		i++
	}
	return i
}

// unquote returns the string that a valid JSON string stands for.
func unquote(raw string) string {
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "" // it is known to be valid
	}
	return string(text)
}
