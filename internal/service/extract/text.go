package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/unicode/norm"
)

// plain reads text, of whatever encoding.
func plain(data []byte) (Text, error) {
	text, encoding := decode(data, "text/plain")
	return Text{Text: text, Method: "text", Engine: "text", Confidence: 1, Details: map[string]any{"encoding": encoding}}, nil
}

// decode turns bytes into text, by their mark, their media type, or by what is
// valid.
func decode(data []byte, mime string) (text, encoding string) {
	if utf8.Valid(data) {
		return strings.TrimPrefix(string(data), "\ufeff"), "utf-8"
	}
	e, name, _ := charset.DetermineEncoding(data[:min(len(data), 1024)], mime)
	decoded, err := e.NewDecoder().Bytes(data)
	if err != nil {
		return strings.ToValidUTF8(string(data), "\ufffd"), "utf-8"
	}
	return string(decoded), name
}

// tidy gives a text the form in which it is kept: no control characters, one
// kind of line ends, composed characters, at most two empty lines in a row.
func tidy(text string) string {
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
