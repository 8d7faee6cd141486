package difference

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxFiles is how many changed files are written one by one.
const MaxFiles = 200

// Write writes a difference for a person to read. Nothing in it can steer a
// terminal, hide, or pass for something else; see [Written].
func (d Difference) Write(w io.Writer) error {
	var b strings.Builder
	for _, g := range []struct {
		title   string
		changes []Change
	}{
		{"What it may do", d.May}, {"What it says", d.Says}, {"What it accepts and promises", d.Schemas}, {"Its files", d.Files},
	} {
		if len(g.changes) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s:\n", g.title)
		for i, c := range g.changes {
			if i == MaxFiles && &g.changes[0] == &d.Files[0] {
				fmt.Fprintf(&b, "  and %d more\n", len(g.changes)-i)
				break
			}
			c.write(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// signs stand before the lines of a change.
var signs = map[What]string{Added: "+", Removed: "-", Changed: "~"}

func (c Change) write(b *strings.Builder) {
	at := Written(c.At)
	switch {
	case c.Before != nil && c.After != nil:
		fmt.Fprintf(b, "  %s %s\n      before: %s\n      after:  %s\n", signs[c.What], at, show(c.Before), show(c.After))
	case c.Before != nil:
		fmt.Fprintf(b, "  %s %s: %s\n", signs[c.What], at, show(c.Before))
	case c.After != nil:
		fmt.Fprintf(b, "  %s %s: %s\n", signs[c.What], at, show(c.After))
	default:
		fmt.Fprintf(b, "  %s %s\n", signs[c.What], at)
	}
}

// show returns a value as a person reads it. A text that has nothing to hide
// stands without quotes; in quotes a backslash of its own stands twice.
func show(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return Written(string(raw))
	}
	written := Written(strings.ReplaceAll(text, `\`, `\\`))
	if text == "" || written != text || strings.TrimSpace(text) != text {
		return `"` + written + `"`
	}
	return written
}

// Written returns text in which whatever has no shape of its own is written
// out as \u{...}: control characters, line breaks among them, those that turn,
// join or hide text, tags, variation selectors, blanks other than a space, and
// bytes that are no text; in a word of Latin letters also those that only look
// like them.
func Written(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
		if n < 0 {
			n = len(text)
		}
		if n > 0 {
			word(&b, text[:n])
			text = text[n:]
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r == '\n':
			b.WriteString(`\n`)
		case shapeless(r):
			escape(&b, r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// word writes a run of letters.
func word(b *strings.Builder, text string) {
	latin := strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(unicode.Latin, r) })
	for _, r := range text {
		if shapeless(r) || latin && unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu) {
			escape(b, r)
		} else {
			b.WriteRune(r)
		}
	}
}

func escape(b *strings.Builder, r rune) { b.WriteString(`\u{` + strconv.FormatInt(int64(r), 16) + `}`) }

// blanks are letters and signs that are invisible.
var blanks = []rune{'\u034f', '\u115f', '\u1160', '\u17b4', '\u17b5', '\u2800', '\u3164', '\uffa0'}

// shapeless reports whether a character has an effect, or none, instead of a shape.
func shapeless(r rune) bool {
	return r != ' ' && (!unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.In(r, unicode.Zs, unicode.Variation_Selector) || slices.Contains(blanks, r))
}
