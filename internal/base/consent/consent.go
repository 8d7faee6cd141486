// Package consent writes a JSON value for the person who consents to it: one line for each
// leaf, which says where the leaf is and what it is.
//
//	payments[0].recipient = "ann@example.com"
//	payments[0].amount = 9007199254740993
//	["odd = name"] = {}
//
// The lines are unambiguous: the value can be read back from them, and no character
// in a name or a text can begin a line, end a text, or pass for another character ([Quote]).
// The console writes the same lines; testdata/lines.json holds both to it.
package consent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Root is the path of a value that is a leaf itself.
const Root = "$"

// A Leaf is a value that has no members or items: a scalar, an empty object or an empty list.
type Leaf struct {
	Path string // payments[0].recipient; [Root] for the whole value
	Text string // the value as JSON, with [Quote] for a text
}

// String returns the line of the leaf.
func (l Leaf) String() string { return l.Path + " = " + l.Text }

// Leaves returns the leaves of a JSON value in their order. The error is that of a text that is
// not JSON, of which nothing may be shown as if it were complete. Members with one name are all
// returned.
func Leaves(raw []byte) ([]Leaf, error) {
	w := walk{in: jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))}
	if err := w.value(""); err != nil {
		return nil, fmt.Errorf("read the value: %w", err)
	}
	if _, err := w.in.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the value: there is more after it")
	}
	return w.found, nil
}

// A walk collects the leaves of one value.
type walk struct {
	in    *jsontext.Decoder
	found []Leaf
}

func (w *walk) value(path string) error {
	switch kind := w.in.PeekKind(); kind {
	case '{', '[':
		if _, err := w.in.ReadToken(); err != nil {
			return err
		}
		end, empty := jsontext.Kind('}'), "{}"
		if kind == '[' {
			end, empty = ']', "[]"
		}
		n := 0
		for ; w.in.PeekKind() != end; n++ {
			below := Item(path, n)
			if kind == '{' {
				name, err := w.in.ReadToken()
				if err != nil {
					return err
				}
				below = Member(path, name.String())
			}
			if err := w.value(below); err != nil {
				return err
			}
		}
		if n == 0 {
			w.leaf(path, empty)
		}
		_, err := w.in.ReadToken()
		return err
	default:
		raw, err := w.in.ReadValue()
		if err != nil {
			return err
		}
		if kind != '"' {
			w.leaf(path, string(raw))
			return nil
		}
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return err
		}
		w.leaf(path, Quote(string(text)))
		return nil
	}
}

func (w *walk) leaf(path, text string) {
	if path == "" {
		path = Root
	}
	w.found = append(w.found, Leaf{path, text})
}

// Member returns the path of a member of the object at path.
func Member(path, name string) string {
	switch {
	case !isPlain(name):
		return path + "[" + quote(name, true) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// Item returns the path of an item of the list at path.
func Item(path string, n int) string { return path + "[" + strconv.Itoa(n) + "]" }

// maxPlain is how long a name may be that a path has without quotes.
const maxPlain = 64

// isPlain reports whether a path has a name as it is.
func isPlain(name string) bool {
	if name == "" || len(name) > maxPlain {
		return false
	}
	for i, c := range []byte(name) {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// Write writes the lines of a value, each indented by two spaces and at most width cells wide:
// a text that is longer, or that has line breaks, stands below its path in pieces of its own
// lines. A terminal breaks no line of it, so that every line begins with what this function
// wrote there. Only a path can be wider.
func Write(w io.Writer, raw []byte, width int) error {
	leaves, err := Leaves(raw)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, l := range leaves {
		pieces := split(l.Text, max(width-6, 20))
		if len(pieces) == 1 && cells(l.String()) <= width-2 {
			fmt.Fprintf(&b, "  %s\n", l)
			continue
		}
		fmt.Fprintf(&b, "  %s =\n", l.Path)
		for _, piece := range pieces {
			fmt.Fprintf(&b, "    %s\n", piece)
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// split returns a quoted text in pieces that are quoted themselves: each ends after a line
// break, or before it would be wider than most. Everything else stays whole.
func split(text string, most int) []string {
	if !strings.HasPrefix(text, `"`) {
		return []string{text}
	}
	var pieces []string
	piece, wide := strings.Builder{}, 0
	flush := func() {
		pieces = append(pieces, `"`+piece.String()+`"`)
		piece.Reset()
		wide = 0
	}
	for rest := text[1 : len(text)-1]; rest != ""; {
		one := character(rest)
		if wide > 0 && wide+cells(one)+2 > most {
			flush()
		}
		piece.WriteString(one)
		wide += cells(one)
		if rest = rest[len(one):]; one == `\n` && rest != "" {
			flush()
		}
	}
	if piece.Len() > 0 || len(pieces) == 0 {
		flush()
	}
	return pieces
}

// character returns the first character of what is within quotes, with all of its escape.
func character(text string) string {
	switch {
	case strings.HasPrefix(text, `\u`):
		return text[:6]
	case text[0] == '\\':
		return text[:2]
	}
	for i := range text {
		if i > 0 {
			return text[:i]
		}
	}
	return text
}

// cells counts the places that a text takes on a terminal, and rather more than fewer.
func cells(text string) int {
	n := 0
	for _, r := range text {
		if n++; r >= 0x1100 {
			n++
		}
	}
	return n
}
