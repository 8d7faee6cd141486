package document

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Tidy gives a text the form in which it is kept: no control characters, one
// kind of line ends, composed characters, at most two empty lines in a row.
func Tidy(text string) string {
	text = norm.NFC.String(strings.ToValidUTF8(text, "\ufffd"))
	var b strings.Builder
	b.Grow(len(text))
	newlines := 3 // at the beginning none is kept
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		switch {
		case r == '\r' || r == '\f' || r == '\v' || r == '\u2028' || r == '\u2029':
			r = '\n'
		case r == '\u00ad' || r == '\u200b' || r == '\ufeff' || r == '\ufffe':
			continue // invisible, and between the letters of a word
		case r == '\u00a0':
			r = ' '
		}
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			continue
		}
		if r != '\n' {
			newlines = 0
		} else if newlines++; newlines > 3 {
			continue
		}
		b.WriteRune(r)
	}
	return strings.TrimRightFunc(b.String(), unicode.IsSpace)
}

// OneLine returns text without what may end a line, and without other control
// characters: what a header says begins no other header, and no body.
func OneLine(text string) string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' })
	return strings.TrimSpace(strings.Join(parts, " "))
}
