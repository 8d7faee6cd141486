// Package python reads Python source without running it: the literal that a name is given, and what a file imports.
//
// It knows tokens, literals and import statements, and nothing else of the
// language. What it cannot read is an [*Error] with its place; nothing of it is
// guessed. That a file imports nothing forbidden is advice and no wall: code can
// make up its imports while it runs.
package python

import (
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/mortise-dev/mortise/internal/base/pattern"
)

// MaxBytes is how long a source file may be.
const MaxBytes = 4 << 20

// An Error says where source cannot be read, and why.
type Error struct {
	Line, Column int // from 1
	Reason       string
}

// Error returns "line 3, column 5: reason".
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// A kind of token.
type kind int

const (
	end     kind = iota
	newline      // the end of a logical line
	word         // a name or a keyword
	number
	text // a string literal
	op   // anything else, one character each
)

// A token is one of a source file's.
type token struct {
	kind kind
	text string // as written; of a word, in the form that Python compares (NFKC); of a text, its content as written
	at   int    // byte offset

	bytes  bool // of a text: b""
	raw    bool // of a text: r""
	pieces bool // of a text: f"" or t"", of which text is what stands before the first field
}

// A source is a file that is read.
type source struct {
	code   string
	tokens []token
	pos    int
	depth  int   // of brackets
	fields int   // of strings within fields of strings
	starts []int // of lines; nil until a place is asked for
}

// The bounds of a source file: its tokens, and how deep strings may stand in the
// fields of strings.
const (
	maxTokens = 1_000_000
	maxFields = 16
)

// tokens returns the tokens of a file; the last is end.
func tokens(code []byte) (*source, *Error) {
	s := &source{code: strings.TrimPrefix(string(code), "\ufeff")}
	if len(code) > MaxBytes {
		return s, s.wrong(0, "the file is longer than %d bytes", MaxBytes)
	}
	if at := strings.IndexByte(s.code, 0); at >= 0 {
		return s, s.wrong(at, "it holds a zero byte")
	}
	if err := s.encoding(); err != nil {
		return s, err
	}
	for s.pos < len(s.code) {
		if err := s.next(); err != nil {
			return s, err
		}
	}
	s.add(newline, s.pos, s.pos)
	s.add(end, s.pos, s.pos)
	return s, nil
}

// wrong returns an error at a byte offset.
func (s *source) wrong(at int, format string, args ...any) *Error {
	line, column := s.place(at)
	return &Error{line, column, fmt.Sprintf(format, args...)}
}

// place returns the line and the column of a byte offset.
func (s *source) place(at int) (line, column int) {
	if s.starts == nil {
		s.starts = []int{0}
		for i := range len(s.code) {
			if c := s.code[i]; c == '\n' || c == '\r' && !strings.HasPrefix(s.code[i+1:], "\n") {
				s.starts = append(s.starts, i+1)
			}
		}
	}
	at = min(at, len(s.code))
	line = sort.SearchInts(s.starts, at+1)
	begin := s.starts[line-1]
	return line, 1 + utf8.RuneCountInString(s.code[begin:min(at, begin+maxColumn)])
}

// maxColumn is how many bytes into a line columns are counted.
const maxColumn = 10_000

// said is how a file says in a comment which encoding it has.
var said = pattern.New(`^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)`)

// plain are the encodings in which code reads like UTF-8.
var plain = pattern.New(`^(utf-?8|u8|(us-)?ascii|latin-?1|iso-?8859-1|l1|cp1252)(-.*)?$`)

// encoding refuses a file that says in its first two lines that it is not what
// it looks like ("# -*- coding: utf-7 -*-").
func (s *source) encoding() *Error {
	begin := 0
	for range 2 {
		line := s.code[begin:][:lineLength(s.code[begin:])]
		if m := said.FindStringSubmatch(line); m != nil && !plain.MatchString(strings.ReplaceAll(strings.ToLower(m[1]), "_", "-")) {
			return s.wrong(begin, "it is said to be encoded in %s: only UTF-8 is read", clip(m[1]))
		}
		begin += len(line)
		if strings.HasPrefix(s.code[begin:], "\r\n") {
			begin++
		}
		begin = min(begin+1, len(s.code))
	}
	return nil
}

func (s *source) add(k kind, from, to int) {
	s.tokens = append(s.tokens, token{kind: k, text: s.code[from:to], at: from})
}

// next reads one token, or passes over what is none.
func (s *source) next() *Error {
	from := s.pos
	if len(s.tokens) > maxTokens {
		return s.wrong(from, "the file has more than %d words and signs", maxTokens)
	}
	switch c := s.code[from]; {
	case c == ' ' || c == '\t' || c == '\f':
		s.pos++
	case c == '#':
		s.pos += lineLength(s.code[from:])
	case c == '\n' || c == '\r':
		s.pos++
		if c == '\r' && strings.HasPrefix(s.code[s.pos:], "\n") {
			s.pos++
		}
		if s.depth == 0 {
			s.add(newline, from, s.pos)
		}
	case c == '\\':
		s.pos++
		switch rest := s.code[s.pos:]; {
		case strings.HasPrefix(rest, "\r\n"):
			s.pos += 2
		case strings.HasPrefix(rest, "\n"), strings.HasPrefix(rest, "\r"):
			s.pos++
		default:
			return s.wrong(from, "nothing may follow a backslash but the end of the line")
		}
	case c == '"' || c == '\'':
		return s.string(from, "")
	case c >= '0' && c <= '9', c == '.' && s.digitAt(from+1):
		s.number(from)
	case c == '_' || c >= utf8.RuneSelf || letter(c):
		s.pos += wordLength(s.code[from:])
		if s.pos == from { // a character that stands in no name
			_, size := utf8.DecodeRuneInString(s.code[from:])
			s.pos += size
			s.add(op, from, s.pos)
			return nil
		}
		name := s.code[from:s.pos]
		if s.pos < len(s.code) && (s.code[s.pos] == '"' || s.code[s.pos] == '\'') && prefix(name) {
			return s.string(from, strings.ToLower(name))
		}
		s.tokens = append(s.tokens, token{kind: word, text: norm.NFKC.String(name), at: from})
	default:
		switch c {
		case '(', '[', '{':
			s.depth++
		case ')', ']', '}':
			s.depth = max(0, s.depth-1)
		}
		s.pos++
		s.add(op, from, s.pos)
	}
	return nil
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func (s *source) digitAt(at int) bool {
	return at < len(s.code) && s.code[at] >= '0' && s.code[at] <= '9'
}

// lineLength is how long a line is, without what ends it.
func lineLength(rest string) int {
	if i := strings.IndexAny(rest, "\r\n"); i >= 0 {
		return i
	}
	return len(rest)
}

// wordLength is how long the name is that rest begins with. Bytes that are not
// UTF-8 count: they are of another encoding.
func wordLength(rest string) int {
	for i, r := range rest {
		if r != '_' && r != utf8.RuneError && !unicode.In(r, unicode.L, unicode.N, unicode.M, unicode.Pc, unicode.Other_ID_Start, unicode.Other_ID_Continue) {
			return i
		}
	}
	return len(rest)
}

// number passes over a number as written, whether it is a good one or not.
func (s *source) number(from int) {
	at := from
	for at < len(s.code) {
		c := s.code[at]
		exponent := at > from && (s.code[at-1] == 'e' || s.code[at-1] == 'E') && !strings.HasPrefix(strings.ToLower(s.code[from:]), "0x")
		if !(c == '_' || c == '.' || letter(c) || c >= '0' && c <= '9' || exponent && (c == '+' || c == '-') && s.digitAt(at+1)) {
			break
		}
		at++
	}
	s.pos = at
	s.add(number, from, at)
}

// prefix reports whether a name in front of a quote belongs to the string.
func prefix(name string) bool {
	switch strings.ToLower(name) {
	case "r", "u", "b", "f", "t", "br", "rb", "fr", "rf", "tr", "rt":
		return true
	}
	return false
}

// string reads a string literal, whose prefix begins at from.
func (s *source) string(from int, prefix string) *Error {
	at := from + len(prefix)
	quote := s.code[at : at+1]
	if strings.HasPrefix(s.code[at:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	s.pos = at + len(quote)
	begin, first := s.pos, -1
	self := len(s.tokens)
	s.tokens = append(s.tokens, token{
		kind: text, at: from,
		bytes: strings.Contains(prefix, "b"), raw: strings.Contains(prefix, "r"), pieces: strings.ContainsAny(prefix, "ft"),
	})
	err := s.content(from, quote, s.tokens[self].pieces, s.tokens[self].raw, func(field int) {
		if first < 0 {
			first = field
		}
	})
	if err != nil {
		return err
	}
	if first < 0 {
		first = s.pos
	}
	s.tokens[self].text = s.code[begin:first]
	s.pos += len(quote)
	return nil
}

// content passes over what a string holds, up to its closing quote, and reads
// the fields of one that has any: they are code.
func (s *source) content(from int, quote string, fields, raw bool, field func(at int)) *Error {
	for s.pos < len(s.code) {
		rest := s.code[s.pos:]
		switch c := rest[0]; {
		case strings.HasPrefix(rest, quote):
			return nil
		case c == '\\':
			s.pos += min(2, len(rest))
			if strings.HasPrefix(rest[1:], "\r\n") {
				s.pos++
			}
			if fields && !raw && strings.HasPrefix(rest[1:], "N{") { // a character by its name
				s.pos++
			}
			if fields && raw && len(rest) > 1 && (rest[1] == '{' || rest[1] == '}') {
				s.pos-- // a backslash escapes no field of a raw string
			}
		case (c == '\n' || c == '\r') && len(quote) == 1:
			return s.wrong(from, "the text does not end on its line")
		case fields && strings.HasPrefix(rest, "{{"):
			s.pos += 2
		case fields && c == '{':
			field(s.pos)
			if err := s.field(from, quote, raw); err != nil {
				return err
			}
		default:
			s.pos++
		}
	}
	return s.wrong(from, "the text does not end")
}

// field reads a replacement field of a string: an expression, and how it is shown.
func (s *source) field(from int, quote string, raw bool) *Error {
	if s.fields++; s.fields > maxFields {
		return s.wrong(from, "strings stand too deep within strings")
	}
	outer := s.depth
	s.depth = 1 // line breaks do not count
	s.pos++
	s.add(op, s.pos-1, s.pos)
	defer func() { s.depth, s.fields = outer, s.fields-1 }()
	for s.pos < len(s.code) {
		rest := s.code[s.pos:]
		switch {
		case s.depth == 1 && rest[0] == '}':
			s.add(op, s.pos, s.pos+1)
			s.pos++
			return nil
		case s.depth == 1 && rest[0] == ':':
			s.add(op, s.pos, s.pos+1)
			s.pos++
			return s.shown(from, quote, raw)
		default:
			if err := s.next(); err != nil {
				return err
			}
		}
	}
	return s.wrong(from, "the text does not end")
}

// shown passes over how a field is shown, which may hold fields too.
func (s *source) shown(from int, quote string, raw bool) *Error {
	for s.pos < len(s.code) {
		rest := s.code[s.pos:]
		switch {
		case strings.HasPrefix(rest, quote):
			return s.wrong(from, "a field of the text does not end")
		case rest[0] == '}':
			s.add(op, s.pos, s.pos+1)
			s.pos++
			return nil
		case rest[0] == '\\':
			s.pos += min(2, len(rest))
		case rest[0] == '{':
			if err := s.field(from, quote, raw); err != nil {
				return err
			}
		default:
			s.pos++
		}
	}
	return s.wrong(from, "the text does not end")
}
