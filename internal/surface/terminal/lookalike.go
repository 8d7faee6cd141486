package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"
)

// Revealed returns JSON with every character written as \u that may pass for
// another, or for none: what [Escaped] writes out, spaces other than the usual
// one, letters that are drawn like others by another name, and letters of a
// second alphabet within one word. It is the same JSON.
//
// A word that is wholly of another alphabet is left as it is: it may be a word.
func Revealed(text string) string {
	var b strings.Builder
	word := []rune{}
	flush := func() {
		mixed := mixes(word)
		for _, r := range word {
			if mixed && r > unicode.MaxASCII {
				spell(&b, r)
			} else {
				b.WriteRune(r)
			}
		}
		word = word[:0]
	}
	for _, r := range text {
		switch {
		case hidden(r) || disguised(r):
			flush()
			spell(&b, r)
		case unicode.IsLetter(r) || unicode.Is(unicode.Mn, r):
			word = append(word, r)
		default:
			flush()
			b.WriteRune(r)
		}
	}
	flush()
	return b.String()
}

// spell writes a character as JSON escapes it.
func spell(b *strings.Builder, r rune) {
	if r > 0xFFFF {
		high, low := utf16.EncodeRune(r)
		fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}

// disguised reports whether a character looks like another, or like nothing.
func disguised(r rune) bool {
	switch {
	case r <= unicode.MaxASCII:
		return false
	case unicode.Is(unicode.Zs, r), r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF: // spaces, variation selectors
		return true
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x2800, r == 0x3164, r == 0xFFA0: // empty ones
		return true
	}
	s := string(r)
	return norm.NFKC.String(s) != norm.NFC.String(s) // fullwidth, mathematical and other second forms
}

// alike are the alphabets whose letters pass for those of another among them.
var alike = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee, unicode.Coptic, unicode.Lisu}

// mixes reports whether a word has letters of more than one of those alphabets.
func mixes(word []rune) bool {
	var first *unicode.RangeTable
	for _, r := range word {
		for _, script := range alike {
			if !unicode.Is(script, r) {
				continue
			}
			if first != nil && first != script {
				return true
			}
			first = script
		}
	}
	return false
}
