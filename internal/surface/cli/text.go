package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// safe returns text as it may be shown on a terminal: control characters and
// those that turn or hide text are written out, so that nothing a plugin says
// can steer the terminal or pass for something else. Lines are kept.
func safe(text string) string {
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

// escaped returns JSON as it may be shown on a terminal: what [safe] would
// write out stands as \u there, so that it is the same JSON.
func escaped(text string) string {
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

// oneLine returns text on one line of at most so many cells.
func oneLine(text string, most int) string {
	text = strings.Join(strings.Fields(safe(text)), " ")
	if cells(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += cells(string(r)); n > most-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// cells counts the places that text takes on a terminal: two for a wide
// character, none for an accent that is put on the one before.
func cells(text string) int {
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

// padded returns text filled up to so many cells.
func padded(text string, to int) string {
	return text + strings.Repeat(" ", max(0, to-cells(text)))
}

// A table is written in columns.
type table struct {
	w    io.Writer
	rows [][]string
	fit  int // the last column gives way to keep within so many cells; 0 for any
}

func newTable(w io.Writer, titles ...string) *table {
	t := &table{w: w}
	t.row(titles...)
	return t
}

func (t *table) row(columns ...string) {
	for i := range columns {
		columns[i] = strings.ReplaceAll(safe(columns[i]), "\t", " ")
	}
	t.rows = append(t.rows, columns)
}

func (t *table) flush() error {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], cells(cell))
		}
	}
	var b strings.Builder
	for _, row := range t.rows {
		line := ""
		for i, cell := range row {
			if t.fit > 0 && i == len(widths)-1 {
				cell = oneLine(cell, max(10, t.fit-cells(line)))
			}
			line += padded(cell, widths[i]) + "  "
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// clock shows a time in the reader's own zone.
func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// ms shows a number of milliseconds.
func ms(v any) string {
	f, ok := v.(float64)
	switch {
	case !ok:
		return "-"
	case f < 10:
		return fmt.Sprintf("%.2f ms", f)
	case f < 1000:
		return fmt.Sprintf("%.0f ms", f)
	default:
		return fmt.Sprintf("%.1f s", f/1000)
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
