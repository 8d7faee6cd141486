package python

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The bounds of a literal.
const (
	maxDepth  = 64
	maxValues = 100_000
	maxDigits = 400
)

// A literal is read into nil, bool, [Number], string, [Bytes], []any for a
// list, a tuple and a set, and [*Dict].

// A Number is a number as JSON writes it.
type Number string

// Bytes is the value of a bytes literal.
type Bytes string

// A Dict is a dictionary, in the order it was written.
type Dict struct {
	Keys   []any
	Values []any
}

// Assigned returns the literal that a file gives a name at its top level. In it may
// stand constants: other names that the file gives a literal, once, at its top level,
// and that stand nowhere else but in such literals. The other statements of the file
// are not looked at, but that they must leave the names alone: one that could change a
// value is refused. Nothing is run.
func Assigned(code []byte, name string) (any, error) {
	if !utf8.Valid(code) {
		return nil, &Error{1, 1, "it is not UTF-8 text"}
	}
	s, err := tokens(code)
	if err != nil {
		return nil, err
	}
	r := &reader{source: s, left: maxValues, constants: map[string]*constant{}}
	begins, found := true, false
	var value any
	for r.here().kind != end {
		t := r.here()
		switch {
		case t.kind == newline:
			begins = true
			r.at++
			continue
		case t.kind == op && t.text == ";":
			begins = true
			r.at++
			continue
		case t.kind == word && t.text != name && begins && r.level() && r.constant():
			continue
		case t.kind != word || t.text != name:
		case begins && r.level() && r.assigns():
			if found {
				return nil, s.wrong(t.at, "%s is given a value twice", name)
			}
			found = true
			if value, err = r.value(0); err != nil {
				return nil, err
			}
			if next := r.here(); next.kind != newline && next.text != ";" {
				return nil, r.unexpected()
			}
			continue
		case r.tokens[r.at+1].kind != newline:
			return nil, s.wrong(t.at, "%s may change here, and the file is not run: give it its whole value in one literal", name)
		}
		begins = false
		r.at++
	}
	if !found {
		return nil, &Error{1, 1, "it gives " + name + " no value at its top level"}
	}
	return value, r.unchanged()
}

// A reader goes through the tokens of a source.
type reader struct {
	*source
	at   int
	left int // how many values may follow

	constants map[string]*constant // nil where there are none
}

func (r *reader) here() token { return r.tokens[r.at] }

func (r *reader) lines() {
	for r.here().kind == newline {
		r.at++
	}
}

// level reports whether the token here begins its line.
func (r *reader) level() bool {
	_, column := r.place(r.here().at)
	return column == 1 || r.at > 0 && r.tokens[r.at-1].text == ";"
}

// assigns passes over `NAME =` and `NAME: type =`, if that stands here.
func (r *reader) assigns() bool {
	at := r.at + 1
	if r.tokens[at].text == ":" {
		depth := 0
		for at++; ; at++ {
			switch t := r.tokens[at]; {
			case t.kind == newline || t.kind == end:
				return false
			case t.kind != op:
				continue
			case strings.Contains("([{", t.text):
				depth++
			case strings.Contains(")]}", t.text):
				depth--
			}
			if depth == 0 && r.tokens[at].text == "=" {
				break
			}
		}
	}
	if t := r.tokens[at]; t.kind != op || t.text != "=" || r.tokens[at+1].text == "=" {
		return false
	}
	r.at = at + 1
	return true
}

// unexpected says that what stands here is no part of a literal.
func (r *reader) unexpected() *Error {
	t := r.here()
	switch t.kind {
	case end, newline:
		return r.wrong(t.at, "the literal ends too early")
	case word:
		return r.wrong(t.at, "%s is a name: only literals are read, and nothing is run", clip(t.text))
	case text:
		return r.wrong(t.at, "a text does not belong here")
	}
	if t.text == "(" && r.at > 0 {
		return r.wrong(t.at, "a call is no literal: nothing is run")
	}
	return r.wrong(t.at, "%s does not belong here: only literals are read", clip(t.text))
}

func clip(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// value reads one literal, or the sum of several.
func (r *reader) value(depth int) (any, *Error) {
	sum, err := r.term(depth)
	for err == nil && r.here().kind == op && r.here().text == "+" {
		plus := r.here()
		r.at++
		var next any
		if next, err = r.term(depth); err != nil {
			break
		}
		switch a := sum.(type) {
		case string:
			if b, is := next.(string); is && len(a)+len(b) <= maxSum {
				sum = a + b
				continue
			}
		case []any:
			if b, is := next.([]any); is && r.left >= len(a)+len(b) {
				r.left -= len(a) + len(b)
				sum = slices.Concat(a, b)
				continue
			}
		}
		return nil, r.wrong(plus.at, "+ does not belong here: texts and lists are added, and nothing is run")
	}
	return sum, err
}

// maxSum is how long the sum of texts may be, in bytes.
const maxSum = 1 << 20

// term reads one literal.
func (r *reader) term(depth int) (any, *Error) {
	t := r.here()
	if r.left--; r.left < 0 {
		return nil, r.wrong(t.at, "it holds more than %d values", maxValues)
	}
	if depth > maxDepth {
		return nil, r.wrong(t.at, "it is nested deeper than %d", maxDepth)
	}
	switch {
	case t.kind == text:
		return r.strings()
	case t.kind == number:
		r.at++
		return r.number(t, false)
	case t.kind == word:
		constant, isConstant := map[string]any{"None": nil, "True": true, "False": false}[t.text]
		if !isConstant {
			return r.named(depth)
		}
		r.at++
		return constant, nil
	case t.kind == op && (t.text == "-" || t.text == "+"):
		r.at++
		digits := r.here()
		if digits.kind != number {
			return nil, r.unexpected()
		}
		r.at++
		return r.number(digits, t.text == "-")
	case t.kind == op && t.text == "(":
		r.at++
		items, commas, err := r.items(depth, ")")
		if err == nil && len(items) == 1 && !commas {
			return items[0], nil // brackets around a value
		}
		return items, err
	case t.kind == op && t.text == "[":
		r.at++
		items, _, err := r.items(depth, "]")
		return items, err
	case t.kind == op && t.text == "{":
		r.at++
		return r.braces(depth)
	}
	return nil, r.unexpected()
}

// items reads values up to a closing bracket, and reports whether there was a comma.
func (r *reader) items(depth int, closing string) (items []any, commas bool, err *Error) {
	items = []any{}
	for {
		if r.closes(closing) {
			return items, commas, nil
		}
		spread := r.spreads("*")
		at := r.here().at
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, false, err
		}
		switch more, is := item.([]any); {
		case !spread:
			items = append(items, item)
		case !is || r.left < len(more):
			return nil, false, r.wrong(at, "only a list is spread into a list")
		default:
			r.left -= len(more)
			items = append(items, more...)
			commas = true
		}
		switch t := r.here(); {
		case t.kind == op && t.text == ",":
			commas = true
			r.at++
		case t.kind != op || t.text != closing:
			return nil, false, r.unexpected()
		}
	}
}

// closes passes over a closing bracket, if it stands here.
func (r *reader) closes(bracket string) bool {
	t := r.here()
	if t.kind != op || t.text != bracket {
		return false
	}
	r.at++
	return true
}

// braces reads a dictionary or a set, whose opening brace was passed.
func (r *reader) braces(depth int) (any, *Error) {
	dict, set := &Dict{}, []any{}
	for {
		if r.closes("}") {
			if len(set) > 0 {
				return set, nil
			}
			return dict, nil
		}
		spread := r.spreads("**")
		at := r.here().at
		item, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if spread {
			more, is := item.(*Dict)
			if !is || len(set) > 0 || r.left < len(more.Keys) {
				return nil, r.wrong(at, "only a dictionary is spread into a dictionary")
			}
			r.left -= len(more.Keys)
			for i, key := range more.Keys {
				dict.set(key, more.Values[i])
			}
		} else if t := r.here(); t.kind == op && t.text == ":" && len(set) == 0 {
			r.at++
			value, err := r.value(depth + 1)
			if err != nil {
				return nil, err
			}
			dict.Keys, dict.Values = append(dict.Keys, item), append(dict.Values, value)
		} else if len(dict.Keys) > 0 {
			return nil, r.unexpected()
		} else {
			set = append(set, item)
		}
		switch t := r.here(); {
		case t.kind == op && t.text == ",":
			r.at++
		case t.kind != op || t.text != "}":
			return nil, r.unexpected()
		}
	}
}

// number reads a number as Python means it.
func (r *reader) number(t token, negative bool) (any, *Error) {
	digits := strings.ToLower(t.text)
	bad := strings.Contains(digits, "__") || strings.HasSuffix(digits, "_") || len(digits) > maxDigits
	plain := strings.ReplaceAll(digits, "_", "")
	based := strings.HasPrefix(plain, "0x") || strings.HasPrefix(plain, "0o") || strings.HasPrefix(plain, "0b")
	sign := ""
	if negative {
		sign = "-"
	}
	switch {
	case bad:
		return nil, r.wrong(t.at, "%s is no number that is read here", clip(t.text))
	case !based && strings.HasSuffix(plain, "j"):
		return nil, r.wrong(t.at, "%s is imaginary: JSON has no such number", clip(t.text))
	case !based && strings.ContainsAny(plain, ".e"):
		f, err := strconv.ParseFloat(plain, 64)
		if err != nil || math.IsInf(f, 0) || strings.ContainsAny(plain, "xpn") {
			return nil, r.wrong(t.at, "%s is no number that is read here", clip(t.text))
		}
		return Number(sign + strconv.FormatFloat(f, 'g', -1, 64)), nil
	case !based && strings.TrimLeft(plain, "0") == "":
		return Number("0"), nil
	case !based && plain[0] == '0':
		return nil, r.wrong(t.at, "%s is no number of Python: it begins with 0", clip(t.text))
	}
	n, ok := new(big.Int).SetString(plain, 0)
	if !ok {
		return nil, r.wrong(t.at, "%s is no number", clip(t.text))
	}
	if negative {
		n.Neg(n)
	}
	return Number(n.String()), nil
}

// strings reads texts that stand one after another, which are one.
func (r *reader) strings() (any, *Error) {
	var b strings.Builder
	first := r.here()
	for t := first; t.kind == text; t = r.here() {
		switch {
		case t.pieces:
			return nil, r.wrong(t.at, "an f-string is computed: only literals are read")
		case t.bytes != first.bytes:
			return nil, r.wrong(t.at, "text and bytes stand one after another")
		}
		if err := r.unescape(&b, t); err != nil {
			return nil, err
		}
		r.at++
	}
	if first.bytes {
		return Bytes(b.String()), nil
	}
	return b.String(), nil
}
