package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// safe returns text as it may be shown on a terminal: control characters and
// those that turn or hide text are written out, so that nothing a plugin says
// can steer the terminal or pass for something else. Lines are kept.
func safe(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
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
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029')
}

// oneLine returns text on one line of at most width characters.
func oneLine(text string, width int) string {
	text = strings.Join(strings.Fields(safe(text)), " ")
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(width-1, 0)]) + "…"
}

// A table is written in columns.
type table struct{ w *tabwriter.Writer }

func newTable(w io.Writer, titles ...string) table {
	t := table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)}
	t.row(titles...)
	return t
}

func (t table) row(cells ...string) {
	for i := range cells {
		cells[i] = strings.ReplaceAll(safe(cells[i]), "\t", " ")
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t "))
}

func (t table) flush() error { return t.w.Flush() }

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
