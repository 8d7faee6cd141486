package dialect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A page is one manifest being read: it collects what is wrong with it.
type page struct {
	file     string
	files    files // what the package holds
	home     home
	problems Problems
	notes    Problems
}

// A home is where the plugin of a page stands: the package, and the place in it
// as [Tree] returns it.
type home struct{ tree, place string }

// top returns the whole of a manifest as a value.
func (p *page) top(tree any) value { return value{page: p, is: tree, there: true} }

// A value is one place of a manifest: where it is and what stands there. Its
// methods return what was asked for, or a zero value after a problem was
// noted, so that reading goes on and finds the others. Nothing is asked of
// what is not there: an absent value reads as its zero value without a
// problem, unless it is required.
type value struct {
	page  *page
	at    string
	is    any
	there bool
	row   string // which row of the requirements speaks of it, if it matters
}

// of returns v as one that a row of the requirements speaks of.
func (v value) of(row string) value {
	v.row = row
	return v
}

func (v value) problem(format string, args ...any) {
	v.page.problems = append(v.page.problems, Problem{File: v.page.file, Pointer: v.at, Reason: fmt.Sprintf(format, args...), Row: v.row})
}

func (v value) note(format string, args ...any) {
	v.page.notes = append(v.page.notes, Problem{File: v.page.file, Pointer: v.at, Reason: fmt.Sprintf(format, args...), Row: v.row})
}

// required notes a problem if nothing stands here.
func (v value) required() value {
	if !v.there {
		v.problem("it is missing")
	}
	return v
}

// wrong notes that something else stands here than belongs here.
func (v value) wrong(belongs string) {
	switch v.is.(type) {
	case nil:
		v.problem("nothing stands here: give %s, or leave the key out", belongs)
	case number, bool:
		if belongs == "text" {
			v.problem("text belongs here, not %s: put it in quotes", v.kind())
			return
		}
		v.problem("%s belongs here, not %s", belongs, v.kind())
	default:
		v.problem("%s belongs here, not %s", belongs, v.kind())
	}
}

// kind names what stands here, for people.
func (v value) kind() string {
	switch is := v.is.(type) {
	case nil:
		return "nothing"
	case bool:
		return strconv.FormatBool(is)
	case number:
		return "the number " + string(is)
	case string:
		return "text"
	case []any:
		return "a list"
	default:
		return "a mapping"
	}
}

// mapping reports whether a mapping stands here, with keys among those given
// only; any key will do where none is given.
func (v value) mapping(keys ...string) bool {
	if !v.there {
		return false
	}
	m, ok := v.is.(*mapping)
	if !ok {
		v.wrong("a mapping")
		return false
	}
	for _, key := range m.keys {
		if len(keys) == 0 || slices.Contains(keys, key) {
			continue
		}
		if meant, near := Nearest(key, keys); near {
			v.get(key).problem("unknown key; did you mean %s?", meant)
		} else {
			v.get(key).problem("unknown key")
		}
	}
	return true
}

// get returns what the mapping here has under key.
func (v value) get(key string) value {
	found := value{page: v.page, at: child(v.at, key), row: v.row}
	if m, ok := v.is.(*mapping); ok {
		found.is, found.there = m.values[key]
	}
	return found
}

// has reports whether a mapping stands here that has the key.
func (v value) has(key string) bool { return v.get(key).there }

// keys returns the keys of the mapping here.
func (v value) keys() []string {
	if m, ok := v.is.(*mapping); ok {
		return m.keys
	}
	return nil
}

// list returns the items of the list here.
func (v value) list() []value {
	if !v.there {
		return nil
	}
	items, ok := v.is.([]any)
	if !ok {
		v.wrong("a list")
		return nil
	}
	values := make([]value, len(items))
	for i, item := range items {
		values[i] = value{page: v.page, at: child(v.at, strconv.Itoa(i)), is: item, there: true, row: v.row}
	}
	return values
}

// text returns the text here. What does not print could hide orders to a
// model, or turn a line around, and is refused.
func (v value) text() string {
	if !v.there {
		return ""
	}
	text, ok := v.is.(string)
	if !ok {
		v.wrong("text")
		return ""
	}
	if r, hidden := unprintable(text); hidden {
		v.problem("it holds the character %U, which does not print", r)
		return ""
	}
	return text
}

// word returns the text here, which must be there, on one line and without
// white space around it.
func (v value) word() string {
	text := v.text()
	if _, isText := v.is.(string); !isText {
		return ""
	}
	if reason := badWord(text); reason != "" {
		v.problem("%s", reason)
		return ""
	}
	return text
}

// words returns the list of different words here.
func (v value) words() []string {
	var words []string
	for _, item := range v.list() {
		word := item.word()
		switch {
		case word == "": // the problem is noted
		case slices.Contains(words, word):
			item.problem("%q stands here twice", word)
		default:
			words = append(words, word)
		}
	}
	return words
}

// truth returns the true or false here.
func (v value) truth() bool {
	if !v.there {
		return false
	}
	truth, ok := v.is.(bool)
	if !ok {
		v.wrong("true or false")
	}
	return truth
}

// oneOf returns the text here if it is one of choices, and def if nothing is.
func (v value) oneOf(def string, choices ...string) string {
	if !v.there {
		return def
	}
	text, ok := v.is.(string)
	if !ok {
		v.wrong("text")
		return def
	}
	if !slices.Contains(choices, text) {
		v.problem("%q is none of %s", text, strings.Join(choices, ", "))
		return def
	}
	return text
}

// badWord returns what keeps text from being a word, "" if nothing does.
func badWord(text string) string {
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
func unprintable(text string) (rune, bool) {
	for _, r := range text {
		switch {
		case unicode.IsGraphic(r), r == '\n', r == '\r', r == '\t', r == '\u200c', r == '\u200d':
		default:
			return r, true
		}
	}
	return 0, false
}
