package kb

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The size of passages, in characters. A passage ends at a paragraph, a
// sentence or at least a word, and begins again with the end of the one before,
// so that what stands on a border is whole in one of them.
const (
	chunkSize    = 1000
	chunkLeast   = 500 // before which none ends, unless the text does
	chunkOverlap = 120
)

// A passage is a part of a text.
type passage struct {
	start int // in characters
	text  string
}

// passages cuts a text. The same text is always cut in the same way.
func passages(text string) []passage {
	runes := []rune(text)
	var all []passage
	for at := 0; at < len(runes); {
		for at < len(runes) && unicode.IsSpace(runes[at]) {
			at++
		}
		if at == len(runes) {
			break
		}
		end := borderAfter(runes, at)
		piece := strings.TrimRightFunc(string(runes[at:end]), unicode.IsSpace)
		all = append(all, passage{at, piece})
		if end == len(runes) {
			break
		}
		at = overlapBefore(runes, at, end)
	}
	return all
}

// borderAfter returns where a passage that begins at start ends: behind the last
// paragraph within its size, else the last line, sentence, or word.
func borderAfter(runes []rune, start int) int {
	last := start + chunkSize
	if last >= len(runes) {
		return len(runes)
	}
	least := start + chunkLeast
	line, sentence, word := 0, 0, 0
	for i := last; i > least; i-- {
		before, at := runes[i-1], runes[i]
		switch {
		case before == '\n' && i > 1 && runes[i-2] == '\n':
			return i
		case before == '\n' && line == 0:
			line = i
		case unicode.IsSpace(at) && endsSentence(before) && sentence == 0:
			sentence = i
		case wide(before) && endsSentence(before) && sentence == 0:
			sentence = i
		case (unicode.IsSpace(at) || wide(before)) && word == 0:
			word = i
		}
	}
	for _, border := range []int{sentence, line, word} {
		if border > 0 {
			return border
		}
	}
	return last
}

// overlapBefore returns where the passage after end begins: at a word of the
// last characters of the one that began at start.
func overlapBefore(runes []rune, start, end int) int {
	for i := max(end-chunkOverlap, start+1); i < end; i++ {
		if unicode.IsSpace(runes[i-1]) || wide(runes[i]) {
			return i
		}
	}
	return end
}

func endsSentence(r rune) bool { return strings.ContainsRune(".!?:;…。！？；", r) }

// wide reports whether a character is a word of its own: those scripts put no
// spaces between words.
func wide(r rune) bool {
	return r >= 0x2e80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff60)
}

// words returns the words of a text, as they are indexed and looked for: letters
// and digits, in lower case. Longer ones than 64 bytes are cut.
func words(text string) []string {
	fields := strings.FieldsFunc(spaced(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
	for i, field := range fields {
		field = strings.ToLower(field)
		for len(field) > 64 {
			_, size := utf8.DecodeLastRuneInString(field)
			field = field[:len(field)-size]
		}
		fields[i] = field
	}
	return fields
}

// spaced puts spaces around characters that are words of their own.
func spaced(text string) string {
	if strings.IndexFunc(text, wide) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if wide(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
