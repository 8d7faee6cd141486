// Package words splits text into the words by which it is found, and ranks texts by
// the words of a query. Knowledge bases and the memory of agents both search with it.
package words

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of returns the words of a text, as they are indexed and looked for: letters and
// digits, in lower case. Longer ones than 64 bytes are cut.
func Of(text string) []string {
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

// Wide reports whether a character is a word of its own: those scripts put no
// spaces between words.
func Wide(r rune) bool {
	return r >= 0x2e80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) || r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xff60)
}

// spaced puts spaces around characters that are words of their own.
func spaced(text string) string {
	if strings.IndexFunc(text, Wide) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if Wide(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Telling returns the words of a query that tell texts apart, each once and at most
// so many. Stop words and single letters are none. Of more words than that, numbers
// and names with digits stay first, then the longest: how common a word is in what is
// searched is not known here, and long words are rarer.
func Telling(query string, most int) []string {
	all := distinct(slices.DeleteFunc(Of(query), stops))
	if len(all) > most {
		slices.SortStableFunc(all, func(a, b string) int {
			return cmp.Or(cmp.Compare(weight(b), weight(a)), strings.Compare(a, b))
		})
		all = all[:most]
	}
	return all
}

// Asked is [Telling] for a query that someone wrote to search with: one that has
// nothing but stop words means these.
func Asked(query string, most int) []string {
	if all := Telling(query, most); len(all) > 0 {
		return all
	}
	all := distinct(Of(query))
	return all[:min(len(all), most)]
}

// distinct keeps the first of equal words.
func distinct(all []string) []string {
	seen := make(map[string]bool, len(all))
	return slices.DeleteFunc(all, func(word string) bool {
		had := seen[word]
		seen[word] = true
		return had
	})
}

func weight(word string) int {
	n := utf8.RuneCountInString(word)
	if strings.ContainsFunc(word, unicode.IsDigit) {
		n += 64
	}
	return n
}

// stops reports whether a word says nothing of what a text is about. Digits do:
// "flat 7" is about one.
func stops(word string) bool {
	r, size := utf8.DecodeRuneInString(word)
	return stopWords[word] || size == len(word) && unicode.IsLetter(r) && !Wide(r)
}
