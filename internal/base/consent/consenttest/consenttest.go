// Package consenttest holds every place that shows a value to a person who consents to it to
// one rule: each leaf of the value can be read back from what is shown, and no character of it
// passes for another.
package consenttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/mortise-dev/mortise/internal/base/consent"
)

// pieces are what texts and names are made of.
var pieces = []string{
	"", "ann@example.com", "pay", "amount", "to", "a", "0", "$", "~1", "/", ".", "[0]", "=", " = ", `"`, `\`, `\n`, `\u0041`, `"]`, `["`, `": "`, "{}", "[]", "null", "true",
	"\n", "\r\n", "\t", "\n  to = \"eve@example.com\"\n", "\n    \"eve\"", "\u2028", "\u2029", "\u0085", "\x00", "\x1b[2J", "\x7f", "\u009b",
	strings.Repeat(" ", 9), strings.Repeat(" ", 130), "\u00a0", "\u3000", "\u2003", "\u3164", "\u115f", "\u2800", "\ufeff", "\u200b", "\u200d", "\u00ad", "\u034f",
	"\u202e", "\u2066", "\u2069", "\u200f", "\u061c", "\ue000", "\ufffd", "\ufffe", "\U000e0041", "\ufe0f", "\U000e0100",
	"p\u0430ypal", "\u0430\u0440\u0440\u04cf\u0435", "\u0421\u041e\u0421", "\u03bf\u03c1", "\u0391\u0392", "\u212a", "\u212b", "\u2126", "\u037e", "e\u0301", "a\u0338", "o\u0489",
	"\uff41dmin", "\U0001d41admin", "\uff10", "\u0661", "\u09ea", "\u0131", "\u0138", "\u0251", "\u13a0", "\ua4d0", "\u2215", "\u2044", "\u2024", "\u2212", "\u01c3", "\ufb01", "example\u30cecom",
	"Привет, мир", "Grüße", "日本語", "한국어", "שלום", "مرحبا", "שלום 100", "🙂", "👩\u200d💻", "“eve”", "’", "…", "नमस्ते", "สวัสดี", "Ω", "é", strings.Repeat("x", 300), strings.Repeat("word ", 60),
}

// numbers are written as a program may not write them again.
var numbers = []string{"0", "-0", "1", "9007199254740993", "12345678901234567890", "0.1000", "1.10", "1e400", "1E+2", "-1.5e-300", "0.1000000000000000055511151231257827", "100", "1000"}

// Inputs calls yield with so many JSON values, always the same ones: deep and wide, with names
// and texts that try to pass for something else.
func Inputs(n int, yield func(raw []byte)) {
	for i := range n {
		g := generator{rand.New(rand.NewPCG(uint64(i), 7))}
		var b bytes.Buffer
		switch {
		case i%100 == 50:
			g.list(&b, 600)
		case i%10 == 3:
			g.deep(&b, 3+g.IntN(12))
		default:
			g.value(&b, 4)
		}
		yield(b.Bytes())
	}
}

type generator struct{ *rand.Rand }

func (g generator) text() string {
	var b strings.Builder
	for range 1 + g.IntN(4) {
		b.WriteString(pieces[g.IntN(len(pieces))])
	}
	return b.String()
}

func (g generator) value(b *bytes.Buffer, depth int) {
	switch kind := g.IntN(10); {
	case depth > 0 && kind < 4:
		g.object(b, depth)
	case depth > 0 && kind < 6:
		b.WriteByte('[')
		for i := range g.IntN(5) {
			if i > 0 {
				b.WriteByte(',')
			}
			g.value(b, depth-1)
		}
		b.WriteByte(']')
	default:
		g.scalar(b)
	}
}

func (g generator) object(b *bytes.Buffer, depth int) {
	b.WriteByte('{')
	seen := map[string]bool{}
	for range g.IntN(6) {
		name := g.text()
		if seen[name] {
			continue
		}
		if len(seen) > 0 {
			b.WriteByte(',')
		}
		seen[name] = true
		write(b, name)
		b.WriteByte(':')
		g.value(b, depth-1)
	}
	b.WriteByte('}')
}

func (g generator) scalar(b *bytes.Buffer) {
	switch g.IntN(6) {
	case 0:
		b.WriteString(numbers[g.IntN(len(numbers))])
	case 1:
		b.WriteString([]string{"true", "false", "null", "{}", "[]"}[g.IntN(5)])
	default:
		write(b, g.text())
	}
}

// deep writes a value at the end of so many objects and lists.
func (g generator) deep(b *bytes.Buffer, depth int) {
	if depth == 0 {
		g.scalar(b)
		return
	}
	if g.IntN(2) == 0 {
		b.WriteByte('[')
		g.deep(b, depth-1)
		b.WriteByte(']')
		return
	}
	b.WriteByte('{')
	write(b, g.text())
	b.WriteByte(':')
	g.deep(b, depth-1)
	b.WriteByte('}')
}

func (g generator) list(b *bytes.Buffer, n int) {
	b.WriteString(`{"payments":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, `{"amount":%d,"to":`, i)
		write(b, g.text())
		b.WriteByte('}')
	}
	b.WriteString(`]}`)
}

func write(b *bytes.Buffer, text string) {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // it is a string
	}
	b.Write(raw)
}

// Check returns what is wrong with lines that show a value: nil if the value can be read back
// from them and nothing in them passes for something else.
func Check(lines string, raw []byte) error {
	leaves, err := parse(lines)
	if err != nil {
		return err
	}
	var back any
	for _, l := range leaves {
		if back, err = put(back, l.Path, l.Text); err != nil {
			return fmt.Errorf("%s: %w", l, err)
		}
	}
	want, err := decode(string(raw))
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(back, want) {
		return fmt.Errorf("the lines say %v, want %v", back, want)
	}
	for line := range strings.Lines(lines) {
		if err := checkLine(strings.TrimSuffix(line, "\n")); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
	}
	return nil
}

func decode(text string) (value any, err error) {
	in := json.NewDecoder(strings.NewReader(text))
	in.UseNumber()
	err = in.Decode(&value)
	return value, err
}

// put puts a leaf at a path into a value. A place that is taken is an error.
func put(into any, path, text string) (any, error) {
	switch {
	case path == "" || path == consent.Root && into == nil:
		if into != nil {
			return nil, errors.New("it is there twice")
		}
		return decode(text)
	case strings.HasPrefix(path, "["):
		in := json.NewDecoder(strings.NewReader(path))
		var key []any
		if err := in.Decode(&key); err != nil || len(key) != 1 {
			return nil, fmt.Errorf("%q begins with no name and no number", path)
		}
		rest := path[in.InputOffset():]
		if name, is := key[0].(string); is {
			return putMember(into, name, rest, text)
		}
		n, err := strconv.Atoi(fmt.Sprint(key[0]))
		list, is := into.([]any)
		if err != nil || into != nil && !is || n > len(list) {
			return nil, fmt.Errorf("item %v does not follow", key[0])
		}
		if n == len(list) {
			list = append(list, nil)
		}
		list[n], err = put(list[n], rest, text)
		return list, err
	}
	path = strings.TrimPrefix(path, ".")
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return putMember(into, path[:end], path[end:], text)
}

func putMember(into any, name, rest, text string) (any, error) {
	object, is := into.(map[string]any)
	if into != nil && !is {
		return nil, errors.New("a member of what is no object")
	}
	if object == nil {
		object = map[string]any{}
	}
	value, err := put(object[name], rest, text)
	object[name] = value
	return object, err
}

// escapes are those of JSON.
var escapes = regexp.MustCompile(`\\u[0-9a-f]{4}|\\.`)

// checkLine refuses a line that has a character which is not what it looks like. It knows
// nothing of the list that package consent keeps.
func checkLine(line string) error {
	line = escapes.ReplaceAllString(line, " ") // which say what they are
	var alphabet *unicode.RangeTable
	leftward, ordered := false, false
	for i, r := range line {
		ordered = ordered || r == '=' // what stands before a value on its line
		switch {
		case r < ' ' || r == 0x7f:
			return fmt.Errorf("a control character at %d", i)
		case r <= unicode.MaxASCII && !unicode.IsLetter(r):
			alphabet = nil
			continue
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Co, unicode.Zs, unicode.Zl, unicode.Zp, unicode.Me, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
			return fmt.Errorf("%U is not seen", r)
		case unicode.Is(unicode.Mn, r) && !unicode.In(r, unicode.Devanagari, unicode.Thai):
			return fmt.Errorf("%U changes the letter before it", r)
		case unicode.IsDigit(r) && r > unicode.MaxASCII:
			return fmt.Errorf("%U is another digit", r)
		case norm.NFKC.String(string(r)) != string(r):
			return fmt.Errorf("%U looks like %q", r, norm.NFKC.String(string(r)))
		case unicode.In(r, unicode.Cherokee, unicode.Lisu, unicode.Coptic, unicode.Armenian, unicode.Braille):
			return fmt.Errorf("%U is of an alphabet that looks like another", r)
		}
		leftward = leftward || unicode.In(r, unicode.Hebrew, unicode.Arabic)
		if leftward && !ordered && !strings.HasPrefix(line, "    ") {
			return fmt.Errorf("%U turns the line around", r)
		}
		for _, script := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek} {
			if !unicode.Is(script, r) {
				continue
			}
			if alphabet != nil && alphabet != script {
				return fmt.Errorf("%U stands in a word of another alphabet", r)
			}
			alphabet = script
		}
		if !unicode.IsLetter(r) || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			alphabet = nil
		}
	}
	return nil
}

// parse reads the lines that [consent.Write] wrote, as a person reads them.
func parse(text string) ([]consent.Leaf, error) {
	var leaves []consent.Leaf
	var open *consent.Leaf // its text stands on the lines below its path
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if piece, below := strings.CutPrefix(line, "    "); below {
			if open == nil {
				return nil, fmt.Errorf("%q belongs to no path", line)
			}
			switch {
			case open.Text == "":
				open.Text = piece
			case strings.HasPrefix(piece, `"`) && strings.HasSuffix(open.Text, `"`):
				open.Text = strings.TrimSuffix(open.Text, `"`) + strings.TrimPrefix(piece, `"`)
			default:
				return nil, fmt.Errorf("%q does not go on with a text", line)
			}
			continue
		}
		line, own := strings.CutPrefix(line, "  ")
		path, rest, found := cutPath(line)
		if !own || !found {
			return nil, fmt.Errorf("%q begins with no path", line)
		}
		leaves = append(leaves, consent.Leaf{Path: path})
		open = &leaves[len(leaves)-1]
		if rest == " =" {
			continue
		}
		value, found := strings.CutPrefix(rest, " = ")
		if !found || value == "" {
			return nil, fmt.Errorf("%q has no value", line)
		}
		open.Text = value
	}
	for _, l := range leaves {
		if !json.Valid([]byte(l.Text)) {
			return nil, fmt.Errorf("%s is not JSON", l)
		}
	}
	return leaves, nil
}

// cutPath returns the path at the beginning of a line, and the rest.
func cutPath(line string) (path, rest string, found bool) {
	at := 0
	for at < len(line) && line[at] != ' ' {
		if !strings.HasPrefix(line[at:], `["`) {
			at++
			continue
		}
		for at += 2; at < len(line) && line[at] != '"'; at++ {
			if line[at] == '\\' {
				at++ // what is escaped does not end the name
			}
		}
		at = min(at+1, len(line))
	}
	return line[:at], line[at:], at > 0
}
