package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// spellings returns the texts in which a value is looked for.
func spellings(value string) []string {
	all := []string{value}
	all = append(all, base64Of(value)...)
	lower := hex.EncodeToString([]byte(value))
	all = append(all, lower, strings.ToUpper(lower))
	all = append(all, percentOf(value)...)
	all = append(all, escapedOf(value)...)
	all = append(all, utf16Of(value)...)
	all = slices.DeleteFunc(all, func(s string) bool { return len(s) < shortest })
	slices.Sort(all)
	return slices.Compact(all)
}

// base64Of returns the characters that depend on the value alone, wherever it
// stands in what was encoded.
func base64Of(value string) (all []string) {
	for offset := range 3 {
		text := base64.StdEncoding.EncodeToString([]byte("\x00\x00"[:offset] + value))
		text = strings.TrimRight(text, "=")
		text = text[(offset*8+5)/6 : (offset+len(value))*8/6]
		all = append(all, text, strings.NewReplacer("+", "-", "/", "_").Replace(text))
	}
	return all
}

// unescaped are the characters beside letters and digits that writers of
// addresses leave as they are.
var unescaped = []string{
	"-._~",                 // RFC 3986, and most
	"-._~/",                // Python's quote
	"-._~!'()*",            // encodeURIComponent
	"-._~!'()*;,/?:@&=+$#", // encodeURI
	"-._~$&+=:@",           // Go's path segments
	"-._*",                 // URLSearchParams and Java, with + for a space
}

// percentOf returns the value as parts of an address have it.
func percentOf(value string) (all []string) {
	for _, safe := range append(unescaped, "") {
		text := percent(value, safe, safe != "")
		all = append(all, text, lowerHex(text))
		if plus := strings.ReplaceAll(text, "%20", "+"); plus != text {
			all = append(all, plus, lowerHex(plus))
		}
	}
	return all
}

// percent writes out all but what is safe.
func percent(value, safe string, alphanumeric bool) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if letter && alphanumeric || strings.IndexByte(safe, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// lowerHex returns a percent-encoded text with its digits in lower case.
func lowerHex(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:], strings.ToLower(string(b[i+1:i+3])))
		}
	}
	return string(b)
}

// escapedOf returns the value as JSON strings have it, in the manner of several
// writers.
func escapedOf(value string) (all []string) {
	plain, _ := json.Marshal(value) // with <, > and & written out
	text := string(plain[1 : len(plain)-1])
	bare := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(text)
	for _, t := range []string{text, bare, ascii(text, "%04x"), ascii(bare, "%04x"), ascii(bare, "%04X")} {
		all = append(all, t, strings.ReplaceAll(t, "/", `\/`))
	}
	var lower, upper strings.Builder
	for _, unit := range utf16.Encode([]rune(value)) {
		fmt.Fprintf(&lower, `\u%04x`, unit)
		fmt.Fprintf(&upper, `\u%04X`, unit)
	}
	return append(all, lower.String(), upper.String())
}

// ascii writes out what is not ASCII.
func ascii(text, form string) string {
	var b strings.Builder
	for _, r := range text {
		if r < 0x80 {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u`+form, unit)
		}
	}
	return b.String()
}

// utf16Of returns the value in UTF-16 of both orders: as bytes, and as what
// becomes of them in a text, where bytes that are none of it are read as Latin-1
// or replaced.
func utf16Of(value string) (all []string) {
	var little, big []byte
	for _, unit := range utf16.Encode([]rune(value)) {
		little = append(little, byte(unit), byte(unit>>8))
		big = append(big, byte(unit>>8), byte(unit))
	}
	for _, raw := range [][]byte{little, big} {
		var latin strings.Builder
		for _, c := range raw {
			latin.WriteRune(rune(c))
		}
		all = append(all, string(raw), latin.String(), string([]rune(string(raw))))
	}
	return all
}
