package kb

import (
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/internal/base/words"
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
		case words.Wide(before) && endsSentence(before) && sentence == 0:
			sentence = i
		case (unicode.IsSpace(at) || words.Wide(before)) && word == 0:
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
		if unicode.IsSpace(runes[i-1]) || words.Wide(runes[i]) {
			return i
		}
	}
	return end
}

func endsSentence(r rune) bool { return strings.ContainsRune(".!?:;…。！？；", r) }
