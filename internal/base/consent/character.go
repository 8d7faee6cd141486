package consent

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// Characters that a text may have as they are. The list begins with nothing: what is not on it
// is written as an escape, such as controls, format characters, spaces other than the usual one,
// combining marks that belong to another letter, letters of other alphabets, full-width and
// mathematical letters, digits of other scripts, and characters that do not exist yet.
//
// ASCII is not in the file. The console reads the same file.
//
//go:embed characters.json
var listed []byte

// A span is a range of characters, with both ends.
type span struct{ from, to rune }

// An alphabet is a number of letters that stand in one word together. The first is Latin, to
// which the ASCII letters belong.
type alphabet struct {
	letters  []span
	wide     bool // it stands beside others in one word: Han, Kana, Hangul
	leftward bool // it is written from right to left
}

// characters are those of the file.
type characters struct {
	alphabets []alphabet
	signs     []span
	alike     map[rune]bool // letters that look like ASCII
}

// known reads the file when it is first needed.
var known = sync.OnceValue(func() characters {
	var file struct {
		Letters  map[string]string `json:"letters"`
		Leftward []string          `json:"leftward"`
		Alike    string            `json:"alike"`
		Signs    string            `json:"signs"`
	}
	if err := json.Unmarshal(listed, &file); err != nil {
		panic(err) // it is part of the program
	}
	c := characters{alphabets: []alphabet{{letters: spans(file.Letters["Latin"])}}, signs: spans(file.Signs), alike: map[rune]bool{}}
	for name, text := range file.Letters {
		if name != "Latin" {
			c.alphabets = append(c.alphabets, alphabet{letters: spans(text), wide: name == "Wide", leftward: slices.Contains(file.Leftward, name)})
		}
	}
	for _, r := range file.Alike {
		c.alike[r] = true
	}
	return c
})

// spans reads ranges of hexadecimal numbers.
func spans(text string) []span {
	var all []span
	for _, word := range strings.Fields(text) {
		from, to, ranged := strings.Cut(word, "-")
		if !ranged {
			to = from
		}
		all = append(all, span{hex(from), hex(to)})
	}
	return all
}

func hex(text string) rune {
	n, err := strconv.ParseInt(text, 16, 32)
	if err != nil {
		panic(err) // it is part of the program
	}
	return rune(n)
}

func within(spans []span, r rune) bool {
	for _, s := range spans {
		if r >= s.from && r <= s.to {
			return true
		}
	}
	return false
}

// none is the alphabet of a character that is no letter.
const none = -1

// alphabetOf returns which alphabet a letter is of.
func alphabetOf(r rune) int {
	if r < utf8.RuneSelf {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return 0
		}
		return none
	}
	for i, a := range known().alphabets {
		if within(a.letters, r) {
			return i
		}
	}
	return none
}

// maxSpaces is how many spaces may follow each other as they are: more could push what follows
// to where a line of its own would stand.
const maxSpaces = 4

// Quote returns a text as JSON in which every character is what it looks like. Letters are
// escaped within a word that has letters of several alphabets, in a word all of whose letters
// look like ASCII, and if they are written from right to left in a text that has ASCII letters
// or digits too, whose order a screen would change.
func Quote(text string) string { return quote(text, false) }

// quote is Quote; in a name, letters that are written from right to left are always escaped,
// since its value follows on the line.
func quote(text string, name bool) string {
	runes := []rune(text)
	escaped := mark(runes, name)
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range runes {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case !escaped[i]:
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// mark returns which characters of a text are escaped.
func mark(text []rune, name bool) []bool {
	escaped := make([]bool, len(text))
	order := name || hasOrder(text)
	spaces := 0
	for i := 0; i < len(text); i++ {
		if text[i] == ' ' {
			spaces++
			escaped[i] = spaces > maxSpaces
			continue
		}
		spaces = 0
		if alphabetOf(text[i]) == none {
			escaped[i] = text[i] < ' ' || text[i] > '~' && !within(known().signs, text[i])
			continue
		}
		end := i + 1
		for end < len(text) && alphabetOf(text[end]) != none && isWide(text[end]) == isWide(text[i]) {
			end++
		}
		markWord(text[i:end], escaped[i:end], order)
		i = end - 1
	}
	return escaped
}

// markWord marks the letters of one word.
func markWord(word []rune, escaped []bool, order bool) {
	mixed, same := false, true
	for _, r := range word {
		mixed = mixed || alphabetOf(r) != alphabetOf(word[0])
		same = same && known().alike[r]
	}
	for i, r := range word {
		leftward := known().alphabets[alphabetOf(r)].leftward
		escaped[i] = r >= utf8.RuneSelf && (mixed || same || order && leftward)
	}
}

// hasOrder reports whether a text has letters or digits that are written from left to right.
func hasOrder(text []rune) bool {
	for _, r := range text {
		if r >= '0' && r <= '9' {
			return true
		}
		if a := alphabetOf(r); a != none && !known().alphabets[a].leftward {
			return true
		}
	}
	return false
}

func isWide(r rune) bool {
	a := alphabetOf(r)
	return a != none && known().alphabets[a].wide
}
