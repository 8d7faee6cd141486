package contract

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A Page is one manifest being read: it collects what is wrong with it.
type Page struct {
	File     string
	Files    Files // what the package holds
	Home     Home
	Problems Problems
	Notes    Problems
}

// A Home is where the plugin of a page stands: the package, and the place in it
// as [Tree] returns it.
type Home struct{ Tree, Place string }

// top returns the whole of a manifest as a value.
func (p *Page) top(tree any) Value { return Value{Page: p, Is: tree, There: true} }

// A Value is one place of a manifest: where it is and what stands there. Its
// methods return what was asked for, or a zero value after a problem was
// noted, so that reading goes on and finds the others. Nothing is asked of
// what is not there: an absent value reads as its zero value without a
// problem, unless it is required. The methods that begin with Loose leave a note
// instead of a problem.
type Value struct {
	Page  *Page
	At    string // a JSON pointer
	Is    any    // nil, bool, [Number], string, []any or *[Mapping]
	There bool
	Row   string // which row of the requirements speaks of it, if it matters
}

// Of returns v as one that a row of the requirements speaks of.
func (v Value) Of(row string) Value {
	v.Row = row
	return v
}

// Problem notes what is wrong here.
func (v Value) Problem(format string, args ...any) {
	v.Page.Problems = append(v.Page.Problems, Problem{File: v.Page.File, Pointer: v.At, Reason: fmt.Sprintf(format, args...), Row: v.Row})
}

// Note notes how this was understood where that is not plain.
func (v Value) Note(format string, args ...any) {
	v.Page.Notes = append(v.Page.Notes, Problem{File: v.Page.File, Pointer: v.At, Reason: fmt.Sprintf(format, args...), Row: v.Row})
}

// Required notes a problem if nothing stands here.
func (v Value) Required() Value {
	if !v.There {
		v.Problem("it is missing")
	}
	return v
}

// Wrong notes that something else stands here than belongs here.
func (v Value) Wrong(belongs string) {
	switch v.Is.(type) {
	case nil:
		v.Problem("nothing stands here: give %s, or leave the key out", belongs)
	case Number, bool:
		if belongs == "text" {
			v.Problem("text belongs here, not %s: put it in quotes", v.Kind())
			return
		}
		v.Problem("%s belongs here, not %s", belongs, v.Kind())
	default:
		v.Problem("%s belongs here, not %s", belongs, v.Kind())
	}
}

// Kind names what stands here, for people.
func (v Value) Kind() string {
	switch is := v.Is.(type) {
	case nil:
		return "nothing"
	case bool:
		return strconv.FormatBool(is)
	case Number:
		return "the number " + string(is)
	case string:
		return "text"
	case []any:
		return "a list"
	default:
		return "a mapping"
	}
}

// Mapping reports whether a mapping stands here, with keys among those given
// only; any key will do where none is given.
func (v Value) Mapping(keys ...string) bool {
	if !v.There {
		return false
	}
	m, ok := v.Is.(*Mapping)
	if !ok {
		v.Wrong("a mapping")
		return false
	}
	for _, key := range m.Keys {
		if len(keys) == 0 || slices.Contains(keys, key) {
			continue
		}
		if meant, near := Nearest(key, keys); near {
			v.Get(key).Problem("unknown key; did you mean %s?", meant)
		} else {
			v.Get(key).Problem("unknown key")
		}
	}
	return true
}

// Get returns what the mapping here has under key.
func (v Value) Get(key string) Value {
	found := Value{Page: v.Page, At: Child(v.At, key), Row: v.Row}
	if m, ok := v.Is.(*Mapping); ok {
		found.Is, found.There = m.Values[key]
	}
	return found
}

// Has reports whether a mapping stands here that has the key.
func (v Value) Has(key string) bool { return v.Get(key).There }

// Keys returns the keys of the mapping here.
func (v Value) Keys() []string {
	if m, ok := v.Is.(*Mapping); ok {
		return m.Keys
	}
	return nil
}

// List returns the items of the list here.
func (v Value) List() []Value {
	if !v.There {
		return nil
	}
	items, ok := v.Is.([]any)
	if !ok {
		v.Wrong("a list")
		return nil
	}
	values := make([]Value, len(items))
	for i, item := range items {
		values[i] = Value{Page: v.Page, At: Child(v.At, strconv.Itoa(i)), Is: item, There: true, Row: v.Row}
	}
	return values
}

// Text returns the text here. What does not print could hide orders to a
// model, or turn a line around, and is refused.
func (v Value) Text() string {
	if !v.There {
		return ""
	}
	text, ok := v.Is.(string)
	if !ok {
		v.Wrong("text")
		return ""
	}
	if r, hidden := Unprintable(text); hidden {
		v.Problem("it holds the character %U, which does not print", r)
		return ""
	}
	return text
}

// Word returns the text here, which must be there, on one line and without
// white space around it.
func (v Value) Word() string {
	text := v.Text()
	if _, isText := v.Is.(string); !isText {
		return ""
	}
	if reason := BadWord(text); reason != "" {
		v.Problem("%s", reason)
		return ""
	}
	return text
}

// Words returns the list of different words here.
func (v Value) Words() []string {
	var words []string
	for _, item := range v.List() {
		word := item.Word()
		switch {
		case word == "": // the problem is noted
		case slices.Contains(words, word):
			item.Problem("%q stands here twice", word)
		default:
			words = append(words, word)
		}
	}
	return words
}

// Truth returns the true or false here.
func (v Value) Truth() bool {
	if !v.There {
		return false
	}
	truth, ok := v.Is.(bool)
	if !ok {
		v.Wrong("true or false")
	}
	return truth
}

// OneOf returns the text here if it is one of choices, and def if nothing is.
func (v Value) OneOf(def string, choices ...string) string {
	if !v.There {
		return def
	}
	text, ok := v.Is.(string)
	if !ok {
		v.Wrong("text")
		return def
	}
	if !slices.Contains(choices, text) {
		v.Problem("%q is none of %s", text, strings.Join(choices, ", "))
		return def
	}
	return text
}

// badWord returns what keeps text from being a word, "" if nothing does.
func BadWord(text string) string {
	switch {
	case strings.TrimSpace(text) == "":
		return "it is empty"
	case strings.TrimSpace(text) != text:
		return fmt.Sprintf("%q has white space around it", text)
	case strings.ContainsAny(text, "\n\r\t"):
		return fmt.Sprintf("%q is more than one word on one line", text)
	}
	return ""
}

// unprintable returns the first character of text that does not show on a
// screen. The joiners of emoji and of several scripts are let through.
func Unprintable(text string) (rune, bool) {
	for _, r := range text {
		switch {
		case unicode.IsGraphic(r), r == '\n', r == '\r', r == '\t', r == '\u200c', r == '\u200d':
		default:
			return r, true
		}
	}
	return 0, false
}
