package terminal

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// Safe returns text as it may be shown on a terminal: control characters and
// those that turn or hide text are written out, so that nothing a plugin says
// can steer the terminal or pass for something else. Lines are kept.
func Safe(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, text[i]) // a byte that is no UTF-8
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// hidden reports whether a character has an effect instead of a shape.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029')
}

// Escaped returns JSON as it may be shown on a terminal: what [Safe] would
// write out stands as \u there, so that it is the same JSON.
func Escaped(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// OneLine returns text on one line of at most so many cells.
func OneLine(text string, most int) string {
	text = strings.Join(strings.Fields(Safe(text)), " ")
	return clipped(text, most)
}

// Cells counts the places that text takes on a terminal: two for a wide
// character, none for an accent that is put on the one before.
func Cells(text string) int {
	n := 0
	for _, r := range text {
		switch {
		case r < 0x300:
			n++
		case unicode.In(r, unicode.Mn, unicode.Me):
		default:
			n++
			if kind := width.LookupRune(r).Kind(); kind == width.EastAsianWide || kind == width.EastAsianFullwidth {
				n++
			}
		}
	}
	return n
}

// Padded returns text filled up to so many cells.
func Padded(text string, to int) string {
	return text + strings.Repeat(" ", max(0, to-Cells(text)))
}

// SafeLines are the lines of a text, each as [Safe] returns it.
func SafeLines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if !yield(Safe(line)) {
				return
			}
		}
	}
}

// Dash returns text, or a dash for an empty cell.
func Dash(text string) string { return cmp.Or(text, "-") }
