package editor

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// A statement is a header or a key with its value in a text of TOML, by its place in bytes.
type statement struct {
	header     bool     // [a.b]; with array [[a.b]]
	array      bool     //
	path       []string // of the key, or of the table that a header begins
	table      []string // that a key stands in; nil for a header
	start, end int      // of the statement, without the comment behind it
	value      int      // where the value begins; 0 for a header
	comments   []string // inside a value of several lines
}

// in returns the whole path of a key.
func (s *statement) in() []string { return append(slices.Clone(s.table), s.path...) }

var errNoTOML = errors.New("it cannot be read as TOML")

// statementsOf takes a text of TOML apart. The text has been parsed before, so that what this
// reads has a meaning.
func statementsOf(text string) (all []statement, err error) {
	p := &tomlText{text: text}
	var table []string
	for {
		p.skip(" \t\r\n\ufeff")
		switch {
		case p.at == len(text):
			return all, nil
		case p.peek("#"):
			p.line()
			continue
		}
		s := statement{start: p.at, header: p.peek("[")}
		if s.header {
			s.array = p.take("[[")
			if !s.array {
				p.take("[")
			}
			s.path, err = p.key()
			if err != nil || !p.take("]") || s.array && !p.take("]") {
				return nil, errNoTOML
			}
			table, s.end = s.path, p.at
			all = append(all, s)
			continue
		}
		s.table = table
		if s.path, err = p.key(); err != nil || !p.take("=") {
			return nil, errNoTOML
		}
		p.skip(" \t")
		s.value = p.at
		if err := p.skipValue(&s.comments); err != nil {
			return nil, err
		}
		s.end = p.at
		all = append(all, s)
	}
}

// A tomlText is a text of TOML that is read from left to right.
type tomlText struct {
	text string
	at   int
}

func (p *tomlText) peek(word string) bool { return strings.HasPrefix(p.text[p.at:], word) }

func (p *tomlText) take(word string) bool {
	if !p.peek(word) {
		return false
	}
	p.at += len(word)
	return true
}

func (p *tomlText) skip(what string) {
	p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], what))
}

// line returns the rest of the line, without its break.
func (p *tomlText) line() string {
	rest, _, _ := strings.Cut(p.text[p.at:], "\n")
	p.at += len(rest)
	return strings.TrimRight(rest, "\r")
}

// key reads the names of a key, with the spaces around it.
func (p *tomlText) key() (path []string, err error) {
	for {
		p.skip(" \t")
		from := p.at
		switch {
		case p.peek(`"`), p.peek("'"):
			if err := p.skipText(); err != nil {
				return nil, err
			}
			name := p.text[from+1 : p.at-1]
			if p.text[from] == '"' {
				if name, err = strconv.Unquote(p.text[from:p.at]); err != nil {
					return nil, errNoTOML
				}
			}
			path = append(path, name)
		default:
			p.skip(bareKey)
			if p.at == from {
				return nil, errNoTOML
			}
			path = append(path, p.text[from:p.at])
		}
		p.skip(" \t")
		if !p.take(".") {
			return path, nil
		}
	}
}

const bareKey = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// skipText skips a text in quotes, of one line or of several.
func (p *tomlText) skipText() error {
	quote := p.text[p.at : p.at+1]
	end, escapes := quote, quote == `"`
	if long := strings.Repeat(quote, 3); p.peek(long) {
		end = long
	}
	for p.at += len(end); p.at < len(p.text); p.at++ {
		switch {
		case escapes && p.peek(`\`):
			p.at++
		case p.take(end):
			for len(end) == 3 && p.take(quote) { // up to two quotes belong to the text
			}
			return nil
		}
	}
	return errNoTOML
}

// skipValue skips a value, and adds the comments in it.
func (p *tomlText) skipValue(comments *[]string) error {
	for depth := 0; p.at < len(p.text); {
		c := p.text[p.at]
		switch {
		case c == '"' || c == '\'':
			if err := p.skipText(); err != nil {
				return err
			}
		case c == '[' || c == '{':
			depth++
			p.at++
		case (c == ']' || c == '}') && depth > 0:
			depth--
			p.at++
		case c == '#' && depth > 0:
			*comments = append(*comments, p.line())
			continue
		case depth > 0:
			p.at++
			continue
		default: // a number, a truth or a time, which ends with its line or a comment
			rest, _, _ := strings.Cut(p.text[p.at:], "\n")
			rest, _, _ = strings.Cut(rest, "#")
			if rest = strings.TrimRight(rest, " \t\r"); rest == "" {
				return errNoTOML
			}
			p.at += len(rest)
		}
		if depth == 0 {
			return nil
		}
	}
	return errNoTOML
}

// An edit puts another text in the place of a part.
type edit struct {
	start, end int
	with       string
}

// edited makes edits that do not overlap.
func edited(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	var b strings.Builder
	at := 0
	for _, e := range edits {
		b.WriteString(text[at:e.start] + e.with)
		at = e.end
	}
	return b.String() + text[at:]
}

// cutStatement takes a statement away, with its line where nothing else is in it. Comments stay: the
// one behind it, and those inside its value, each on a line of its own.
func cutStatement(text string, s *statement) edit {
	line := strings.LastIndexByte(text[:s.start], '\n') + 1
	rest, _, broken := strings.Cut(text[s.end:], "\n")
	var kept strings.Builder
	for _, comment := range s.comments {
		kept.WriteString(comment + "\n")
	}
	if behind := strings.TrimLeft(rest, " \t\r"); behind != "" {
		return edit{line, s.end + len(rest) - len(behind), kept.String()}
	}
	end := s.end + len(rest)
	if broken {
		end++
	}
	// The empty line that stands before a header of ours.
	if before := text[:line]; s.header && (strings.HasSuffix(before, "\n\n") || before == "\n") {
		line--
	}
	return edit{line, end, kept.String()}
}
