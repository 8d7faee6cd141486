package reader

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// plain reads text, of whatever encoding.
func plain(data []byte) content {
	text, encoding := decode(data, "text/plain")
	return content{Text: text, Method: "text", Engine: "text", Confidence: 1, Details: map[string]any{"encoding": encoding}}
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
